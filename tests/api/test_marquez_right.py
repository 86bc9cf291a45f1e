"""Faults of Marquez that are avoided here: event order, repetition, bad JSON, slashes in names."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

import recordings
from fixtures.servers import SETTINGS, serving
from strandline.api.marquez.shapes import columns
from strandline.store.api_keys import add_key
from worlds.builders import (
    batch,
    dataset,
    event,
    job_event,
    rows,
    run_id,
    snapshot,
    store,
    symlink,
)

ORDERS = {"namespace": "hive://lake", "name": "orders"}
SUMS = {"namespace": "hive://lake", "name": "sums"}


def life(run: int) -> list[dict[str, Any]]:
    """The events of a run that reads orders and writes sums."""
    ends: dict[str, Any] = {"inputs": [dataset("orders")], "outputs": [dataset("sums")]}
    return [
        event("START", run, "sum", 10 * run),
        event("COMPLETE", run, "sum", 10 * run + 5, **ends),
    ]


def test_a_new_start_hides_no_lineage(engine: Engine, marquez: httpx.Client) -> None:
    store(engine, [*life(1), event("START", 2, "sum", 100)])

    job = marquez.get("/namespaces/tests/jobs/sum").json()
    graph = marquez.get("/lineage", params={"nodeId": "job:tests:sum"}).json()["graph"]

    assert (job["latestRun"]["state"], job["inputs"], job["outputs"]) == (
        "RUNNING",
        [ORDERS],
        [SUMS],
    )
    assert [node["id"] for node in graph] == [
        "dataset:hive://lake:orders",
        "dataset:hive://lake:sums",
        "job:tests:sum",
    ]
    assert (graph[2]["data"]["inputs"], graph[2]["data"]["outputs"]) == ([ORDERS], [SUMS])


def test_view_is_joined_with_its_table_and_its_reader(
    engine: Engine, marquez: httpx.Client
) -> None:
    view = {"namespace": "hive://lake", "name": "recent"}
    read = {"strandline_snapshot": {"format": "hive", "through": [view]}}
    inputs = [dataset("recent"), dataset("orders", own=read)]
    store(engine, [event("COMPLETE", 1, "sum", 5, inputs, [dataset("sums")])])

    graph = marquez.get("/lineage", params={"nodeId": "dataset:hive://lake:sums"}).json()["graph"]

    ends = {(edge["origin"], edge["destination"]) for node in graph for edge in node["inEdges"]}
    assert {tuple(end.rpartition(":")[2] for end in pair) for pair in ends} == {
        ("orders", "recent"),
        ("recent", "sum"),
        ("sum", "sums"),
    }


@pytest.mark.parametrize("body", [b"{", b"", b"[1", b'{"a": NaN}', b"\xff"])
def test_malformed_json_gets_400(shared_marquez: httpx.Client, body: bytes) -> None:
    assert shared_marquez.put("/tags/a", content=body).status_code == 400


def test_an_empty_store_has_empty_lists(shared_marquez: httpx.Client) -> None:
    """Marquez's page asks for the namespace `default` before any event has arrived."""
    asked = (
        "/namespaces/default/jobs",
        "/namespaces/default/datasets",
        "/jobs",
        "/events/lineage",
        "/search?q=a",
        "/tags",
    )

    answers = [shared_marquez.get(path) for path in asked]

    assert [answer.status_code for answer in answers] == [200] * len(asked)
    assert [
        value for answer in answers for value in answer.json().values() if value not in (0, [])
    ] == []
    assert shared_marquez.get("/namespaces/default").json()["isHidden"] is False
    assert shared_marquez.get("/namespaces/other/jobs").status_code == 404


