"""Filters of the lists over REST: accepted and rejected values, and ambiguous names."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import Engine

from worlds.builders import dataset, event, run_id, store

Query = dict[str, str]


def failed_an_hour_ago(engine: Engine) -> None:
    """A job that failed an hour ago, and one that was done two days before."""
    now = datetime.now(UTC)
    for hours, kind, job in ((1, "FAIL", "load"), (48, "COMPLETE", "daily")):
        told = event(kind, hours, job, outputs=[dataset(f"bank.{job}")])
        store(engine, [told | {"eventTime": (now - timedelta(hours=hours)).isoformat()}])


@pytest.mark.parametrize(
    ("query", "jobs"),
    [
        ({}, ["daily", "load"]),
        ({"state": "fail", "since": "12h"}, ["load"]),
        ({"state": "FAIL,COMPLETE", "until": "1d"}, ["daily"]),
        ({"since": "90m"}, ["load"]),
        ({"state": "FAIL", "until": "90m"}, []),
        ({"state": "running"}, []),
        ({"namespace": "tests", "state": "complete"}, ["daily"]),
        ({"namespace": "elsewhere"}, []),
        ({"namespace": "t*s"}, ["daily", "load"]),
        ({"namespace": "else*"}, []),
    ],
)
def test_lists_are_filtered(
    client: httpx.Client, engine: Engine, query: Query, jobs: list[str]
) -> None:
    failed_an_hour_ago(engine)

    assert [one["name"] for one in client.get("/jobs", params=query).json()["items"]] == jobs
    assert (
        sorted(one["job"]["name"] for one in client.get("/runs", params=query).json()["items"])
        == jobs
    )
    if "namespace" not in query:
        tables = client.get("/datasets", params=query).json()["items"]
        assert [one["latestWrite"]["job"]["name"] for one in tables] == jobs


@pytest.mark.parametrize(
    "called",
    [
        {"job": "load"},
        {"job": "job:tests:load"},
        {"namespace": "tests", "name": "load"},
        {"job": "load", "namespace": "tests", "name": "load"},
    ],
)
def test_runs_and_events_accept_the_same_job_parameters(
    client: httpx.Client, engine: Engine, called: Query
) -> None:
    failed_an_hour_ago(engine)

    def jobs(path: str, query: Query) -> list[str]:
        return [
            one.get("event", one)["job"]["name"]
            for one in client.get(path, params=query).json()["items"]
        ]

    assert jobs("/runs", called) == ["load"]
    assert "name" in called or jobs("/events", called) == ["load"]
    run = client.get("/runs", params=called).json()["items"][0]["runId"]
    assert (
        client.get("/runs/detail", params=called | {"runId": run}).json()["job"]["name"] == "load"
    )


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ({"job": "nobody"}, 404, "unknown job: 'nobody'"),
        (
            {"job": "load", "namespace": "tests", "name": "daily"},
            400,
            "are of two jobs: job:tests:load and job:tests:daily",
        ),
    ],
)
def test_runs_of_an_unknown_or_ambiguous_job_are_rejected(
    client: httpx.Client, engine: Engine, query: Query, status: int, reason: str
) -> None:
    failed_an_hour_ago(engine)
    answer = client.get("/runs", params=query)

    assert answer.status_code == status
    assert reason in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            {"state": "BROKEN"},
            "is not one of START, RUNNING, COMPLETE, FAIL, ABORT (stopped), LOST, or several of them with commas",
        ),
        ({"state": ""}, "is not one of "),
        (
            {"since": "soon"},
            "is not a time like 2026-11-20T12:00:00Z, 18:00, 12h, 3d, friday, today or yesterday",
        ),
        ({"until": "99999999h"}, "is not a time like "),
    ],
)
def test_invalid_filters_are_rejected(client: httpx.Client, query: Query, reason: str) -> None:
    answer = client.get("/runs", params=query)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_parameter")
    assert reason in answer.json()["detail"]


def test_lists_can_be_asked_as_of_a_moment(client: httpx.Client, engine: Engine) -> None:
    failed_an_hour_ago(engine)

    def jobs(path: str, **query: str) -> list[str]:
        items = client.get(path, params=query).json()["items"]
        return [(one.get("latestWrite") or one).get("job", one)["name"] for one in items]

    for path in ("/jobs", "/datasets", "/runs"):
        assert sorted(jobs(path, asOf="90m")) == ["daily"]
        assert sorted(jobs(path, asOf="30m")) == ["daily", "load"]
        assert jobs(path, asOf="30m", state="fail") == ["load"]
        assert jobs(path, asOf="3d") == []
        assert jobs(path, asOf="2999-01-01") == jobs(path)
        refused = client.get(path, params={"asOf": "90m", "since": "1h"})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_parameter")
        assert ") is after asOf (" in refused.json()["detail"]


def test_past_and_current_lists_have_the_same_csv_columns(
    client: httpx.Client, engine: Engine
) -> None:
    failed_an_hour_ago(engine)

    for path in ("/jobs", "/datasets", "/runs"):
        then, now = (
            client.get(path, params={"format": "csv"} | more).text for more in ({"asOf": "90m"}, {})
        )
        assert then.splitlines()[0] == now.splitlines()[0]
        assert (len(then.splitlines()), len(now.splitlines())) == (2, 3)


@pytest.mark.parametrize(("pattern", "names"), [("hive*", ["bank.daily", "bank.load"]), ("x*", [])])
def test_datasets_and_graphs_accept_namespace_patterns(
    client: httpx.Client, engine: Engine, pattern: str, names: list[str]
) -> None:
    failed_an_hour_ago(engine)

    listed = client.get("/datasets", params={"namespace": pattern}).json()["items"]
    graph = client.get("/graph", params={"namespace": pattern}).json()["nodes"]

    assert [one["name"] for one in listed] == names
    assert set(names) <= {one["name"] for one in graph if one["type"] == "dataset"}


def test_times_before_the_first_date_are_clamped_to_it(
    client: httpx.Client, engine: Engine
) -> None:
    failed_an_hour_ago(engine)

    assert len(client.get("/runs", params={"since": "999999w"}).json()["items"]) == 2


def test_events_are_filtered(client: httpx.Client, engine: Engine) -> None:
    failed_an_hour_ago(engine)

    def jobs(**query: str) -> list[str]:
        items = client.get("/events", params=query).json()["items"]
        return sorted(one["event"]["job"]["name"] for one in items)

    assert jobs() == ["daily", "load"]
    assert jobs(job="LOAD") == jobs(runId=run_id(1)) == jobs(dataset="bank.load") == ["load"]
    assert jobs(since="1h") == ["daily", "load"]
    assert jobs(until="1h") == []
    assert client.get("/events", params={"job": "nobody"}).status_code == 404


def test_ambiguous_and_unknown_names_give_different_errors(
    client: httpx.Client, engine: Engine
) -> None:
    failed_an_hour_ago(engine)
    store(engine, [event("COMPLETE", 7) | {"job": {"namespace": "elsewhere", "name": "load"}}])

    ambiguous, unknown = (
        client.get("/lineage", params={"node": node}) for node in ("Load", "loads")
    )

    assert (ambiguous.status_code, ambiguous.json()["code"]) == (404, "ambiguous")
    assert ambiguous.json()["candidates"] == [
        "dataset:hive://lake:bank.load",
        "job:elsewhere:load",
        "job:tests:load",
    ]
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert "job:tests:load" in unknown.json()["candidates"]
