"""marquez-python itself, unchanged, over every method that it has."""

import inspect
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from marquez_client import MarquezClient
from marquez_client.errors import APIError
from marquez_client.models import DatasetId, DatasetType, JobType

from fixtures.emitter.schemas import faults_of

# The client calls datetime.utcnow and marks most of what writes as deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
RUN = "00000000-0000-4000-8000-000000000001"
FIELDS = [
    {"name": "id", "type": "INT", "tags": ["PII"], "description": "the key"},
    {"name": "amount", "type": "DOUBLE"},
]


class Counting:
    """A client that notes which of its methods were called."""

    def __init__(self, client: MarquezClient) -> None:
        self.client = client
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self.called.add(name)
        method: Callable[..., Any] = getattr(self.client, name)
        return method


@pytest.fixture
def client(root: str) -> Counting:
    """The client, on a collector with a job that makes one table of another."""
    counting = Counting(MarquezClient(root, timeout_ms=60_000))
    counting.create_namespace("shop", "ann", "what we sell")
    counting.create_source("pg", "postgresql", "jdbc:postgresql://ann:secret@db:5432/shop", "the shop's database")
    given = {"source_name": "pg", "fields": FIELDS}
    counting.create_dataset("shop", "s3://lake/orders", DatasetType.DB_TABLE, "orders", tags=["RAW"], **given)
    counting.create_dataset("shop", "clicks", DatasetType.STREAM, "clicks", schema_location="http://reg/1", **given)
    counting.create_dataset("shop", "totals", DatasetType.DB_TABLE, "public.totals", description="sums", **given)
    ends = {"inputs": [DatasetId("shop", "s3://lake/orders")], "outputs": [DatasetId("shop", "totals")]}
    counting.create_job(
        "shop", "sum", JobType.BATCH, "https://git/sum.py", description="adds up", context={"sql": "SELECT 1"}, **ends
    )
    return counting


def test_what_is_created_is_found_again(client: Counting) -> None:
    namespace, source = client.get_namespace("shop"), client.get_source("pg")
    dataset, stream = client.get_dataset("shop", "s3://lake/orders"), client.get_dataset("shop", "clicks")
    job = client.get_job("shop", "sum")

    assert {key: namespace[key] for key in ("name", "ownerName", "description", "isHidden")} == {
        "name": "shop",
        "ownerName": "ann",
        "description": "what we sell",
        "isHidden": False,
    }
    assert (source["type"], source["connectionUrl"]) == ("POSTGRESQL", "jdbc:postgresql://db:5432/shop")
    assert (dataset["physicalName"], dataset["sourceName"], dataset["tags"]) == ("orders", "pg", ["RAW"])
    assert dataset["fields"] == [
        {"name": "id", "type": "INT", "tags": ["PII"], "description": "the key"},
        {"name": "amount", "type": "DOUBLE", "tags": [], "description": None},
    ]
    assert (stream["type"], stream["schemaLocation"]) == ("STREAM", "http://reg/1")
    assert (job["type"], job["location"], job["description"]) == ("BATCH", "https://git/sum.py", "adds up")
    assert job["context"] == {"sql": "SELECT 1"}
    assert job["inputs"] == [{"namespace": "shop", "name": "s3://lake/orders"}]
    assert job["outputs"] == [{"namespace": "shop", "name": "totals"}]


def test_a_run_goes_through_its_states(client: Counting) -> None:
    at = {"nominal_start_time": "2026-01-01T00:00:00Z", "nominal_end_time": "2026-01-02T00:00:00Z"}

    created = client.create_job_run("shop", "sum", RUN, run_args={"day": 1}, **at)
    started = client.mark_job_run_as_started(RUN, "2026-01-02T00:00:01+00:00")
    completed = client.mark_job_run_as_completed(RUN, "2026-01-02T00:00:03Z")
    (version, *_) = client.list_dataset_versions("shop", "totals")["versions"]

    assert [one["state"] for one in (created, started, completed)] == ["NEW", "RUNNING", "COMPLETED"]
    assert completed["durationMs"] == 2000
    assert (completed["args"], completed["nominalEndTime"]) == ({"day": "1"}, "2026-01-02T00:00:00.000Z")
    assert client.get_job_run(RUN) == completed
    assert client.list_job_runs("shop", "sum")["runs"] == [completed]
    assert client.get_job("shop", "sum")["latestRun"]["id"] == RUN
    assert version["createdByRun"]["id"] == RUN
    assert client.get_dataset_version("shop", "totals", version["version"]) == version
    assert completed["outputVersions"] == [{"namespace": "shop", "name": "totals", "version": version["version"]}]