@pytest.mark.parametrize("body", ["[]", '"text"', '{"description": 7}'])
def test_unexpected_json_gets_400_with_the_reason(shared_marquez: httpx.Client, body: str) -> None:
    refused = shared_marquez.put("/tags/a", content=body)

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_parameter")
    assert "invalid body" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("s3%3A%2F%2Fb/datasets/lake%2Forders", "lake/orders"),
        ("s3://b/datasets/lake/orders", "lake/orders"),
        ("s3%3A%2F%2Fb/datasets/%2Fabsolute", "/absolute"),
        ("s3://b/datasets//absolute", "/absolute"),
        ("s3%3A//b/datasets/a%2Fdatasets%2Fb", "a/datasets/b"),
        ("s3%3A%2F%2Fb/datasets/a%252Fb", "a%2Fb"),
        ("s3%3A%2F%2Fb/datasets/a%2F..%2Fb", "a/../b"),
        ("s3://b/datasets/100%25/%20x%0Ay", "100%/ x\ny"),
        ("s3%3A%2F%2Fb/datasets/x%2Fversions", "x/versions"),
        ("s3://b/datasets/trailing/", "trailing/"),
    ],
)
def test_names_with_slashes_are_found_encoded_or_not(
    engine: Engine, root: str, path: str, name: str
) -> None:
    store(
        engine,
        [event("COMPLETE", 1, "one", 0, [], [dataset(name, "s3://b"), dataset("other", "s3://b")])],
    )
    url = httpx.URL(root)

    for more in ("", "/versions?limit=5&offset=0"):
        answer = httpx.get(
            url.copy_with(raw_path=f"/api/v1/namespaces/{path}{more}".encode()), timeout=60
        )
        assert answer.status_code == 200
        assert name in (
            answer.json().get("name"),
            *(one["name"] for one in answer.json().get("versions", ())),
        )
    tagged = httpx.post(
        url.copy_with(raw_path=f"/api/v1/namespaces/{path}/tags/T".encode()), timeout=60
    )
    assert (tagged.json()["name"], tagged.json()["tags"]) == (name, ["T"])


def test_dataset_versions_are_snapshots_or_runs_without_a_snapshot(
    engine: Engine, marquez: httpx.Client
) -> None:
    stream = [
        batch(one, 1, outputs=[dataset("made", own=snapshot(str(100 + one)))]) for one in (1, 2, 3)
    ]
    schemas = [{"fields": [{"name": name, "type": "int"}]} for name in ("old", "new")]
    runs = [
        event("COMPLETE", 8 + n, "load", 50 + n, [], [dataset("plain", schema=one)])
        for n, one in enumerate(schemas)
    ]
    store(engine, [*stream, *runs, event("FAIL", 7, "load", 60, [], [dataset("plain")])], size=1)
    lake = "/namespaces/hive%3A%2F%2Flake/datasets"

    made, plain = (marquez.get(f"{lake}/{name}/versions").json() for name in ("made", "plain"))
    of_snapshot = marquez.get(f"{lake}/made/versions/102").json()

    assert [one["snapshotId"] for one in made["versions"]] == ["103", "102", "101"]
    assert len({one["createdAt"] for one in made["versions"]}) == made["totalCount"] == 3
    assert (of_snapshot["version"], of_snapshot["id"]) == (
        made["versions"][1]["version"],
        made["versions"][1]["id"],
    )
    assert [one["createdByRun"]["state"] for one in plain["versions"]] == ["COMPLETED", "COMPLETED"]
    assert [[field["name"] for field in one["fields"]] for one in plain["versions"]] == [
        ["new"],
        ["old"],
    ]
    assert marquez.get(f"{lake}/made/versions/999").status_code == 404


