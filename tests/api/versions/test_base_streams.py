"""Streams that fill the base tables of a group, each at its own pace; nothing is declared."""

import time
from typing import Any

from sqlalchemy import Engine

from api.versions.test_derived import batch_run, micro_batch, on, read
from fixtures.versions_server.events import committed, started
from fixtures.versions_server.server import Server, running
from strandline.runtime.coordinator import Intervals, attend

A, B, BOTH = "db.a", "db.b", "db.both"


def ingested(
    table: str, number: int, at: float, *, query: str = "q", parent: str = "", run: int = 1
) -> dict[str, Any]:
    """RUNNING of a stream that fills a table: micro-batch `number` of its query."""
    name = table.removeprefix("db.")
    before = {table: parent or f"{name}{number - 1}"} if number or parent else {}
    snapshot = f"{name}{number}" if query == "q" else f"{name}{number}.{query}"
    event = committed(
        f"to_{name}", at, number + 1, {}, {table: snapshot}, group="plain", parents=before, run=run
    )
    event["run"]["facets"]["strandline_barrier"]["queryId"] = query
    return event


def cut(server: Server) -> None:
    attend(server.engine, server.follower, Intervals(barrier=0, resume=10**9), time.time())


def cut_steps(server: Server) -> None:
    for _ in range(3):  # the server's own thread may do the same
        intervals = Intervals(barrier=10**9, resume=10**9)
        attend(server.engine, server.follower, intervals, time.time())


def test_two_streams_with_different_triggers_get_cuts_through_both_tables(server: Server) -> None:
    server.post(
        started("to_a", 0, [], [A], group="plain"),
        started("to_b", 0, [], [B], group="plain"),
        started("join", 0, [A, B], [BOTH], group="plain"),
    )
    for number in range(6):
        server.post(ingested(A, number, 10 * number + 10))
    server.post(ingested(B, 0, 40), ingested(B, 1, 70))
    cut(server)
    first = server.barriers(A, B)
    server.post(micro_batch("join", 0, {A: read(None, "a5"), B: read(None, "b1")}, {BOTH: "j0"}))
    server.post(ingested(A, 6, 110), ingested(A, 7, 120))
    cut(server)
    server.post(ingested(A, 8, 130))
    last = {A: read("a5", "a7"), B: read("b1", "b1")}
    server.post(micro_batch("join", 1, last, {BOTH: on("j0", "j1")}, 140))

    assert len(set(first.values())) == 1
    assert server.snapshots(A, B, BOTH) == {A: "a7", B: "b1", BOTH: "j1"}
    assert server.versions(A, B, BOTH)["consistency"] == "strong"
    (group,) = server.get("/api/v2/groups")["groups"]
    assert [one["name"] for one in group["tables"]] == [A, B]


def test_a_step_between_two_cuts_gets_a_barrier_where_it_stands(engine: Engine) -> None:
    """And a step that stands before the last barrier gets none."""
    with running(engine, barrier_seconds=10**8) as server:
        server.post(
            started("to_a", 0, [], [A], group="plain"),
            started("to_b", 0, [], [B], group="plain"),
            started("join", 0, [A, B], [BOTH], group="plain"),
            started("late", 0, [A, B], ["db.late"], group="plain"),
            ingested(A, 0, 10),
            ingested(B, 0, 10),
            micro_batch(
                "late", 0, {A: read(None, "a0"), B: read(None, "b0")}, {"db.late": "l0"}, 15
            ),
            ingested(A, 1, 20),
            ingested(A, 2, 30),
        )
        cut_steps(server)
        server.post(
            micro_batch("join", 0, {A: read(None, "a1"), B: read(None, "b0")}, {BOTH: "j0"}, 35),
            ingested(A, 3, 40),
        )
        cut_steps(server)
        between = server.snapshots(A, B, BOTH, consistency="weak")
        (group,) = server.get("/api/v2/groups")["groups"]
        behind = {A: read("a0", "a0"), B: read("b0", "b0")}
        server.post(micro_batch("late", 1, behind, {"db.late": on("l0", "l1")}, 50))
        cut_steps(server)

        assert between == {A: "a1", B: "b0", BOTH: "j0"}
        assert server.get("/api/v2/groups")["groups"] == [group]


