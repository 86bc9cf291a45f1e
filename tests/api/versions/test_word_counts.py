"""Word counts: transactions across jobs, as FLIP-276 shows them. Word for word, over HTTP."""

import pytest

from fixtures.versions_server.events import committed, ended, started
from fixtures.versions_server.server import Server

VALUE, COUNT, SUM = "db.word_value", "db.word_count", "db.word_sum"
MADE = {"generator": (VALUE, 0), "count": (COUNT, 2), "sum": (SUM, 5)}


@pytest.fixture
def words(server: Server) -> Server:
    """Generator, count and sum run; nothing is committed yet."""
    server.post(
        started("generator", 0, [], [VALUE], group="words"),
        started("count", 1, [VALUE], [COUNT], group="words"),
        started("sum", 2, [VALUE], [SUM], group="words"),
    )
    return server


def commit(server: Server, job: str, barrier: int, run: int = 1) -> None:
    """Let a job commit a barrier."""
    made, seconds = MADE[job]
    reads = {} if job == "generator" else {VALUE: f"v{barrier}"}
    writes = {made: f"{made.removeprefix('db.word_')[0]}{barrier}"}
    server.post(
        committed(job, 10 * barrier + seconds, barrier, reads, writes, group="words", run=run)
    )


def test_strong_gives_three_queries_one_barrier_and_weak_gives_each_its_own(words: Server) -> None:
    for job in MADE:
        commit(words, job, 1)
    commit(words, "generator", 2)
    commit(words, "generator", 3)
    commit(words, "count", 2)

    assert words.barriers(VALUE) == {VALUE: 1}
    assert words.barriers(VALUE, COUNT) == {VALUE: 1, COUNT: 1}
    assert words.snapshots(VALUE, COUNT, SUM) == {VALUE: "v1", COUNT: "c1", SUM: "s1"}
    assert words.barriers(VALUE, consistency="weak") == {VALUE: 3}
    assert words.barriers(VALUE, COUNT, consistency="weak") == {VALUE: 2, COUNT: 2}
    assert words.barriers(VALUE, COUNT, SUM, consistency="weak") == {VALUE: 1, COUNT: 1, SUM: 1}


def test_minimum_of_latest_barriers_is_no_version_after_a_skipped_one(words: Server) -> None:
    for barrier in (1, 2, 3):
        commit(words, "generator", barrier)
    commit(words, "count", 1)
    commit(words, "count", 3)
    commit(words, "sum", 1)
    commit(words, "sum", 2)

    assert words.barriers(VALUE, COUNT, SUM) == {VALUE: 1, COUNT: 1, SUM: 1}

    commit(words, "sum", 3)

    assert words.barriers(VALUE, COUNT, SUM) == {VALUE: 3, COUNT: 3, SUM: 3}


def test_job_gets_each_of_the_three_decisions(words: Server) -> None:
    words.post(started("join", 3, [COUNT, SUM], ["db.joined"], group="words"))

    def ask(position: int | None) -> tuple[str, int | None, list[int]]:
        body = {"namespace": "default", "name": "join", "position": position}
        answer = words.ask("/jobs/decision", body)
        return answer["decision"], answer["barrier"], answer["abort"]

    for barrier in (1, 2, 3):
        commit(words, "generator", barrier)
    commit(words, "count", 1)
    commit(words, "sum", 1)
    commit(words, "count", 2)

    assert ask(0) == ("CHECKPOINT", 1, [])
    assert ask(1) == ("PROCEED", None, [])

    commit(words, "count", 3)
    commit(words, "sum", 3)

    assert ask(1) == ("ABORT", 3, [2])
    assert ask(3) == ("PROCEED", None, [])