def test_versions_made_at_the_same_time_get_distinct_times(
    engine: Engine, marquez: httpx.Client
) -> None:
    times = ["12:00:08", "12:00:08", "12:00:08", "12:00:07.999999", "12:00:07"]
    runs = [
        event("COMPLETE", n, "load", 8, [], [dataset("plain")])
        | {"eventTime": f"2026-11-20T{one}Z"}
        for n, one in enumerate(times)
    ]
    store(engine, runs, size=1)
    versions = "/namespaces/hive%3A%2F%2Flake/datasets/plain/versions"

    listed = {one["version"]: one["createdAt"] for one in marquez.get(versions).json()["versions"]}
    pages = [
        marquez.get(versions, params={"limit": 1, "offset": n}).json()["versions"][0]
        for n in range(5)
    ]
    alone = [marquez.get(f"{versions}/{one}").json() for one in listed]

    assert [one[16:] for one in listed.values()] == [
        ":08.000Z",
        ":07.999999Z",
        ":07.999998Z",
        ":07.999997Z",
        ":07.000Z",
    ]
    assert {one["version"]: one["createdAt"] for one in pages} == listed
    assert {one["version"]: one["createdAt"] for one in alone} == listed


def test_nested_command_is_listed_but_not_in_the_graph(
    engine: Engine, marquez: httpx.Client
) -> None:
    store(engine, recordings.events_of("nested_ctas"))

    both = {"wide.atomic_create_table_as_select.bank_wide", "wide.append_data.lake_bank_wide"}
    listed = marquez.get("/jobs", params={"limit": 100}).json()
    writers = {
        one["name"] for one in listed["jobs"] if "/data/lake/bank/wide" in str(one["outputs"])
    }
    counted = marquez.get("/stats/jobs", params={"period": "WEEK", "timezone": "UTC"}).json()[-1][
        "count"
    ]
    graph = marquez.get(
        "/lineage", params={"nodeId": "dataset:file:/data/lake/bank/wide", "depth": 1}
    ).json()["graph"]

    assert writers == both
    assert len(listed["jobs"]) == listed["totalCount"] == counted == 11
    assert {one["data"]["name"] for one in graph if one["type"] == "JOB"} & both == {
        min(both, key=lambda one: "append" in one)
    }


def test_version_selects_the_lineage_of_its_time(engine: Engine, marquez: httpx.Client) -> None:
    store(
        engine, [*life(1), event("COMPLETE", 2, "late", 99, [dataset("sums")], [dataset("more")])]
    )
    (first,) = marquez.get("/namespaces/hive%3A%2F%2Flake/datasets/sums/versions").json()[
        "versions"
    ]

    then = marquez.get(
        "/lineage", params={"nodeId": f"dataset:hive://lake:sums#{first['version']}"}
    ).json()
    now = marquez.get("/lineage", params={"nodeId": "dataset:hive://lake:sums"}).json()

    assert {node["id"] for node in now["graph"]} - {node["id"] for node in then["graph"]} == {
        "job:tests:late",
        "dataset:hive://lake:more",
    }


def test_annotations_outlive_later_events_and_are_logged(
    engine: Engine, marquez: httpx.Client
) -> None:
    documented = dataset(
        "sums",
        documentation={"description": "by the job"},
        tags={"tags": [{"key": "tier", "value": "1"}]},
    )
    name = "/namespaces/hive%3A%2F%2Flake/datasets/sums"
    store(engine, [event("COMPLETE", 1, "sum", 0, [], [documented])])
    marquez.post(f"{name}/tags/GOLD")
    marquez.post("/namespaces/tests/jobs/sum/tags/JOB")
    store(engine, [event("COMPLETE", 2, "sum", 50, [], [documented])])

    noted, job = marquez.get(name).json(), marquez.get("/namespaces/tests/jobs/sum").json()
    log = rows(engine, "SELECT action, entity, field, name, value FROM annotation_log")

    assert (noted["description"], noted["tags"], job["tags"]) == (
        "by the job",
        ["GOLD", "tier:1"],
        ["JOB"],
    )
    assert log == [
        ("tag", "dataset:hive://lake:sums", "", "GOLD", ""),
        ("tag", "job:tests:sum", "", "JOB", ""),
    ]


