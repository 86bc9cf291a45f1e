"""Whoever follows the advice of a blocked answer gets the answer."""

from typing import Any

import pytest

from api.versions.test_derived import COPY, RAW, batch_run, micro_batch, on, read
from fixtures.versions_server.events import committed, ended, moment, started
from fixtures.versions_server.server import Server


@pytest.fixture
def lake(server: Server) -> Server:
    """A base table at barrier 5, and a stream from it whose table stands at barrier 2."""
    server.post(
        started("ingest", 0, [], [RAW], group="plain"),
        started("copy", 1, [RAW], [COPY], group="plain"),
    )
    for barrier in range(1, 6):
        server.post(
            committed("ingest", 10 * barrier, barrier, {}, {RAW: f"r{barrier}"}, group="plain")
        )
    server.post(
        micro_batch("copy", 0, {RAW: read(None, "r1")}, {COPY: on(None, "c0")}, 91),
        micro_batch("copy", 1, {RAW: read("r1", "r2")}, {COPY: on("c0", "c1")}, 92),
    )
    return server


def blocked_by(server: Server) -> str:
    """Return the reason that blocks the answer over both tables, at barrier 2."""
    answer = server.versions(RAW, COPY)
    (holder,) = answer["blockedBy"]
    assert [one["snapshotId"] for one in answer["tables"]] == ["r2", "c1"]
    return str(holder["reason"])


def test_of_two_writers_one_is_retired_and_the_table_replaced(lake: Server) -> None:
    lake.post(
        started("other", 100, [RAW], [COPY], group="plain"),
        micro_batch("other", 0, {RAW: read(None, "r3")}, {COPY: on("c1", "x0")}, 101),
    )
    reason = blocked_by(lake)
    lake.send("DELETE", "/unregister/other")
    still = blocked_by(lake) if lake.versions(RAW, COPY)["blockedBy"] else ""
    lake.post(*batch_run("load", 1, 200, {RAW: "r4"}, {COPY: "c2"}, parent="x0"))
    lake.post(micro_batch("copy", 2, {RAW: read("r4", "r5")}, {COPY: on("c2", "c3")}, 210))

    assert "2 jobs write it (copy, other); retire all but one (strandline retire copy)" in reason
    assert "then replace the whole table" in reason
    assert still
    assert lake.snapshots(RAW, COPY) == {RAW: "r5", COPY: "c3"}


def test_a_table_that_was_restored_by_hand_goes_back_by_a_rollback(lake: Server) -> None:
    wrong = micro_batch("copy", 2, {RAW: read("r2", "r3")}, {COPY: on("c0", "c2")}, 110)
    lake.post(wrong)
    reason = blocked_by(lake)
    lake.post(ended("copy", 120))
    lake.roll_back(COPY, 2)
    late = 2_000_000_000.0  # after the rollback
    lake.post(started("copy", late, [RAW], [COPY], group="plain", run=2))
    again = micro_batch("copy", 2, {RAW: read("r2", "r4")}, {COPY: on("c1", "c3")}, late + 1, run=2)
    lake.post(again)

    assert reason.endswith("replace the whole table, or go back: strandline rollback db.copy 2")
    assert lake.snapshots(RAW, COPY) == {RAW: "r4", COPY: "c3"}


def test_stream_that_began_on_foreign_rows_restarts_on_an_empty_table(lake: Server) -> None:
    """Its first micro-batch has two commits, as a foreachBatch may."""
    other = "db.other"
    lake.post(started("other", 100, [RAW], [other], group="plain"))
    lake.post(
        micro_batch("other", 0, {RAW: read(None, "r2")}, {other: on("x0", "x1")}, 101, queryId="a")
    )
    refused = lake.versions(RAW, other, consistency="strong", status=409)
    lake.post(started("other", 110, [RAW], [other], group="plain", run=2))
    first = {"committedAt": moment(119), **on("x2", "x3", wasEmpty=True)}
    anew = micro_batch(
        "other", 0, {RAW: read(None, "r4")}, {other: on("x3", "x4")}, 120, run=2, queryId="b"
    )
    anew["outputs"][0]["outputFacets"]["strandline_snapshot"]["others"] = [first]
    lake.post(anew)

    assert (
        "other: db.other: its stream began on snapshot x0, which no run of the group made; replace"
        " the whole table, or empty it with TRUNCATE TABLE and restart its stream with a new"
        " checkpoint"
    ) in refused["detail"]
    strong = lake.snapshots(RAW, other, consistency="strong")
    assert strong == {RAW: "r4", other: "x4"}


