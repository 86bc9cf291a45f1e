"""Streams that fill base tables and name no group: they belong to the group that reads them."""

from typing import Any

from sqlalchemy import Engine

from api.versions.test_base_streams import cut_steps
from api.versions.test_derived import batch_run, micro_batch, on, read
from fixtures.versions_server.events import committed, started
from fixtures.versions_server.server import Server, running

A, B, COPY, BOTH = "db.a", "db.b", "db.copy", "db.both"


def ingested(table: str, number: int, at: float) -> dict[str, Any]:
    """RUNNING of a stream without a group that fills a table."""
    name = table.removeprefix("db.")
    before = {table: f"{name}{number - 1}"} if number else {}
    return committed(
        f"to_{name}", at, number + 1, {}, {table: f"{name}{number}"}, group=None, parents=before
    )


def copied(number: int, snapshot: str, before: str | None) -> dict[str, Any]:
    """RUNNING of a stream of the group that follows the table."""
    made = on(f"c{number - 1}", f"c{number}") if number else "c0"
    return micro_batch("copy", number, {A: read(before, snapshot)}, {COPY: made}, 100 + number)


def test_table_is_a_base_table_if_its_stream_names_no_group_and_began_first(
    server: Server,
) -> None:
    server.post(
        started("to_a", 0, [], [A], group=None),
        *(ingested(A, number, 10 * number + 10) for number in range(3)),
        started("copy", 50, [A], [COPY], group="plain"),
        copied(0, "a1", None),
        ingested(A, 3, 60),
        copied(1, "a3", "a1"),
    )

    assert server.barriers(A, COPY, consistency="strong") == {A: 4, COPY: 4}
    assert server.snapshots(A, COPY) == {A: "a3", COPY: "c1"}


def test_table_is_a_base_table_if_its_stream_begins_after_its_reader(server: Server) -> None:
    server.post(
        started("copy", 0, [A], [COPY], group="plain"),
        started("to_a", 1, [], [A], group=None),
        ingested(A, 0, 10),
        ingested(A, 1, 20),
        copied(0, "a1", None),
    )

    assert server.barriers(A, COPY, consistency="strong") == {A: 2, COPY: 2}


def test_streams_without_a_group_get_cuts_through_their_tables(engine: Engine) -> None:
    with running(engine, barrier_seconds=10**8) as server:
        server.post(
            started("to_a", 0, [], [A], group=None),
            started("to_b", 0, [], [B], group="plain"),
            ingested(A, 0, 10),
            ingested(A, 1, 15),
            committed("to_b", 20, 1, {}, {B: "b0"}, group="plain"),
            *batch_run("join", 1, 100, {A: "a1", B: "b0"}, {BOTH: "j0"}),
            ingested(A, 2, 110),
        )
        cut_steps(server)

        assert server.snapshots(A, B, BOTH, consistency="strong") == {A: "a1", B: "b0", BOTH: "j0"}
        (group,) = server.get("/api/v2/groups")["groups"]
        assert [one["name"] for one in group["tables"]] == [A, B]


def test_stream_without_a_group_that_reads_the_group_makes_no_base_table(server: Server) -> None:
    """Its table is made from the group: nothing may count its micro-batches as barriers."""
    server.post(
        started("to_a", 0, [], [A], group="plain"),
        started("between", 0, [A], [B], group=None),
        started("copy", 0, [B], [COPY], group="plain"),
        committed("to_a", 10, 1, {}, {A: "a0"}, group="plain"),
        committed("between", 20, 1, {A: "a0"}, {B: "b0"}, group=None, aligned=False),
        micro_batch("copy", 0, {B: read(None, "b0")}, {COPY: "c0"}),
    )

    assert server.versions(B, COPY, consistency="strong", status=409)["code"] == "untracked"


def test_table_that_two_groups_read_belongs_to_neither(server: Server) -> None:
    other = started("other", 0, [A], ["db.other"], group="other")
    server.post(
        started("copy", 0, [A], [COPY], group="plain"),
        other,
        started("to_a", 1, [], [A], group=None),
        ingested(A, 0, 10),
    )

    assert server.versions(A, consistency="strong", status=409)["code"] == "untracked"


def test_table_stays_a_base_table_when_another_group_reads_it(server: Server) -> None:
    server.post(
        started("copy", 0, [A], [COPY], group="plain"),
        started("to_a", 1, [], [A], group=None),
        ingested(A, 0, 10),
        started("other", 15, [A], ["db.other"], group="other"),
        ingested(A, 1, 20),
        copied(0, "a1", None),
    )

    assert server.barriers(A, COPY, consistency="strong") == {A: 2, COPY: 2}


def test_stream_that_was_retired_comes_back(server: Server) -> None:
    server.post(
        started("copy", 0, [A], [COPY], group="plain"),
        started("to_a", 1, [], [A], group=None),
        ingested(A, 0, 10),
    )
    server.send("DELETE", "/unregister/to_a")
    second = ingested(A, 1, 2_000_000_000)
    again = started("to_a", 1_999_999_000, [], [A], group=None, run=2)
    second["run"]["runId"] = again["run"]["runId"]
    server.post(again, second, copied(0, "a1", None))

    assert server.barriers(A, COPY, consistency="strong") == {A: 2, COPY: 2}