def test_failed_job_stays_a_member_and_the_others_continue(words: Server) -> None:
    commit(words, "generator", 1)
    commit(words, "count", 1)
    commit(words, "sum", 1)
    words.post(ended("count", 20, "FAIL"))
    commit(words, "generator", 2)
    commit(words, "sum", 2)

    answer = words.versions(VALUE, COUNT, SUM)
    assert {one["name"]: one["barrier"] for one in answer["tables"]} == {VALUE: 1, COUNT: 1, SUM: 1}
    (holder,) = answer["blockedBy"]
    assert holder["job"] == {"namespace": "default", "name": "count"}
    assert holder["reason"].startswith("count: job stopped ")
    assert holder["reason"].endswith(" ago; restart it, or retire it: strandline retire count")
    assert not {row for row in words.rows("sink_job_lineage", "job") if row == ("count",)}
    decision = words.ask("/jobs/decision", {"namespace": "default", "name": "count", "position": 1})
    assert decision["snapshots"] == [
        {"namespace": "iceberg://lake", "name": VALUE, "snapshotId": "v2"}
    ]

    words.post(started("count", 40, [VALUE], [COUNT], group="words", run=2))
    commit(words, "count", 2, run=2)

    assert words.snapshots(VALUE, COUNT, SUM) == {VALUE: "v2", COUNT: "c2", SUM: "s2"}


def test_a_retired_job_no_longer_holds_a_version_back(words: Server) -> None:
    commit(words, "generator", 1)
    commit(words, "sum", 1)
    commit(words, "count", 1)
    commit(words, "generator", 2)
    commit(words, "sum", 2)
    words.post(ended("count", 30, "COMPLETE"))

    words.send("DELETE", "/unregister/count")

    assert words.barriers(VALUE, SUM) == {VALUE: 2, SUM: 2}
    answer = words.versions(COUNT, SUM, consistency="strong")
    assert {one["name"]: one["barrier"] for one in answer["tables"]} == {COUNT: 1, SUM: 1}
    why = "db.word_count: untracked: its writer count was retired"
    assert [one.get("untracked") for one in answer["tables"]] == [why, None]
    remedy = "start its writer again, or ask without the table"
    assert [one["reason"] for one in answer["blockedBy"]] == [f"{why}; {remedy}"]


def test_rollback_plan_raises_the_generation(words: Server) -> None:
    for barrier in (1, 2, 3):
        commit(words, "generator", barrier)
        commit(words, "count", barrier)
        commit(words, "sum", barrier)
    back = {"namespace": "iceberg://lake", "name": COUNT, "barrier": 2}

    plan = words.ask("/rollbacks", back)
    full = words.ask(
        "/rollbacks", {**back, "lostState": [{"namespace": "default", "name": "count"}]}
    )

    assert (plan["kind"], plan["barrier"], plan["generation"]) == ("incremental", 2, 2)
    assert [step["action"] for step in plan["steps"]] == [
        "stop job",
        "roll back table",
        "cut checkpoint",
        "raise generation",
        "restart job",
    ]
    assert [step["action"] for step in full["steps"]] == [
        "stop job",
        "clear table",
        "clear checkpoint",
        "raise generation",
        "restart job",
    ]
    assert words.barriers(VALUE, COUNT, SUM) == {VALUE: 3, COUNT: 3, SUM: 3}

    words.roll_back(COUNT, 2)

    (one, *_) = words.versions(COUNT)["tables"]
    assert (one["generation"], one["barrier"], one["snapshotId"]) == (2, 2, "c2")


def test_commit_of_an_earlier_generation_does_not_count_after_a_rollback(words: Server) -> None:
    for job in MADE:
        commit(words, job, 1)
    words.roll_back(COUNT, 1)

    def count(barrier: int, at: float, snapshot: str, *, run: int, generation: int) -> None:
        read, made = {VALUE: f"v{barrier}"}, {COUNT: snapshot}
        words.post(
            committed(
                *("count", at, barrier, read, made),
                group="words",
                run=run,
                generation=generation,
            )
        )

    a_year = 365 * 24 * 3600.0
    words.post(started("count", 30, [VALUE], [COUNT], group="words", run=2))
    count(2, -a_year, "of the second", run=2, generation=2)
    count(3, a_year, "of the first", run=1, generation=1)

    assert words.snapshots(COUNT, consistency="weak") == {COUNT: "of the second"}
