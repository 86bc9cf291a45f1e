"""The first screen's answers: what failed, by reason, and how late the tables of a list are."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from fixtures.versions_server.events import LAKE, appended, event, facet, two_streams
from fixtures.versions_server.server import Server
from worlds.company import World, run_id


def failure(world: World, job: str, message: str) -> dict[str, Any]:
    """Return the event of a run that failed with this message a minute ago."""
    facets = {"errorMessage": {"message": message, "programmingLanguage": "JAVA"}}
    return world.event("FAIL", 60, job, run_facets=facets)


def test_failures_are_grouped_by_the_first_line_of_the_error(server: Server) -> None:
    world = World(datetime.now(UTC))
    server.post(
        world.event("FAIL", 50, "silent"),
        *(failure(world, f"load_{one}", "[DIVIDE_BY_ZERO] no\n at line 1") for one in range(23)),
        failure(world, "app", "ArithmeticException: [DIVIDE_BY_ZERO] no"),
        failure(world, "export", "disk full"),
    )

    answer = server.get("/api/v2/overview")

    groups = answer["attention"]
    assert {one["reason"].split(": ")[-1]: one["count"] for one in groups} == {
        "[DIVIDE_BY_ZERO] no": 24,
        "disk full": 1,
        "no reason given": 1,
    }
    assert groups[-1]["reason"] == "no reason given"  # though it failed last
    assert max(len(one["items"]) for one in groups) == 20
    assert answer["attentionCount"] == 26


def test_application_and_its_query_that_failed_are_one_failure(server: Server) -> None:
    world = World(datetime.now(UTC))
    application = {"run": {"runId": run_id("app")}, "job": {"namespace": "shop", "name": "app"}}
    message = {"message": "disk full", "programmingLanguage": "JAVA"}
    server.post(
        world.event(
            "FAIL", 60, "app.query", run_facets={"parent": application, "errorMessage": message}
        ),
        world.event("FAIL", 59, "app"),
    )

    answer = server.get("/api/v2/overview")

    (group,) = answer["attention"]
    assert (group["reason"], group["count"], answer["attentionCount"]) == ("disk full", 1, 1)
    assert group["items"][0]["node"] == "job:shop:app"
    assert answer["failedRuns"] == 1


def test_own_failures_of_a_job_are_shown_beside_those_of_its_application(
    server: Server,
) -> None:
    world = World(datetime.now(UTC))
    application = {"run": {"runId": run_id("app")}, "job": {"namespace": "shop", "name": "app"}}
    killed = {"errorMessage": {"message": "killed", "programmingLanguage": "JAVA"}}
    full = {"errorMessage": {"message": "disk full", "programmingLanguage": "JAVA"}}
    server.post(
        world.event("FAIL", 90, "etl.load", run="first", run_facets=full),
        world.event("FAIL", 80, "etl.load", run="second", run_facets=full),
        world.event("FAIL", 60, "etl.load", run_facets={"parent": application, **killed}),
        world.event("FAIL", 59, "app"),
    )

    answer = server.get("/api/v2/overview")

    assert {group["reason"]: group["items"][0]["text"] for group in answer["attention"]} == {
        "killed": f"job app failed (run {run_id('app')})",
        "disk full": f"job etl.load failed 2 times (run {run_id('second')})",
    }


def test_receipt_and_time_of_the_newest_event_are_told_apart(server: Server) -> None:
    assert server.get("/api/v2/overview")["newestEventTime"] is None
    server.post(World(datetime(2026, 1, 2, tzinfo=UTC)).event("COMPLETE", 0, "recorded"))

    answer = server.get("/api/v2/overview")

    assert answer["newestEventTime"] == "2026-01-02T00:00:00Z"
    assert answer["newestEventAt"] > "2026-01-02T00:00:00Z"


def test_tables_of_a_list_have_their_lag_and_newest_snapshot(server: Server) -> None:
    server.post(*two_streams(), appended("batch", 40, "bank.lookup", "l1", numberOfRows=7))

    items = {one["name"]: one for one in server.get("/api/v2/datasets")["items"]}

    lags = {name: one["lagSeconds"] for name, one in items.items()}
    assert lags["bank.transfers"] == 0
    assert lags["bank.credits"] > 0
    assert lags["bank.lookup"] is None
    for name, lag in lags.items():
        namespace = quote(items[name]["namespace"], safe="")
        one = server.get(f"/api/v2/datasets/detail?namespace={namespace}&name={name}")
        assert (one["lagSeconds"] is None) == (lag is None)
    newest = {name: one["latestSnapshot"]["snapshotId"] for name, one in items.items()}
    assert newest == {"bank.transfers": "t2", "bank.credits": "c1", "bank.lookup": "l1"}
    assert items["bank.lookup"]["latestSnapshot"]["numberOfRows"] == 7


def test_table_renamed_by_a_later_symlink_keeps_its_lag(server: Server) -> None:
    place = f"namespace={quote(LAKE, safe='')}&name=bank.credits"
    identifiers = [{"namespace": LAKE, "name": "bank.credits", "type": "TABLE"}]
    symlinks = {"symlinks": facet({"identifiers": identifiers})}
    elsewhere = {"namespace": "s3://lake", "name": "bank/credits", "facets": symlinks}
    server.post(*two_streams(), event("COMPLETE", "other", 50, inputs=[elsewhere]))

    (listed,) = (
        one for one in server.get("/api/v2/datasets")["items"] if one["namespace"] == "s3://lake"
    )
    detail = server.get(f"/api/v2/datasets/detail?{place}")
    stale = server.get(f"/api/v2/delays?{place}")["staleness"]["seconds"]

    assert (listed["name"], detail["name"]) == ("bank/credits", "bank/credits")
    assert 0 < listed["lagSeconds"] <= detail["lagSeconds"] <= round(stale, 3)
