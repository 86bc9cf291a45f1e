"""A declared base table that is renamed: its commits go on being barriers."""

import time
from typing import Any

import pytest

from fixtures.versions_server.events import (
    LAKE,
    appended,
    committed,
    dataset,
    ended,
    event,
    facet,
    started,
)
from fixtures.versions_server.server import Server
from strandline.core.versions.rollback import plan
from strandline.execution.rollback import Open, begin, open_rollback
from strandline.runtime.coordinator import Intervals, attend
from strandline.runtime.follower import Follower

QUIET = Intervals(barrier=3600, resume=10**9)


def renamed(before: str, after: str, at: float) -> dict[str, Any]:
    """The end of a run that renamed a table."""
    made = dataset(after, "output")
    previous = {"namespace": LAKE, "name": before}
    change = {"lifecycleStateChange": "RENAME", "previousIdentifier": previous}
    made["facets"]["lifecycleStateChange"] = facet(change)
    return event("COMPLETE", "rename", at, outputs=[made])


FIRST = [appended("ingest", 10, "db.a", "r1"), appended("ingest", 20, "db.a", "r2", "r1")]
RENAMED = renamed("db.a", "db.b", 25)
LATER = appended("ingest", 30, "db.b", "r3", "r2")


@pytest.mark.parametrize("rename_last", [False, True])
def test_commits_under_the_new_name_are_the_next_barriers(
    server: Server, rename_last: bool
) -> None:
    server.group("d", "db.a")
    server.post(*FIRST)
    server.post(*([LATER, RENAMED] if rename_last else [RENAMED, LATER]))
    server.post(
        started("make", 31, ["db.b"], ["db.t"], group="d"),
        committed("make", 32, 3, {"db.b": "r3"}, {"db.t": "t3"}, group="d", aligned=False),
    )

    assert server.barriers("db.b", "db.t") == {"db.b": 3, "db.t": 3}
    assert server.snapshots("db.b", "db.t") == {"db.b": "r3", "db.t": "t3"}


def test_cuts_of_several_base_tables_go_on(server: Server) -> None:
    follower, now = Follower(server.engine), time.time()
    server.group("d", "db.a", "db.s")
    server.post(*FIRST, appended("other", 11, "db.s", "s1"))
    attend(server.engine, follower, QUIET, now)
    assert server.barriers("db.a", "db.s") == {"db.a": 1, "db.s": 1}
    server.post(RENAMED, LATER)
    attend(server.engine, follower, QUIET, now + 4000)

    assert server.barriers("db.b", "db.s") == {"db.b": 2, "db.s": 2}
    assert server.snapshots("db.b", "db.s") == {"db.b": "r3", "db.s": "s1"}


def test_expiry_and_delays_are_asked_for_by_the_new_name(server: Server) -> None:
    steps = [("a", 1, 10), ("a", 2, 20), ("b", 3, 30), ("b", 4, 40)]
    for table, number, at in steps:
        if (table, number) == ("b", 3):
            server.post(renamed("db.a", "db.b", 25))
        base, made = {f"db.{table}": f"r{number}"}, {"db.t": f"t{number}"}
        above = {f"db.{table}": f"r{number - 1}", "db.t": f"t{number - 1}"} if number > 1 else {}
        run = 1 if table == "a" else 2
        server.post(
            started("fill", at - 1, [], [f"db.{table}"], group="d", run=run),
            committed("fill", at, number, {}, base, group="d", run=run, parents=above),
            started("make", at, [f"db.{table}"], ["db.t"], group="d", run=run),
            committed("make", at + 5, number, base, made, group="d", run=run, parents=above),
        )

    for name in ("db.b", "db.a"):  # the old name leads to the table, while nobody else uses it
        expiry = server.get(f"/api/v2/expirable?namespace={LAKE}&name={name}")
        assert expiry["name"] == "db.b"
        assert [one["snapshotId"] for one in expiry["kept"]] == ["r1", "r2", "r3", "r4"]
        assert expiry["kept"][0]["reasons"] == ["the last 10 barriers are kept for rollback"]
    delay = server.get(f"/api/v2/delays?namespace={LAKE}&name=db.t")["delay"]
    assert (delay["barrier"], delay["seconds"]) == (4, 5.0)
    assert [part["table"]["name"] for part in delay["parts"]] == ["db.b", "db.b", "db.t", "db.t"]


def test_lease_that_was_taken_under_the_old_name_keeps_its_snapshots(server: Server) -> None:
    server.group("d", "db.a")
    server.post(*FIRST)
    lease = server.versions("db.a", leaseSeconds=600)
    server.post(RENAMED, LATER)

    kept = server.get(f"/api/v2/expirable?namespace={LAKE}&name=db.b")["kept"]
    reasons = {one["snapshotId"]: one["reasons"] for one in kept}
    assert lease["tables"][0]["snapshotId"] == "r2"
    assert any(reason.startswith("lease ") for reason in reasons["r2"])


