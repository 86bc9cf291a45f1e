"""The requests of Marquez's page as it sends them, and every field that it reads unchecked."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import client_of, serving
from strandline.store.sql.engine import make_engine
from worlds.builders import NOON, at, dataset, event, job_event, run_id, store, symlink

LAKE, PATH = "hive://lake", "s3://bucket"
DAY = {"after": "2026-11-20T00:00:00.000Z", "before": "2026-11-21T00:00:00.000Z"}


def columns(source: str, **more: Any) -> dict[str, Any]:
    """A columnLineage facet: `total` comes from the source's `amount`."""
    made = {"namespace": LAKE, "name": source, "field": "amount"} | more
    return {
        "fields": {
            "total": {
                "inputFields": [
                    made | {"transformations": [{"type": "DIRECT", "subtype": "AGGREGATION"}]}
                ]
            }
        }
    }


def schema(*names: str) -> dict[str, Any]:
    return {"fields": [{"name": name, "type": "int"} for name in names]}


@pytest.fixture(scope="module")
def page(module_url: str) -> Iterator[httpx.Client]:
    """A collector that has heard of two jobs in a row, of a third that failed, of a stream and of a design."""
    engine = make_engine(module_url)
    store(engine, heard())
    with serving(engine) as address, client_of(address, "/api/v1") as client:
        yield client
    engine.dispose()


def heard() -> list[dict[str, Any]]:
    orders, sums = (
        dataset("orders", schema=schema("amount")),
        dataset("sums", schema=schema("total"), columnLineage=columns("orders")),
    )
    last = dataset("last", schema=schema("total"), columnLineage=columns("sums", field="total"))
    parent = {"parent": {"run": {"runId": run_id(9)}, "job": {"namespace": "tests", "name": "dag"}}}
    stream = {"jobType": {"processingType": "STREAMING", "integration": "SPARK"}}
    return [
        event("START", 1, "one", 0, [orders], [sums], facets=parent),
        event("COMPLETE", 1, "one", 5, [orders], [sums], facets=parent),
        event("START", 2, "two", 6, [sums], [last]), event("COMPLETE", 2, "two", 7, [sums], [last]),
        event("START", 3, "bad", 8, [last], []), event("FAIL", 3, "bad", 9, [last], []),
        event("START", 4, "stream", 10, [dataset("topic", "kafka://b:9092")], [dataset("raw")], job_facets=stream),
        event("RUNNING", 4, "stream", 11, job_facets=stream), job_event("designed", 1, inputs=[last]),
    ]  # fmt: skip


def missing(answer: Any, *paths: str) -> list[str]:
    """The paths (`jobs[].id.name`) that lead to nothing, or to null, somewhere in an answer."""
    return [path for path in paths if not _leads(answer, path.split("."))]


def _leads(value: Any, steps: list[str]) -> bool:
    if not steps:
        return value is not None
    name, _, each = steps[0].removeprefix("?").partition("[")
    if steps[0].startswith("?") and value.get(name) is None:
        return True
    inner = value if name == "" else value.get(name)
    if each and not inner and len(steps) > 1:
        return isinstance(inner, list)
    return all(_leads(one, steps[1:]) for one in inner) if each else _leads(inner, steps[1:])


