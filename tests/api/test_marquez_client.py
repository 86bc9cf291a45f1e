"""marquez-python itself, unchanged, over every method that reads or tags."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from marquez_client import MarquezClient
from marquez_client.errors import APIError
from sqlalchemy import Engine

from worlds.builders import at, dataset, event, job_event, run_id, store

# The client calls datetime.utcnow.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
LAKE = "hive://lake"
DATASET_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent"
SCHEMA = {
    "fields": [
        {"name": "id", "type": "INT", "description": "the key"},
        {"name": "amount", "type": "DOUBLE"},
    ]
}
WRITING = {
    *("create_dataset", "create_job", "create_job_run", "create_namespace", "create_source"),
    *(f"mark_job_run_as_{state}" for state in ("started", "completed", "failed", "aborted")),
}


@pytest.fixture
def client(engine: Engine, root: str) -> MarquezClient:
    """The client, on a collector with a job that made one table of another and has a run that failed and one that runs."""
    orders, totals = dataset("s3://lake/orders", schema=SCHEMA), dataset("totals", schema=SCHEMA)
    clicks = dataset("clicks", schema=SCHEMA, datasetType={"datasetType": "STREAM"})
    facets = {
        "documentation": {"description": "adds up"},
        "sourceCodeLocation": {"type": "git", "url": "https://git/sum.py"},
        "sql": {"query": "SELECT 1"},
    }
    nominal = {
        "nominalTime": {
            "nominalStartTime": "2026-01-01T00:00:00Z",
            "nominalEndTime": "2026-01-02T00:00:00Z",
        }
    }
    ends: dict[str, Any] = {"inputs": [orders], "outputs": [totals], "job_facets": facets}
    store(
        engine,
        [
            job_event("sum", 0, **ends),
            {
                "eventTime": at(0),
                "producer": "https://example.com/tests",
                "schemaURL": DATASET_EVENT,
                "dataset": clicks,
            },
            event("START", 1, "sum", 1, facets=nominal, **ends),
            event("COMPLETE", 1, "sum", 3, **ends),
            event("FAIL", 2, "sum", 5, **ends),
            event("START", 3, "sum", 7, **ends),
        ],
        size=1,
    )
    return MarquezClient(root, timeout_ms=60_000)


def test_stated_lineage_is_found(client: MarquezClient) -> None:
    namespace, source = client.get_namespace(LAKE), client.get_source(LAKE)
    orders, clicks = (
        client.get_dataset(LAKE, "s3://lake/orders"),
        client.get_dataset(LAKE, "clicks"),
    )
    job = client.get_job("tests", "sum")

    assert {key: namespace[key] for key in ("name", "ownerName", "description", "isHidden")} == {
        "name": LAKE,
        "ownerName": "anonymous",
        "description": None,
        "isHidden": False,
    }
    assert (source["type"], source["connectionUrl"]) == ("HIVE", LAKE)
    assert (orders["physicalName"], orders["sourceName"], orders["tags"]) == (
        "s3://lake/orders",
        LAKE,
        [],
    )
    assert orders["fields"] == [
        {"name": "id", "type": "INT", "tags": [], "description": "the key"},
        {"name": "amount", "type": "DOUBLE", "tags": [], "description": None},
    ]
    assert clicks["type"] == "STREAM"
    assert (job["type"], job["location"], job["description"]) == (
        "BATCH",
        "https://git/sum.py",
        "adds up",
    )
    assert job["context"] == {"sql": "SELECT 1"}
    assert job["inputs"] == [{"namespace": LAKE, "name": "s3://lake/orders"}]
    assert job["outputs"] == [{"namespace": LAKE, "name": "totals"}]


def test_runs_have_their_states_and_versions(client: MarquezClient) -> None:
    runs = client.list_job_runs("tests", "sum")["runs"]
    completed = client.get_job_run(run_id(1))
    version = client.list_dataset_versions(LAKE, "totals")["versions"][-1]

    assert [(run["id"], run["state"]) for run in runs] == [
        (run_id(3), "RUNNING"),
        (run_id(2), "FAILED"),
        (run_id(1), "COMPLETED"),
    ]
    assert completed == runs[2]
    assert completed["durationMs"] == 2000
    assert (completed["args"], completed["nominalEndTime"]) == ({}, "2026-01-02T00:00:00.000Z")
    assert client.get_job("tests", "sum")["latestRun"]["id"] == run_id(3)
    assert version["createdByRun"]["id"] == run_id(1)
    assert client.get_dataset_version(LAKE, "totals", version["version"]) == version
    assert completed["outputVersions"] == [
        {"namespace": LAKE, "name": "totals", "version": version["version"]}
    ]


def test_client_reads_lists_tags_and_graphs(client: MarquezClient) -> None:
    client.create_tag("PII", "of people")
    tagged = client.tag_dataset(LAKE, "totals", "GOLD")
    field = client.tag_dataset_field(LAKE, "totals", "amount", "MONEY")
    version = client.list_dataset_versions(LAKE, "totals")["versions"][0]["version"]

    assert tagged["tags"] == ["GOLD"]
    assert field["fields"][1]["tags"] == ["MONEY"]
    assert client.list_tags()["tags"][2] == {"name": "PII", "description": "of people"}
    assert [tag["name"] for tag in client.list_tags(limit=1, offset=1)["tags"]] == ["MONEY"]
    assert [namespace["name"] for namespace in client.list_namespaces()["namespaces"]] == [
        "default",
        LAKE,
        "tests",
    ]
    assert [source["name"] for source in client.list_sources()["sources"]] == [LAKE]
    assert [job["name"] for job in client.list_jobs("tests")["jobs"]] == ["sum"]
    datasets = client.list_datasets(LAKE, limit=2, offset=1)
    assert [dataset["name"] for dataset in datasets["datasets"]] == ["s3://lake/orders", "totals"]
    assert datasets["totalCount"] == 3
    events = client.list_events()["events"]
    assert sorted(event["run"]["runId"] for event in events) == [
        run_id(1),
        run_id(1),
        run_id(2),
        run_id(3),
    ]
    assert client.list_events("elsewhere")["events"] == []
    for at_version in (None, version):
        by_dataset = client.get_column_lineage_by_dataset(
            LAKE, "totals", with_downstream=True, version=at_version
        )
        by_field = client.get_column_lineage_by_dataset_field(
            LAKE, "totals", "id", version=at_version
        )
        assert [node["data"]["field"] for node in by_dataset["graph"]] == ["amount", "id"]
        assert [node["id"] for node in by_field["graph"]] == [f"datasetField:{LAKE}:totals:id"]
    by_job = client.get_column_lineage_by_job("tests", "sum")["graph"]
    assert [node["data"]["field"] for node in by_job] == ["amount", "id"]


def test_unknown_resources_raise_the_clients_api_error(client: MarquezClient) -> None:
    unknown = {
        "get_job": ("tests", "other"),
        "get_dataset": (LAKE, "other"),
        "get_job_run": ("00000000-0000-4000-8000-000000000009",),
        "get_namespace": ("other",),
        "get_source": ("other",),
    }
    for method, arguments in unknown.items():
        with pytest.raises(APIError):
            getattr(client, method)(*arguments)


def test_every_method_of_the_client_is_called_here() -> None:
    """A later client with another method fails here."""
    methods = {
        name
        for name, _ in inspect.getmembers(MarquezClient, inspect.isfunction)
        if not name.startswith("_")
    }
    source = Path(__file__).read_text()

    assert {name for name in methods - WRITING if f"client.{name}(" not in source} == set()
    assert methods >= WRITING
