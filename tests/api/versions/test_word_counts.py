"""Word counts: transactions across jobs, as FLIP-276 shows them. Word for word, over HTTP."""

import pytest

from fixtures.versions_server.events import committed, ended, started
from fixtures.versions_server.server import Server

VALUE, COUNT, SUM = "db.word_value", "db.word_count", "db.word_sum"


@pytest.fixture
def words(server: Server) -> Server:
    """Generator, count and sum run; nothing is committed yet."""
    server.post(
        started("generator", 0, [], [VALUE], domain="words"),
        started("count", 1, [VALUE], [COUNT], domain="words"),
        started("sum", 2, [VALUE], [SUM], domain="words"),
    )
    return server


def value(server: Server, barrier: int) -> None:
    """The generator commits a barrier."""
    server.post(
        committed("generator", 10 * barrier, barrier, {}, {VALUE: f"v{barrier}"}, domain="words")
    )


def count(server: Server, barrier: int, run: int = 1) -> None:
    """The counting job commits a barrier."""
    server.post(
        committed(
            "count",
            10 * barrier + 2,
            barrier,
            {VALUE: f"v{barrier}"},
            {COUNT: f"c{barrier}"},
            domain="words",
            run=run,
        )
    )


def total(server: Server, barrier: int) -> None:
    """The summing job commits a barrier."""
    server.post(
        committed(
            "sum",
            10 * barrier + 5,
            barrier,
            {VALUE: f"v{barrier}"},
            {SUM: f"s{barrier}"},
            domain="words",
        )
    )


def test_strong_gives_three_queries_one_barrier_and_weak_gives_each_its_own(words: Server) -> None:
    for barrier in (1, 2, 3):
        value(words, barrier)
    count(words, 1)
    count(words, 2)
    total(words, 1)

    assert words.barriers(VALUE) == {VALUE: 1}
    assert words.barriers(VALUE, COUNT) == {VALUE: 1, COUNT: 1}
    assert words.snapshots(VALUE, COUNT, SUM) == {VALUE: "v1", COUNT: "c1", SUM: "s1"}
    assert words.barriers(VALUE, consistency="weak") == {VALUE: 3}
    assert words.barriers(VALUE, COUNT, consistency="weak") == {VALUE: 2, COUNT: 2}
    assert words.barriers(VALUE, COUNT, SUM, consistency="weak") == {VALUE: 1, COUNT: 1, SUM: 1}


def test_minimum_of_latest_barriers_is_no_version_after_a_skipped_one(words: Server) -> None:
    for barrier in (1, 2, 3):
        value(words, barrier)
    count(words, 1)
    count(words, 3)
    total(words, 1)
    total(words, 2)

    assert words.barriers(VALUE, COUNT, SUM) == {VALUE: 1, COUNT: 1, SUM: 1}

    total(words, 3)

    assert words.barriers(VALUE, COUNT, SUM) == {VALUE: 3, COUNT: 3, SUM: 3}


def test_dependency_query_of_the_proposal_finds_the_readers(words: Server) -> None:
    query = """SELECT T.table_name FROM __META_ETL_SOURCE S JOIN __META_ETL_SINK T ON S.job_id = T.job_id
                WHERE S.table_name = 'word_value' ORDER BY 1"""
    with words.engine.connect() as connection:
        found = [row[0] for row in connection.exec_driver_sql(query)]

    assert [name.rpartition(".")[2] for name in found] == ["word_count", "word_sum"]


def test_job_gets_each_of_the_three_decisions(words: Server) -> None:
    words.post(started("join", 3, [COUNT, SUM], ["db.joined"], domain="words"))

    def ask(position: int | None) -> tuple[str, int | None, list[int]]:
        body = {"namespace": "default", "name": "join", "position": position}
        answer = words.ask("/jobs/decision", body)
        return answer["decision"], answer["barrier"], answer["abort"]

    for barrier in (1, 2, 3):
        value(words, barrier)
    count(words, 1)
    total(words, 1)
    count(words, 2)

    assert ask(0) == ("CHECKPOINT", 1, [])
    assert ask(1) == ("PROCEED", None, [])

    count(words, 3)
    total(words, 3)

    assert ask(1) == ("ABORT", 3, [2])
    assert ask(3) == ("PROCEED", None, [])


def test_failed_job_stays_a_member_and_the_others_continue(words: Server) -> None:
    value(words, 1)
    count(words, 1)
    total(words, 1)
    words.post(ended("count", 20, "FAIL"))
    value(words, 2)
    total(words, 2)

    answer = words.versions(VALUE, COUNT, SUM)
    assert {one["name"]: one["barrier"] for one in answer["tables"]} == {VALUE: 1, COUNT: 1, SUM: 1}
    (holder,) = answer["blockedBy"]
    assert holder["job"] == {"namespace": "default", "name": "count"}
    assert holder["reason"].startswith("count: job stopped ")
    assert holder["reason"].endswith(" ago; restart it, or retire it")
    assert not {row for row in words.rows("sink_job_lineage", "job") if row == ("count",)}
    decision = words.ask("/jobs/decision", {"namespace": "default", "name": "count", "position": 1})
    assert decision["snapshots"] == [
        {"namespace": "iceberg://lake", "name": VALUE, "snapshotId": "v2"}
    ]

    words.post(started("count", 40, [VALUE], [COUNT], domain="words", run=2))
    count(words, 2, run=2)

    assert words.snapshots(VALUE, COUNT, SUM) == {VALUE: "v2", COUNT: "c2", SUM: "s2"}


def test_a_retired_job_no_longer_holds_a_version_back(words: Server) -> None:
    value(words, 1)
    total(words, 1)
    count(words, 1)
    value(words, 2)
    total(words, 2)
    words.post(ended("count", 30, "COMPLETE"))

    words.send("DELETE", "/unregister/count")

    assert words.barriers(VALUE, SUM) == {VALUE: 2, SUM: 2}
    problem = words.versions(COUNT, SUM, status=409)
    assert problem["code"] == "untracked"
    assert "its writer count was retired" in problem["detail"]


def test_rollback_plan_raises_the_generation(words: Server) -> None:
    for barrier in (1, 2, 3):
        value(words, barrier)
        count(words, barrier)
        total(words, barrier)
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

    words.ask("/rollbacks", {**back, "apply": True})

    (one, *_) = words.versions(COUNT)["tables"]
    assert (one["generation"], one["barrier"], one["snapshotId"]) == (2, 2, "c2")