NS = f"/namespaces/{quote(LAKE, safe='')}"
TIMES = ("createdAt", "updatedAt")
RUN = ("id", "state", *TIMES)
FIELDS = ("fields[].name", "fields[].tags")
ASKED = {
    "/namespaces": ("namespaces[].name", "namespaces[].isHidden", *(f"namespaces[].{one}" for one in TIMES)),
    "/tags": ("tags",),
    "/jobs?limit=20&offset=0": (
        *(f"jobs[].{one}" for one in ("id.namespace", "id.name", "name", "namespace", "tags", *TIMES)),
        "totalCount", *(f"jobs[].?latestRuns[].{one}" for one in RUN), *(f"jobs[].?latestRun.{one}" for one in RUN),
    ),
    "/namespaces/tests/jobs?limit=20&offset=0&lastRunStates=FAILED": ("jobs[].?latestRuns[].id", "totalCount"),
    "/namespaces/tests/jobs/one": ("name", "namespace", "tags", "latestRun.id", "latestRun.state", *TIMES),
    "/namespaces/tests/jobs/one/runs?limit=10&offset=0": (
        *(f"runs[].{one}" for one in (*RUN, "durationMs", "startedAt", "endedAt", "facets", "jobVersion.name")), "totalCount",
    ),
    f"{NS}/datasets?limit=20&offset=0": (
        *(f"datasets[].{one}" for one in ("name", "namespace", "id.name", "id.namespace", "sourceName", *TIMES)),
        *(f"datasets[].{one}" for one in (*FIELDS, "tags", "deleted", "facets")), "totalCount",
    ),
    f"{NS}/datasets/sums": ("name", "namespace", "tags", *FIELDS, "columnLineage[].name", "lastModifiedAt", *TIMES),
    f"{NS}/datasets/sums/versions?limit=10&offset=0": (
        "versions[].version", *(f"versions[].{one}" for one in FIELDS), "versions[].createdAt", "totalCount",
        "versions[].?createdByRun.id",
    ),
    f"/jobs/runs/{run_id(1)}/facets?type=job": ("runId", "facets"),
    f"/jobs/runs/{run_id(1)}/facets?type=run": ("runId", "facets.parent"),
    f"/lineage?nodeId={quote(f'dataset:{LAKE}:sums', safe='')}&depth=2": (
        *(f"graph[].{one}" for one in ("id", "type", "inEdges[].origin", "outEdges[].origin", "outEdges[].destination")),
        *(f"graph[].data.{one}" for one in ("name", "namespace", *TIMES)), "graph[].data.?latestRun.state",
    ),
    f"/column-lineage?nodeId={quote(f'dataset:{LAKE}:sums', safe='')}&depth=2&withDownstream=true": (
        *(f"graph[].{one}" for one in ("id", "inEdges", "outEdges", "data.namespace", "data.dataset", "data.field")),
    ),
    "/events/lineage?limit=100&before=2026-11-21T00:00:00.000Z&after=2026-11-20T00:00:00.000Z&offset=0&sortDirection=desc": (
        "events[].run.runId", "events[].job.name", "events[].job.namespace", "totalCount",
    ),
    "/search?q=s&sort=NAME&limit=100": tuple(f"results[].{one}" for one in ("name", "namespace", "type", "updatedAt")),
    "/search?q=s&sort=UPDATE_AT&limit=100&filter=JOB": ("results[].name", "totalCount"),
    "/stats/lineage-events?period=DAY&timezone=Etc/GMT+1": tuple(f"[].{one}" for one in ("fail", "start", "complete", "abort")),
    **{f"/stats/{what}?period=WEEK&timezone=Europe/Berlin": ("[].count",) for what in ("jobs", "datasets", "sources")},
    "/../v2beta/search/jobs?q=one": tuple(f"hits[].{one}" for one in ("run_id", "name", "namespace", "eventType", "facets")),
    "/../v2beta/search/datasets?q=sums": ("hits[].run_id", "hits[].name", "hits[].facets", "highlights"),
}  # fmt: skip


def test_every_field_that_the_page_reads_is_present(page: httpx.Client) -> None:
    found = {asked: page.get(asked) for asked in ASKED}

    assert {asked: answer.status_code for asked, answer in found.items()} == dict.fromkeys(
        ASKED, 200
    )
    assert {
        asked: gone
        for asked, answer in found.items()
        if (gone := missing(answer.json(), *ASKED[asked]))
    } == {}


def test_control_missing_fields_are_detected() -> None:
    jobs = [
        {"id": {"name": "n"}, "latestRuns": [{"id": 1}]},
        {"id": {"name": None}, "latestRuns": None},
    ]
    answer = {"jobs": jobs}

    paths = (
        "jobs[].id.name",
        "jobs[].?latestRuns[].state",
        "jobs[].?latestRuns[].id",
        "totalCount",
    )
    assert missing(answer, *paths) == ["jobs[].id.name", "jobs[].?latestRuns[].state", "totalCount"]


def test_jobs_datasets_and_runs_have_the_values_that_the_page_shows(page: httpx.Client) -> None:
    jobs = {one["name"]: one for one in page.get("/jobs").json()["jobs"]}
    failed = page.get("/jobs?lastRunStates=FAILED&lastRunStates=ABORTED").json()

    assert {name: (one["latestRun"] or {}).get("state") for name, one in jobs.items()} == {
        "one": "COMPLETED", "two": "COMPLETED", "bad": "FAILED", "stream": "RUNNING", "dag": None, "designed": None,
    }  # fmt: skip
    assert [name for name, one in jobs.items() if one["latestRuns"] is None] == ["designed", "dag"]
    assert (jobs["stream"]["type"], jobs["one"]["parentJobName"]) == ("STREAM", "dag")
    assert ([one["name"] for one in failed["jobs"]], failed["totalCount"]) == (["bad"], 1)
    assert page.get(f"{NS}/datasets/sums").json()["columnLineage"] == [
        {
            "name": "total",
            "inputFields": [
                {
                    "namespace": LAKE,
                    "dataset": "orders",
                    "field": "amount",
                    "transformationDescription": None,
                    "transformationType": "AGGREGATION",
                }
            ],
            "transformationDescription": None,
            "transformationType": "AGGREGATION",
        }
    ]
    assert page.get("/namespaces/kafka%3A%2F%2Fb%3A9092/datasets/topic").json()["type"] == "STREAM"