def test_runs_fail_and_are_aborted_and_may_start_at_once(client: Counting) -> None:
    failed = client.create_job_run("shop", "sum", mark_as_running=True)
    client.mark_job_run_as_failed(failed["id"])
    aborted = client.create_job_run("shop", "sum", mark_as_running=True)
    client.mark_job_run_as_aborted(aborted["id"])

    states = {run["id"]: run["state"] for run in client.list_job_runs("shop", "sum", limit=10)["runs"]}
    assert states == {failed["id"]: "FAILED", aborted["id"]: "ABORTED"}


def test_a_dataset_and_a_job_may_name_their_run(client: Counting) -> None:
    client.create_job_run("shop", "sum", RUN, mark_as_running=True)
    client.create_dataset("shop", "more", DatasetType.DB_TABLE, "more", "pg", run_id=RUN, fields=FIELDS)
    client.create_job("shop", "sum", JobType.BATCH, outputs=[DatasetId("shop", "most")], run_id=RUN)

    outputs = [one["name"] for one in client.get_job("shop", "sum")["outputs"]]
    assert outputs == ["more", "most", "totals"]


def test_lists_and_tags_and_graphs(client: Counting) -> None:
    client.create_job_run("shop", "sum", RUN, mark_as_running=True)
    client.create_tag("PII", "of people")
    tagged = client.tag_dataset("shop", "totals", "GOLD")
    field = client.tag_dataset_field("shop", "totals", "amount", "MONEY")
    version = client.list_dataset_versions("shop", "totals")["versions"][0]["version"]

    assert tagged["tags"] == ["GOLD"]
    assert field["fields"][1]["tags"] == ["MONEY"]
    assert client.list_tags()["tags"][2] == {"name": "PII", "description": "of people"}
    assert [one["name"] for one in client.list_tags(limit=1, offset=1)["tags"]] == ["MONEY"]
    assert [one["name"] for one in client.list_namespaces()["namespaces"]] == ["shop"]
    assert "pg" in [one["name"] for one in client.list_sources()["sources"]]
    assert [one["name"] for one in client.list_jobs("shop")["jobs"]] == ["sum"]
    datasets = client.list_datasets("shop", limit=2, offset=1)
    assert ([one["name"] for one in datasets["datasets"]], datasets["totalCount"]) == (
        ["s3://lake/orders", "totals"],
        3,
    )
    assert [one["run"]["runId"] for one in client.list_events()["events"]] == [RUN, RUN]
    assert client.list_events("elsewhere")["events"] == []
    for asked in (None, version):
        by_dataset = client.get_column_lineage_by_dataset("shop", "totals", with_downstream=True, version=asked)
        by_field = client.get_column_lineage_by_dataset_field("shop", "totals", "id", version=asked)
        assert [one["data"]["field"] for one in by_dataset["graph"]] == ["amount", "id"]
        assert [one["id"] for one in by_field["graph"]] == ["datasetField:shop:totals:id"]
    assert client.get_column_lineage_by_job("shop", "sum")["graph"] == []


def test_what_is_unknown_is_an_error_of_the_client(client: Counting) -> None:
    unknown = "00000000-0000-4000-8000-000000000009"
    asked = {"get_job": ("shop", "other"), "get_dataset": ("shop", "other"), "get_job_run": (unknown,),
             "create_job_run": ("shop", "other"), "get_namespace": ("other",), "get_source": ("other",)}  # fmt: skip
    for method, arguments in asked.items():
        with pytest.raises(APIError):
            getattr(client, method)(*arguments)


def test_what_is_written_becomes_events_that_follow_the_schemas(client: Counting, root: str) -> None:
    client.create_job_run("shop", "sum", RUN, run_args={"day": 1}, mark_as_running=True)
    client.create_job("shop", "sum", JobType.STREAM, context={"team": "a"}, run_id=RUN)

    events = [one["event"] for one in httpx.get(f"{root}/api/v2/events", timeout=60).json()["items"]]

    kinds = ["DatasetEvent"] * 3 + ["JobEvent"] * 2 + ["RunEvent"] * 3
    assert sorted(one["schemaURL"].rpartition("/")[2] for one in events) == kinds
    assert [fault for one in events for fault in faults_of(one)] == []


def test_this_file_calls_every_method_of_the_client() -> None:
    """A later client with another method fails here."""
    methods = {name for name, _ in inspect.getmembers(MarquezClient, inspect.isfunction) if not name.startswith("_")}
    source = inspect.getsource(inspect.getmodule(Counting))  # type: ignore[arg-type]

    assert {name for name in methods if f"client.{name}(" not in source and f"counting.{name}(" not in source} == set()