SWAP = [
    renamed("db.a", "db.tmp", 50),
    renamed("db.b", "db.a", 51),
    renamed("db.tmp", "db.b", 52),
]
OTHER = [appended("other", 11, "db.b", "x1"), appended("other", 21, "db.b", "x2", "x1")]


def test_names_of_a_swap_mean_the_same_table_in_every_answer(server: Server) -> None:
    server.group("d", "db.b")
    server.post(*FIRST, *OTHER, *SWAP)

    refused = server.versions("db.b", consistency="strong", status=409)
    assert "db.b was the name of another table before, so its barriers start again" in str(refused)
    refused = server.versions("db.b", consistency="cut", status=409)
    assert "no snapshot of db.b is known since another table had that name" in str(refused)
    server.post(appended("ingest", 60, "db.b", "r3", "r2"))
    for consistency in ("strong", "cut"):
        answer = server.versions("db.b", consistency=consistency)
        assert [table["snapshotId"] for table in answer["tables"]] == ["r3"]
    expiry = server.get(f"/api/v2/expirable?namespace={LAKE}&name=db.b")
    listed = [one["snapshotId"] for one in (*expiry["kept"], *expiry["expirable"])]
    assert listed == ["r3"]


def test_declaration_returns_where_the_first_rename_of_a_swap_looked_certain(
    server: Server,
) -> None:
    follower = Follower(server.engine)
    server.group("d", "db.a")
    server.post(*OTHER, *FIRST)
    server.post(SWAP[0])
    with follower.model() as model:
        assert (LAKE, "db.tmp") in model.group_of
    server.post(*SWAP[1:], appended("other", 60, "db.a", "x3", "x2"))

    assert server.snapshots("db.a") == server.snapshots("db.a", consistency="cut") == {"db.a": "x3"}
    for name in ("db.b", "db.tmp"):
        refused = server.versions(name, consistency="strong", status=409)
        assert f"{name} was the name of another table before" in str(refused)
    for reader in (follower, Follower(server.engine)):
        with reader.model() as model:
            assert model.group_of == {(LAKE, "db.a"): "d"}
            assert model.done[LAKE, "db.a"].order == [3]


def test_declared_name_that_a_swap_reused_before_gets_no_barrier_of_another_table(
    server: Server,
) -> None:
    server.post(*FIRST, *OTHER, *SWAP)
    server.group("d", "db.b")
    server.post(appended("ingest", 60, "db.b", "r3", "r2"))

    assert server.barriers("db.b") == {"db.b": 1}
    assert server.snapshots("db.b") == {"db.b": "r3"}


def test_barrier_numbers_continue_when_a_name_gets_a_new_table(server: Server) -> None:
    server.group("d", "db.b")
    server.post(*OTHER, *FIRST)
    assert server.barriers("db.b") == {"db.b": 2}
    server.post(*SWAP, appended("ingest", 60, "db.b", "r3", "r2"))

    assert server.barriers("db.b") == {"db.b": 3}
    assert server.snapshots("db.b") == {"db.b": "r3"}


def test_cut_through_a_reused_name_is_refused_where_formats_count_their_snapshots(
    server: Server,
) -> None:
    counted = appended("ingest", 60, "db.b", "3", "2")
    counted["outputs"][0]["outputFacets"]["strandline_snapshot"]["format"] = "delta"
    server.post(*FIRST, *OTHER, *SWAP, counted)

    refused = server.versions("db.b", consistency="cut", status=409)
    assert "whose snapshots may have the same ids: no cut through it is certain" in str(refused)


@pytest.mark.parametrize("is_certain", [True, False])
def test_rollback_of_a_table_renamed_since_is_planned_again(
    server: Server, *, is_certain: bool
) -> None:
    """So it is where renames from before the plan become known after it."""
    follower = Follower(server.engine)
    for number, at in enumerate((10, 20, 30), 1):
        server.post(
            started("fill", at - 1, [], ["db.a"], group="d"),
            committed("fill", at, number, {}, {"db.a": f"r{number}"}, group="d"),
            started("make", at, ["db.a"], ["db.t"], group="d"),
            committed("make", at + 5, number, {"db.a": f"r{number}"}, {"db.t": f"t{number}"},
                      group="d"),
        )  # fmt: skip
    server.post(ended("make", 40, "COMPLETE"), ended("fill", 40, "COMPLETE"))
    with follower.model() as model:
        first = Open((LAKE, "db.t"), 2, plan(model, (LAKE, "db.t"), 2))
    begin(follower, first)
    if is_certain:
        server.post(renamed("db.t", "db.u", 50))
    else:
        server.post(renamed("db.x", "db.t", 50), renamed("db.t", "db.u", 51))

    with server.engine.connect() as connection, follower.model() as model:
        assert open_rollback(connection, model, "d") is None
        table = (LAKE, "db.u" if is_certain else "db.a")
        second = Open(table, 1, plan(model, table, 1))
    begin(follower, second)
    with server.engine.connect() as connection, follower.model() as model:
        assert open_rollback(connection, model, "d") == second