def test_graph_lists_each_edge_at_both_ends(page: httpx.Client) -> None:
    graph = page.get("/lineage", params={"nodeId": "job:tests:two", "depth": 2}).json()["graph"]
    edges = {(one["origin"], one["destination"]) for node in graph for one in node["outEdges"]}

    assert edges == {
        (f"dataset:{LAKE}:orders", "job:tests:one"),
        ("job:tests:one", f"dataset:{LAKE}:sums"),
        (f"dataset:{LAKE}:sums", "job:tests:two"),
        ("job:tests:two", f"dataset:{LAKE}:last"),
        (f"dataset:{LAKE}:last", "job:tests:bad"),
        (f"dataset:{LAKE}:last", "job:tests:designed"),
    }
    assert {
        (one["origin"], one["destination"]) for node in graph for one in node["inEdges"]
    } == edges


def test_trap_1_start_node_keeps_the_requested_name(engine: Engine, marquez: httpx.Client) -> None:
    both = dataset("/warehouse/sums", PATH, symlinks=symlink("db.sums"), schema=schema("a"))
    store(
        engine,
        [
            event("COMPLETE", 1, "one", 0, [], [both]),
            event("COMPLETE", 2, "two", 1, [dataset("db.sums")], []),
        ],
    )

    for namespace, name in ((PATH, "/warehouse/sums"), (LAKE, "db.sums")):
        node = f"dataset:{namespace}:{name}"
        graph = {
            one["id"]: one
            for one in marquez.get("/lineage", params={"nodeId": node}).json()["graph"]
        }
        fields = marquez.get("/column-lineage", params={"nodeId": node}).json()["graph"]
        own = marquez.get(
            f"/namespaces/{quote(namespace, safe='')}/datasets/{quote(name, safe='')}"
        ).json()

        assert sorted(graph) == sorted(["job:tests:one", "job:tests:two", node])
        assert graph["job:tests:one"]["outEdges"] == [
            {"origin": "job:tests:one", "destination": node}
        ]
        assert (graph[node]["data"]["namespace"], graph[node]["data"]["name"]) == (namespace, name)
        assert [one["id"] for one in fields] == [f"datasetField:{namespace}:{name}:a"]
        assert (own["id"], own["name"]) == ({"namespace": namespace, "name": name}, name)


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_trap_2_column_edges_stay_within_the_answer(page: httpx.Client, depth: int) -> None:
    asked: dict[str, str | int] = {
        "nodeId": f"datasetField:{LAKE}:sums:total",
        "depth": depth,
        "withDownstream": "true",
    }
    graph = {one["id"]: one for one in page.get("/column-lineage", params=asked).json()["graph"]}

    for id_, node in graph.items():
        for one in node["inEdges"] + node["outEdges"]:
            assert one["origin"] == id_
            assert one["destination"] in graph
    assert len(graph) == 3  # depth 0 is one step, as in Marquez
    start = graph[f"datasetField:{LAKE}:sums:total"]
    assert [one["destination"] for one in start["inEdges"]] == [
        f"datasetField:{LAKE}:orders:amount"
    ]
    assert [one["destination"] for one in start["outEdges"]] == [f"datasetField:{LAKE}:last:total"]


@pytest.mark.parametrize(
    ("typed", "name"),
    [("a&b", "a&b"), ("50%", "50%"), ("a+b", "a+b"), ("50%25", "50%"), ("%", "50%")],
)
def test_trap_3_search_text_arrives_unencoded(
    engine: Engine, root: str, typed: str, name: str
) -> None:
    store(engine, [event("START", 1, "a&b"), event("START", 2, "50%"), event("START", 3, "a+b")])

    found = httpx.get(
        httpx.URL(f"{root}/api/v1/search", query=f"q={typed}&sort=NAME&limit=100".encode()),
        timeout=60,
    )

    assert name in [one["name"] for one in found.json()["results"]]