def test_stream_that_is_made_from_the_group_fills_no_base_table(engine: Engine) -> None:
    with running(engine, barrier_seconds=10**8) as server:
        server.post(
            started("to_a", 0, [], [A], group="plain"),
            started("to_b", 0, [], [B], group="plain"),
            started("join", 0, [A, B], [BOTH], group="plain"),
            ingested(A, 0, 10),
            ingested(B, 0, 10),
            started("to_b", 15, [A], [B], group="plain"),
        )
        cut(server)

        assert [one["barrier"] for one in server.get("/api/v2/groups")["groups"]] == [1]


def test_query_without_its_checkpoint_continues_the_barriers(server: Server) -> None:
    server.post(
        started("to_a", 0, [], [A], group="plain"),
        started("copy", 0, [A], ["db.copy"], group="plain"),
        *(ingested(A, number, 10 * number + 10) for number in range(4)),
        started("to_a", 55, [], [A], group="plain", run=2),
        ingested(A, 0, 60, query="new", parent="a3", run=2),
        ingested(A, 1, 70, query="new", parent="a0.new", run=2),
    )
    server.post(micro_batch("copy", 0, {A: read(None, "a1.new")}, {"db.copy": "c0"}))

    assert server.barriers(A, "db.copy") == {A: 6, "db.copy": 6}
    assert server.snapshots(A, "db.copy") == {A: "a1.new", "db.copy": "c0"}
    assert server.snapshots(A) == {A: "a1.new"}


def test_late_micro_batches_of_a_query_that_lost_its_checkpoint_carry_no_barrier(
    server: Server,
) -> None:
    server.post(
        started("to_a", 0, [], [A], group="plain"),
        started("copy", 0, [A], ["db.copy"], group="plain"),
        *(ingested(A, number, 10 * number + 10) for number in range(4)),
        started("to_a", 65, [], [A], group="plain", run=2),
        ingested(A, 0, 70, query="new", parent="a5", run=2),
        ingested(A, 4, 50),
        ingested(A, 5, 60),
        ingested(A, 1, 80, query="new", parent="a0.new", run=2),
    )
    barriers = {}
    for number, snapshot in enumerate(("a3", "a0.new", "a1.new")):
        before = ("a3", "a0.new")[number - 1] if number else None
        made = on(f"c{number - 1}", f"c{number}") if number else "c0"
        server.post(micro_batch("copy", number, {A: read(before, snapshot)}, {"db.copy": made}))
        barriers[snapshot] = server.barriers(A, "db.copy")["db.copy"]

    assert barriers == {"a3": 4, "a0.new": 5, "a1.new": 6}


def test_batch_job_over_two_streams_gets_barriers_without_a_declaration(engine: Engine) -> None:
    with running(engine, barrier_seconds=10**8) as server:
        server.post(
            started("to_a", 0, [], [A], group="plain"),
            started("to_b", 0, [], [B], group="plain"),
            ingested(A, 0, 10),
            ingested(B, 0, 20),
            *batch_run("join", 1, 100, {A: "a0", B: "b0"}, {BOTH: "j0"}),
            ingested(A, 1, 110),
            ingested(B, 1, 120),
            *batch_run("join", 2, 200, {A: "a1", B: "b1"}, {BOTH: "j1"}, parent="j0"),
            ingested(A, 2, 210),
        )
        cut_steps(server)

        assert server.snapshots(A, B, BOTH, consistency="strong") == {A: "a1", B: "b1", BOTH: "j1"}
        (group,) = server.get("/api/v2/groups")["groups"]
        assert [one["name"] for one in group["tables"]] == [A, B]