@pytest.mark.parametrize("asked_by", ["sums", "/lake/sums"])
def test_a_new_run_brings_a_deleted_dataset_back(
    engine: Engine, marquez: httpx.Client, asked_by: str
) -> None:
    """Under any of its names; a design, or an event that was known before, does not."""
    name = "/namespaces/hive%3A%2F%2Flake/datasets/sums"
    link = dataset("/lake/sums", "file", symlinks=symlink("sums"))
    old, new = event("COMPLETE", 1, outputs=[link]), event("COMPLETE", 2, outputs=[link])
    store(engine, [old])
    place = name if asked_by == "sums" else "/namespaces/file/datasets/%2Flake%2Fsums"
    answers = [marquez.delete(place).status_code]
    store(engine, [old, job_event(outputs=[link])])
    answers.append(marquez.get(name).status_code)
    store(engine, [new])
    answers.append(marquez.get(name).status_code)
    answers += [marquez.delete(place).status_code, marquez.get(name).status_code]

    assert answers == [200, 404, 200, 200, 404]


def test_deleted_jobs_and_datasets_are_hidden(engine: Engine, marquez: httpx.Client) -> None:
    name, job = "/namespaces/hive%3A%2F%2Flake/datasets/sums", "/namespaces/tests/jobs/sum"
    store(engine, life(1))
    deleted = [marquez.delete(one).status_code for one in (name, job)]
    gone = [marquez.get(one).status_code for one in (name, job)]
    lists = [
        marquez.get("/jobs").json(),
        marquez.get("/namespaces/hive%3A%2F%2Flake/datasets").json(),
    ]
    graph = marquez.get("/lineage", params={"nodeId": "dataset:hive://lake:orders"}).json()["graph"]
    found = marquez.get("/search?q=sum&sort=NAME&limit=10").json()["results"]

    assert (deleted, gone) == ([200, 200], [404, 404])
    assert (lists[0]["jobs"], lists[0]["totalCount"]) == ([], 0)
    assert [one["name"] for one in lists[1]["datasets"]] == ["orders"]
    assert [(node["id"], node["outEdges"]) for node in graph] == [
        ("dataset:hive://lake:orders", [])
    ]
    assert found == []
    assert [row[0] for row in rows(engine, "SELECT action FROM annotation_log")] == [
        "delete",
        "delete",
    ]


def test_deleted_job_takes_what_lay_behind_it_out_of_the_graph_until_it_runs_again(
    engine: Engine, marquez: httpx.Client
) -> None:
    def nodes() -> set[str]:
        answer = marquez.get("/lineage", params={"nodeId": "dataset:hive://lake:d1"})
        assert answer.status_code == 200, answer.text
        return {node["id"].rpartition(":")[2] for node in answer.json()["graph"]}

    steps = [("first", "d1", "d2"), ("middle", "d2", "d3"), ("last", "d3", "d4")]
    for number, (job, source, sink) in enumerate(steps):
        ends: dict[str, Any] = {"inputs": [dataset(source)], "outputs": [dataset(sink)]}
        store(engine, [event("COMPLETE", number, job, **ends)])
    every = {"d1", "first", "d2", "middle", "d3", "last", "d4"}
    assert nodes() == every

    assert marquez.delete("/namespaces/tests/jobs/middle").status_code == 200
    assert nodes() == {"d1", "first", "d2"}

    again: dict[str, Any] = {"inputs": [dataset("d2")], "outputs": [dataset("d3")]}
    store(engine, [event("COMPLETE", 9, "middle", seconds=9, **again)])
    assert nodes() == every
    assert marquez.get("/namespaces/tests/jobs/middle").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(
            ("PUT", path)
            for path in (
                "namespaces/a",
                "sources/a",
                "namespaces/a/datasets/b",
                "namespaces/a/jobs/b",
            )
        ),
        *(("POST", f"jobs/runs/r/{word}") for word in ("start", "complete", "fail", "abort")),
        ("POST", "namespaces/a/jobs/b/runs"),
        ("DELETE", "namespaces/a"),
    ],
)
def test_methods_that_events_replace_are_not_allowed(
    shared_marquez: httpx.Client, method: str, path: str
) -> None:
    assert shared_marquez.request(method, f"/{path}", json={}).status_code == 405