@pytest.mark.parametrize(
    ("path", "tag"),
    [("a b", "a b"), ("50%", "50%"), ("a%26b", "a&b"), ("a/b", "a/b"), ("a%2Fb", "a/b")],
)
def test_trap_3_tag_arrives_unencoded(root: str, path: str, tag: str) -> None:
    url = httpx.URL(root).copy_with(raw_path=f"/api/v1/tags/{path.replace(' ', '%20')}".encode())

    assert httpx.put(url, json={"description": None}, timeout=60).json() == {
        "name": tag,
        "description": None,
    }
    assert httpx.get(f"{root}/api/v1/tags", timeout=60).json()["tags"] == [
        {"name": tag, "description": None}
    ]


def test_trap_3_time_zone_arrives_unencoded(page: httpx.Client) -> None:
    found = {
        zone: page.get(f"/stats/jobs?period=WEEK&timezone={zone}")
        for zone in ("Etc/GMT+1", "Etc/GMT-1", "Mars/One")
    }

    assert [answer.status_code for answer in found.values()] == [200, 200, 400]
    hours = {
        zone: answer.json()[0]["startInterval"][11:13]
        for zone, answer in found.items()
        if answer.status_code == 200
    }
    assert hours == {"Etc/GMT+1": "01", "Etc/GMT-1": "23"}


def test_trap_4_datasets_known_only_by_reference_have_times(
    engine: Engine, marquez: httpx.Client
) -> None:
    made = dataset("made", columnLineage=columns("mentioned"))
    parent = {"parent": {"run": {"runId": run_id(9)}, "job": {"namespace": "tests", "name": "dag"}}}
    store(engine, [event("COMPLETE", 1, "one", 0, [], [made], facets=parent)], received_at=NOON)

    mentioned, dag = (
        marquez.get(f"{NS}/datasets/mentioned").json(),
        marquez.get("/namespaces/tests/jobs/dag").json(),
    )

    assert (mentioned["createdAt"], mentioned["updatedAt"]) == (
        "2026-11-20T12:00:00.000Z",
        "2026-11-20T12:00:00.000Z",
    )
    assert (dag["createdAt"], dag["updatedAt"]) == (
        "2026-11-20T12:00:00.000Z",
        "2026-11-20T12:00:00.000Z",
    )


def test_trap_4_a_run_has_a_duration_only_where_it_has_an_end(page: httpx.Client) -> None:
    """With a duration the page shows the end, and a null end as 1 January 1970."""
    runs = {one["name"]: one["latestRun"] for one in page.get("/jobs").json()["jobs"]}
    listed = page.get("/namespaces/tests/jobs/stream/runs").json()["runs"]

    ends = {name: (run["durationMs"], run["endedAt"]) for name, run in runs.items() if run}
    assert ends == {
        "one": (5_000, "2026-11-20T12:00:05.000Z"),
        "two": (1_000, "2026-11-20T12:00:07.000Z"),
        "bad": (1_000, "2026-11-20T12:00:09.000Z"),
        "stream": (None, None),
    }
    assert [(run["state"], run["durationMs"], run["endedAt"]) for run in listed] == [
        ("RUNNING", None, None)
    ]


def test_trap_5_every_successful_answer_is_json(engine: Engine, marquez: httpx.Client) -> None:
    store(engine, heard())
    table, job = f"{NS}/datasets/sums", "/namespaces/tests/jobs/one"
    asked = [
        ("PUT", "/tags/GOLD"), ("POST", f"{table}/tags/GOLD"), ("POST", f"{table}/fields/total/tags/GOLD"),
        ("POST", f"{job}/tags/GOLD"), ("DELETE", f"{table}/tags/GOLD"), ("DELETE", f"{table}/fields/total/tags/GOLD"),
        ("DELETE", f"{job}/tags/GOLD"), ("DELETE", table), ("DELETE", job),
    ]  # fmt: skip

    answers = [
        marquez.request(method, path, json={} if method == "PUT" else None)
        for method, path in asked
    ]

    assert [answer.status_code for answer in answers] == [200] * len(asked)
    assert all(isinstance(answer.json(), dict) for answer in answers)


def test_trap_6_node_ids_keep_commas(engine: Engine, marquez: httpx.Client) -> None:
    store(engine, [event("COMPLETE", 1, "a,b", 0, [dataset("x,y")], [])])

    graph = marquez.get("/lineage", params={"nodeId": f"dataset:{LAKE}:x,y"}).json()["graph"]

    assert [one["id"] for one in graph] == [f"dataset:{LAKE}:x,y", "job:tests:a,b"]