def test_a_stopped_job_is_restarted(lake: Server) -> None:
    lake.post(ended("copy", 120))
    between_runs = lake.versions(RAW)
    lake.post(started("copy", 130, [RAW], [COPY], group="plain", run=3))
    lake.post(ended("copy", 140, "FAIL", run=3))
    reason = lake.versions(COPY)["blockedBy"][0]["reason"]
    lake.post(started("copy", 150, [RAW], [COPY], group="plain", run=4))
    lake.post(micro_batch("copy", 2, {RAW: read("r2", "r5")}, {COPY: on("c1", "c2")}, 160, run=4))

    assert [one["snapshotId"] for one in between_runs["tables"]] == ["r5"]
    assert "restart it, or retire it: strandline retire copy" in reason
    assert lake.snapshots(RAW, COPY) == {RAW: "r5", COPY: "c2"}


def plain_run(job: str, run: int, at: float, reads: str, writes: str) -> list[Any]:
    """Return a run of a batch job that names no group."""
    events = batch_run(job, run, at, {reads: "c1"}, {writes: f"m{run}"})
    for one in events:
        one["run"]["facets"] = {}
    return events


def refusal(server: Server, *tables: str) -> str:
    """Return the words of a refused strong answer."""
    return str(server.versions(*tables, consistency="strong", status=409)["detail"])


def test_the_job_in_the_middle_of_a_batch_job_gets_the_group(lake: Server) -> None:
    mid, report = "db.mid", "db.report"
    lake.post(*plain_run("between", 1, 110, COPY, mid))
    lake.post(*batch_run("report", 1, 120, {COPY: "c1", mid: "m1"}, {report: "p1"}))
    refused = refusal(lake, COPY, report)
    lake.post(*batch_run("between", 2, 130, {COPY: "c1"}, {mid: "m2"}, parent="m1"))
    lake.post(*batch_run("report", 2, 140, {COPY: "c1", mid: "m2"}, {report: "p2"}, parent="p1"))

    assert "report: batch job, no run completed a barrier yet" in refused
    assert (
        "its last run read db.mid, which was made from db.copy and carries no barriers;"
        " give the job that writes db.mid the group: spark.strandline.group"
    ) in refused
    assert lake.snapshots(COPY, mid, report, consistency="strong") == {
        COPY: "c1",
        mid: "m2",
        report: "p2",
    }


def test_a_run_that_wrote_a_part_is_followed_by_a_whole_one(lake: Server) -> None:
    report = "db.report"
    part = {"snapshotId": "p1", "replacesTable": False}
    lake.post(*batch_run("report", 1, 120, {COPY: "c1"}, {report: part}))
    refused = refusal(lake, COPY, report)
    whole = {"snapshotId": "p2", "completes": True, "replacesTable": False}
    lake.post(*batch_run("report", 2, 140, {COPY: "c1"}, {report: whole}, parent="p1"))

    assert (
        "its last run wrote only a part of it; replace the whole table, or assert that it is complete:"
        " spark.strandline.completes=true"
    ) in refused
    assert lake.snapshots(COPY, report, consistency="strong") == {COPY: "c1", report: "p2"}


def test_a_run_over_a_moving_table_is_followed_by_one_over_a_version(lake: Server) -> None:
    report = "db.report"
    lake.post(*batch_run("report", 1, 120, {RAW: "r5", COPY: "c1"}, {report: "p1"}))
    refused = refusal(lake, COPY, report)
    lake.post(*batch_run("report", 2, 140, {RAW: "r2", COPY: "c1"}, {report: "p2"}, parent="p1"))

    assert (
        "its last run read db.copy, db.raw at different barriers; let it read a version:"
        " spark.strandline.catalog.NAME.consistency=strong"
    ) in refused
    assert lake.snapshots(RAW, COPY, report, consistency="strong") == {
        RAW: "r2",
        COPY: "c1",
        report: "p2",
    }


def test_a_run_over_a_snapshot_without_a_barrier_is_followed_by_one_over_a_version(
    lake: Server,
) -> None:
    report = "db.report"
    lake.post(*batch_run("report", 1, 120, {COPY: "c7"}, {report: "p1"}))
    refused = refusal(lake, COPY, report)
    lake.post(*batch_run("report", 2, 140, {COPY: "c1"}, {report: "p2"}, parent="p1"))

    assert "its last run read snapshot c7 of db.copy, which carries no barrier" in refused
    assert lake.snapshots(COPY, report, consistency="strong") == {COPY: "c1", report: "p2"}


def test_command_of_a_reason_quotes_a_job_name_with_spaces(lake: Server) -> None:
    daily = "db.daily"
    lake.post(
        started("daily copy", 100, [RAW], [daily], group="plain"),
        micro_batch("daily copy", 0, {RAW: read(None, "r1")}, {daily: on(None, "d0")}, 101),
        micro_batch("daily copy", 1, {RAW: read("r1", "r2")}, {daily: on("d0", "d1")}, 102),
        ended("daily copy", 110, "FAIL"),
    )

    holders = lake.versions(RAW, daily)["blockedBy"]

    assert [holder["job"]["name"] for holder in holders] == ["daily copy"]
    assert holders[0]["reason"].endswith("strandline retire 'daily copy'")