def test_upstream_runs_are_those_that_wrote_its_inputs(
    engine: Engine, marquez: httpx.Client
) -> None:
    made = [event("COMPLETE", run, "load", 10 * run, [], [dataset("raw")]) for run in (1, 2)]
    late = event("COMPLETE", 9, "load", 90, [], [dataset("raw")])
    failed = event("FAIL", 8, "load", 24, [], [dataset("raw")])
    mid = event("COMPLETE", 3, "mid", 25, [dataset("raw")], [dataset("mid", own=snapshot("7"))])
    other = event("COMPLETE", 4, "mid", 26, [], [dataset("mid", own=snapshot("8"))])
    last = event("COMPLETE", 5, "last", 30, [dataset("mid", own=snapshot("7"))], [])
    store(engine, [*made, late, failed, mid, other, last], size=1)

    def above(depth: int) -> list[tuple[str, list[tuple[str, str]]]]:
        asked: dict[str, str | int] = {"runId": run_id(5), "depth": depth}
        found = marquez.get("/runlineage/upstream", params=asked).json()["runs"]
        return [
            (one["job"]["name"], [(i["name"], i["producedByRunId"]) for i in one["inputs"]])
            for one in found
        ]

    assert above(9) == [
        ("last", [("mid", run_id(3))]),
        ("mid", [("raw", run_id(2))]),
        ("load", []),
    ]
    assert above(0) == [("last", [("mid", run_id(3))])]
    assert marquez.get("/runlineage/upstream", params={"runId": run_id(77)}).status_code == 404


def test_audit_log_names_the_key_that_wrote_an_annotation(engine: Engine) -> None:
    store(engine, life(1))
    with engine.begin() as connection:
        key = add_key(connection, "ann's key", datetime.now(UTC), ["ingest"], ["tests"])

    with serving(engine, replace(SETTINGS, auth="required")) as address:
        asked: dict[str, Any] = {"headers": {"Authorization": f"Bearer {key}"}, "timeout": 60}
        tagged = httpx.post(f"{address}/api/v1/namespaces/tests/jobs/sum/tags/GOLD", **asked)
        again = httpx.post(f"{address}/api/v1/namespaces/tests/jobs/sum/tags/GOLD", **asked)
        deleted = httpx.delete(f"{address}/api/v1/namespaces/tests/jobs/sum", **asked)

    assert [one.status_code for one in (tagged, again, deleted)] == [200, 200, 403]
    ((actor, *what),) = rows(engine, "SELECT actor, action, entity, name FROM annotation_log")
    assert actor.startswith("key ann's key ")
    assert what == ["tag", "job:tests:sum", "GOLD"]


def test_unknown_search_options_are_rejected_and_valid_ones_apply(
    engine: Engine, marquez: httpx.Client
) -> None:
    newer = event("COMPLETE", 9, "a sum", 900, [], [dataset("a sum of all sums")])
    store(engine, [*life(1), newer])

    def names(**asked: str) -> list[str]:
        return [
            one["name"]
            for one in marquez.get("/search", params={"q": "sum", **asked}).json()["results"]
        ]

    assert names() == ["sum", "sums", "a sum", "a sum of all sums"]
    assert names(sort="name") == ["a sum", "a sum of all sums", "sum", "sums"]
    assert names(filter="DATASET", sort="") == ["sums", "a sum of all sums"]
    assert names(filter="job", sort="UPDATE_AT") == ["a sum", "sum"]
    for path, word in (
        ("/search?q=sum&filter=jbo", "filter is not one of DATASET, JOB"),
        ("/search?q=sum&sort=size", "sort is not one of NAME, UPDATE_AT, UPDATED_AT"),
        ("/stats/jobs?period=MONTH", "period is not one of DAY, WEEK"),
    ):
        answer = marquez.get(path)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_parameter")
        assert word in answer.json()["detail"]


NOMINAL = {"nominalTime": {"nominalStartTime": "2026-11-20T10:00:00Z"}}
QUALITY = {"assertions": [{"assertion": "not_null", "success": True}]}