def test_trap_7_local_day_ahead_of_utc_hides_no_event(
    engine: Engine, marquez: httpx.Client
) -> None:
    """The page sends local midnight as UTC, which is in the future east of Greenwich."""
    now = datetime.now(UTC)
    fresh = event("START", 1, "one") | {"eventTime": (now - timedelta(seconds=5)).isoformat()}
    store(engine, [fresh, event("START", 2, "old")])
    local = {"after": f"{now + timedelta(hours=8):%Y-%m-%dT%H:%M:%S}.000Z"}

    found = marquez.get(
        "/events/lineage", params=local | {"before": "2036-01-01T00:00:00.000Z"}
    ).json()

    assert [(one["job"]["name"], one["eventTime"]) for one in found["events"]] == [
        ("one", fresh["eventTime"])
    ]


def test_run_events_are_listed_page_by_page_within_a_time_range(page: httpx.Client) -> None:
    whole = page.get("/events/lineage", params=DAY).json()["events"]
    pages = [
        page.get("/events/lineage", params=DAY | {"limit": 3, "offset": 3 * place}).json()["events"]
        for place in range(3)
    ]
    oldest = page.get("/events/lineage", params=DAY | {"sortDirection": "asc"}).json()["events"]
    some = page.get(
        "/events/lineage", params={"after": at(6)[:19] + "Z", "before": at(9)[:19] + "Z"}
    ).json()["events"]

    assert len(whole) == 8
    assert [one for each in pages for one in each] == whole
    assert oldest == whole[::-1]
    assert sorted((one["job"]["name"], one["eventType"]) for one in some) == [
        ("bad", "START"), ("two", "COMPLETE"), ("two", "START"),
    ]  # fmt: skip


def test_the_last_page_of_events_counts_run_events_alone(
    engine: Engine, marquez: httpx.Client
) -> None:
    designed = [job_event("designed", second) for second in (5, 6)]
    store(engine, [event("START", 1, "one", 0), event("COMPLETE", 1, "one", 1), *designed])

    last = marquez.get("/events/lineage", params={"limit": 1, "offset": 1}).json()
    past_the_end = marquez.get("/events/lineage", params={"limit": 1, "offset": 2}).json()
    elsewhere = marquez.get("/events/elsewhere").json()

    assert ([one["eventType"] for one in last["events"]], last["totalCount"]) == (["START"], 2)
    assert past_the_end == {"events": [], "totalCount": 2}
    assert elsewhere == {"events": [], "totalCount": 0}


def test_an_engine_without_a_name_is_left_out_of_hits(
    engine: Engine, marquez: httpx.Client
) -> None:
    """The page reads the name unchecked, and OpenLineage lets it be left out."""
    nameless = {"processing_engine": {"version": "4.1"}, "errorMessage": {"message": "no"}}
    named = {"processing_engine": {"version": "4.1", "name": "spark"}}
    events = [event("FAIL", 1, "one", 0, facets=nameless), event("FAIL", 2, "one", 1, facets=named)]
    store(engine, events[:1])
    before = marquez.get("/../v2beta/search/jobs?q=one").json()["hits"]
    store(engine, events[1:])
    after = marquez.get("/../v2beta/search/jobs?q=one").json()["hits"]

    assert [sorted(hit["runFacets"]) for hit in before] == [["errorMessage"]]
    assert [hit["runFacets"]["processing_engine"]["name"] for hit in after] == ["spark"]


def test_a_namespace_without_a_name_is_not_listed(engine: Engine, marquez: httpx.Client) -> None:
    """The page begins with the first namespace, and lists nothing if that has no name."""
    store(engine, [event("COMPLETE", 1, "one", 0, [dataset("topic", "")], [dataset("raw")])])

    listed = marquez.get("/namespaces").json()["namespaces"]
    sources = marquez.get("/sources").json()["sources"]
    graph = marquez.get("/lineage", params={"nodeId": "job:tests:one"}).json()["graph"]

    assert [one["name"] for one in listed] == ["default", LAKE, "tests"]
    assert [one["name"] for one in sources] == [LAKE]
    assert marquez.get("/stats/sources").json()[-1]["count"] == 1
    assert "dataset::topic" in [one["id"] for one in graph]


def test_a_week_has_seven_days_and_a_day_24_hours(page: httpx.Client) -> None:
    counts = {
        what: page.get(f"/stats/{what}?period=WEEK&timezone=UTC").json()
        for what in ("lineage-events", "jobs")
    }
    hours = page.get("/stats/datasets?period=DAY&timezone=UTC").json()

    assert [len(one) for one in counts.values()] == [7, 7]
    assert len(hours) == 24
    assert hours[-1]["count"] == 5
    assert counts["jobs"][-1]["count"] == 5  # of the sixth no event came