def columns_from(source: str, **fields: str) -> dict[str, Any]:
    """Return a columnLineage facet: each field from one column of the source."""
    return {
        "fields": {
            name: {"inputFields": [{"namespace": "hive://lake", "name": source, "field": column}]}
            for name, column in fields.items()
        }
    }


def with_columns(run: int, source: str, target: str) -> dict[str, Any]:
    """Return a run that makes `target.y` of `source.x`, with a nominal time and quality."""
    read = dataset(source, schema={"fields": [{"name": "x"}]})
    made = dataset(
        target, schema={"fields": [{"name": "y"}]}, columnLineage=columns_from(source, y="x")
    )
    read["inputFacets"] = {"dataQualityAssertions": QUALITY}
    made["outputFacets"] = {"outputStatistics": {"rowCount": 7}}
    return event("COMPLETE", run, target, 10 * run, [read], [made], facets=NOMINAL)


def test_a_list_of_datasets_carries_the_columns_that_each_came_from(
    engine: Engine, marquez: httpx.Client
) -> None:
    store(engine, [with_columns(1, "raw", "one"), with_columns(2, "raw", "two")])
    lake = "/namespaces/hive%3A%2F%2Flake/datasets"

    listed = {one["name"]: one["columnLineage"] for one in marquez.get(lake).json()["datasets"]}

    assert listed["raw"] is None
    assert [(one["name"], one["inputFields"][0]["field"]) for one in listed["one"]] == [("y", "x")]
    assert listed == {
        name: marquez.get(f"{lake}/{name}").json()["columnLineage"] for name in listed
    }


def test_a_list_too_wide_for_one_question_has_the_same_columns(
    engine: Engine, marquez: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(engine, [with_columns(1, "raw", "one"), with_columns(2, "raw", "two")])
    lake = "/namespaces/hive%3A%2F%2Flake/datasets"
    whole = marquez.get(lake).json()

    monkeypatch.setattr(columns, "MOST_COLUMNS", 4)

    assert marquez.get(lake).json() == whole


def test_last_runs_and_writers_carry_facets_and_versions(
    engine: Engine, marquez: httpx.Client
) -> None:
    store(engine, [with_columns(1, "raw", "one"), with_columns(2, "raw", "one")], size=1)
    lake = "/namespaces/hive%3A%2F%2Flake/datasets"

    job = marquez.get("/namespaces/tests/jobs/one").json()
    (listed,) = marquez.get("/jobs").json()["jobs"]
    newest, older = marquez.get(f"{lake}/one/versions").json()["versions"]

    assert listed["latestRuns"] == job["latestRuns"]
    assert job["latestRun"] == job["latestRuns"][0] == newest["createdByRun"]
    assert job["latestRuns"][1] == older["createdByRun"]
    last = job["latestRun"]
    assert last["nominalStartTime"] == "2026-11-20T10:00:00.000Z"
    assert last["facets"]["nominalTime"]["nominalStartTime"] == "2026-11-20T10:00:00Z"
    (read,), (made,) = last["inputDatasetVersions"], last["outputDatasetVersions"]
    assert read["facets"]["dataQualityAssertions"]["assertions"] == QUALITY["assertions"]
    assert made["facets"]["outputStatistics"]["rowCount"] == 7
    assert made["datasetVersionId"]["version"] == newest["version"] != older["version"]
    assert marquez.get(f"/jobs/runs/{run_id(2)}").json() == last


def test_datasets_carry_the_quality_that_their_last_reader_measured(
    engine: Engine, marquez: httpx.Client
) -> None:
    worse = with_columns(2, "raw", "two")
    worse["inputs"][0]["inputFacets"] = {"dataQualityAssertions": {"assertions": []}}
    store(engine, [with_columns(1, "raw", "one"), worse])
    lake = "/namespaces/hive%3A%2F%2Flake/datasets"

    raw, made = (marquez.get(f"{lake}/{name}").json()["facets"] for name in ("raw", "one"))

    assert raw["dataQualityAssertions"]["assertions"] == []
    assert made["outputStatistics"]["rowCount"] == 7


def test_a_version_that_was_read_is_the_one_last_written(
    engine: Engine, marquez: httpx.Client
) -> None:
    raw = [event("COMPLETE", run, "load", 10 * run, [], [dataset("raw")]) for run in (1, 2)]
    raw.append(event("FAIL", 7, "load", 24, [], [dataset("raw")]))
    raw.append(event("COMPLETE", 8, "load", 90, [], [dataset("raw")]))
    table = event("COMPLETE", 3, "table", 25, [], [dataset("table", own=snapshot("7"))])
    inputs = [dataset("raw"), dataset("table"), dataset("unmade")]
    reader = [event("START", 5, "read", 30), event("COMPLETE", 5, "read", 99, inputs, [])]
    store(engine, [*raw, table, *reader], size=1)
    lake = "/namespaces/hive%3A%2F%2Flake/datasets"

    (run,) = marquez.get("/namespaces/tests/jobs/read/runs").json()["runs"]
    read = {one["name"]: one["version"] for one in run["inputVersions"]}
    versions = marquez.get(f"{lake}/raw/versions").json()["versions"]
    by_run = {one["createdByRun"]["id"]: one["version"] for one in versions}
    (of_snapshot,) = marquez.get(f"{lake}/table/versions").json()["versions"]

    assert read == {"raw": by_run[run_id(2)], "table": of_snapshot["version"], "unmade": None}


@pytest.mark.parametrize(("depth", "sources"), [(0, {"b"}), (1, {"b"}), (2, {"a", "b"})])
def test_columns_of_a_job_are_walked_from_what_it_makes(
    engine: Engine, marquez: httpx.Client, depth: int, sources: set[str]
) -> None:
    second = with_columns(2, "b", "c")
    second["outputs"][0]["facets"]["columnLineage"] = columns_from("b", y="y")
    store(engine, [with_columns(1, "a", "b"), second])
    version = marquez.get("/namespaces/tests/jobs/c").json()["currentVersion"]

    def nodes(node_id: str) -> set[str]:
        asked: dict[str, str | int] = {"nodeId": node_id, "depth": depth}
        graph = marquez.get("/column-lineage", params=asked).json()["graph"]
        return {node["data"]["dataset"] for node in graph}

    assert nodes("job:tests:c") == nodes(f"job:tests:c#{version}") == {"c"} | sources
    assert nodes("dataset:hive://lake:c") == {"c"} | sources


def test_graph_of_a_version_of_a_job(engine: Engine, marquez: httpx.Client) -> None:
    store(engine, life(1))
    version = marquez.get("/namespaces/tests/jobs/sum").json()["currentVersion"]

    graph = marquez.get("/lineage", params={"nodeId": f"job:tests:sum#{version}"}).json()["graph"]
    other = marquez.get("/lineage", params={"nodeId": f"job:tests:sum#{run_id(3)}"})

    assert [node["id"] for node in graph][-1] == "job:tests:sum"
    assert other.status_code == 404


def test_columns_of_a_job_that_makes_nothing_are_none(
    engine: Engine, marquez: httpx.Client
) -> None:
    store(engine, [event("COMPLETE", 1, "read", 0, [dataset("orders")], [])])

    answer = marquez.get("/column-lineage", params={"nodeId": "job:tests:read"}).json()

    assert (answer["graph"], answer["complete"]) == ([], True)


def test_there_is_always_a_namespace_default(engine: Engine, marquez: httpx.Client) -> None:
    def names(**page: int) -> list[str]:
        listed = marquez.get("/namespaces", params=page).json()["namespaces"]
        return [one["name"] for one in listed]

    assert names() == ["default"]
    store(engine, life(1))
    assert names() == ["default", "hive://lake", "tests"]
    assert names(limit=1, offset=1) == ["hive://lake"]
