"""Snapshots on other branches or none are no versions of a table until they are on main."""

from typing import Any

import pytest

from fixtures.versions_server.events import (
    LAKE,
    appended,
    barrier_facet,
    committed,
    dataset,
    event,
    started,
)
from fixtures.versions_server.server import Server
from strandline.store.versions.answers import expiry_of
from strandline.store.versions.snapshot_history import heads_of, snapshot_lines

JSON = dict[str, Any]
T = "db.t"
ASIDE = pytest.mark.parametrize(
    "aside", [{"branch": "dev"}, {"staged": True}], ids=["branch", "staged"]
)


def read(at: float, snapshot: str, **more: Any) -> JSON:
    """A batch job's COMPLETE that read a snapshot."""
    return event(
        "COMPLETE",
        "reader",
        at,
        run=int(at),
        inputs=[dataset(T, "input", {"snapshotId": snapshot, **more})],
    )


def micro_batch(number: int, parent: str | None, **more: Any) -> JSON:
    """A plain stream's micro-batch, which appends to a table what is new in another."""
    since = {"fromSnapshotId": f"s{number - 1}"} if number > 1 else {}
    on = {"parentSnapshotId": parent} if parent is not None else {}
    made = {"format": "iceberg", "snapshotId": f"t{number}", "operation": "append", **on, **more}
    at = 10.0 * number
    return event(
        "RUNNING",
        "copy",
        at,
        run_facets=barrier_facet("d", number, at - 1, at),
        inputs=[dataset("db.s", "input", {"snapshotId": f"s{number}", **since})],
        outputs=[dataset(T, "output", made)],
    )


def lines(server: Server) -> tuple[list[str], list[str]]:
    with server.engine.connect() as connection:
        return snapshot_lines(connection, (LAKE, T))


@ASIDE
def test_branch_commit_of_a_base_table_makes_no_barrier(server: Server, aside: JSON) -> None:
    server.post(appended("ingest", 1, T, "m1"))
    server.group("d", T)
    server.post(appended("ingest", 2, T, "m2", "m1"), appended("ingest", 3, T, "b1", "m2", **aside))

    assert (server.snapshots(T), server.barriers(T)) == ({T: "m2"}, {T: 2})

    server.post(appended("ingest", 4, T, "m3", "m2"), appended("ingest", 5, T, "b2", "b1", **aside))

    assert (server.snapshots(T, consistency="weak"), server.barriers(T)) == ({T: "m3"}, {T: 3})


@ASIDE
def test_stream_that_wrote_to_a_branch_completes_no_more_barriers(
    server: Server, aside: JSON
) -> None:
    """Main lacks the rows of that micro-batch, as it lacks none of one that wrote nothing."""
    server.post(started("ingest", 0, [], ["db.s"], group="d"))
    for number in (1, 2, 3):
        parents = {"db.s": f"s{number - 1}"} if number > 1 else {}
        server.post(
            committed("ingest", 10.0 * number - 5, number, {}, {"db.s": f"s{number}"}, group="d",
                      parents=parents)
        )  # fmt: skip
    server.post(started("copy", 9, ["db.s"], [T], group="d"))
    server.post(micro_batch(1, None), micro_batch(2, "t1", **aside), micro_batch(3, "t1"))

    assert server.snapshots(T, consistency="weak") == {T: "t1"}


@ASIDE
def test_branch_commits_do_not_count_with_several_base_tables(server: Server, aside: JSON) -> None:
    server.post(appended("ingest", 1, T, "m1"), appended("other", 1, "db.s", "s1"))
    server.post(appended("ingest", 2, T, "b1", "m1", **aside))
    with server.engine.connect() as connection:
        assert heads(connection, T, "db.s") == {T: "m1", "db.s": "s1"}


def heads(connection: Any, *names: str) -> dict[str, str]:
    return {
        table[1]: head
        for table, head in heads_of(connection, [(LAKE, name) for name in names]).items()
    }


@ASIDE
@pytest.mark.parametrize("parents", [True, False])
def test_latest_snapshot_of_an_untracked_table_is_that_of_main(
    server: Server, aside: JSON, parents: bool
) -> None:
    server.post(
        appended("ingest", 1, T, "m1"),
        appended("ingest", 2, T, "b1", "m1" if parents else None, **aside),
    )

    assert server.snapshots(T, consistency="weak") == {T: "m1"}
    assert server.snapshots(T, consistency="cut") == {T: "m1"}
    assert lines(server) == (["m1"], ["b1"])


def test_branch_only_snapshot_is_kept_and_is_not_the_latest(server: Server) -> None:
    server.post(appended("ingest", 1, T, "m1"), appended("ingest", 2, T, "b1", "m1", branch="dev"))
    with server.engine.connect() as connection:
        found = expiry_of(connection, (LAKE, T), [], 0.0)

    assert list(found.expirable) == []
    assert {one.snapshot: one.reasons for one in found.kept()} == {
        "m1": ("the latest snapshot",),
        "b1": ("not in the main ancestry: nothing is known of its readers",),
    }


def test_table_known_only_by_a_branch_has_no_version(server: Server) -> None:
    server.post(appended("ingest", 2, T, "b1", branch="dev"))

    assert server.versions(T, consistency="weak", status=409)["code"] == "no_version"
    assert lines(server) == ([], ["b1"])


@ASIDE
def test_branch_snapshot_joins_main_when_main_continues_from_it(
    server: Server, aside: JSON
) -> None:
    """Main is set to a branch, and a commit follows on top."""
    server.post(appended("ingest", 1, T, "m1"))
    server.group("d", T)
    server.post(appended("ingest", 2, T, "b1", "m1", **aside), appended("ingest", 3, T, "m2", "b1"))

    assert lines(server) == (["m1", "b1", "m2"], [])
    assert (server.snapshots(T), server.barriers(T)) == ({T: "m2"}, {T: 3})


@ASIDE
def test_snapshot_read_on_main_belongs_to_main(server: Server, aside: JSON) -> None:
    """The order of the events does not matter."""
    server.post(appended("ingest", 1, T, "m1"))
    server.group("d", T)
    events = [appended("ingest", 2, T, "b1", "m1", **aside), read(3, "b1", branch="main")]
    server.post(*events)

    assert lines(server) == (["m1", "b1"], [])
    assert (server.snapshots(T), server.barriers(T)) == ({T: "b1"}, {T: 2})


def test_snapshot_first_reported_on_main_stays_on_main(server: Server) -> None:
    server.post(
        appended("ingest", 1, T, "m1"),
        read(3, "b1", branch="main"),
        appended("ingest", 2, T, "b1", branch="dev"),
    )

    assert lines(server) == (["m1", "b1"], [])


def test_reading_a_branch_marks_its_snapshot_as_branch_only(server: Server) -> None:
    """The commit itself came from a writer that sends no events."""
    server.post(appended("ingest", 1, T, "m1"), read(3, "b1", branch="dev"), read(4, "b1"))

    assert server.snapshots(T, consistency="weak") == {T: "m1"}


def test_snapshot_ids_may_contain_the_separator_character(server: Server) -> None:
    server.post(
        appended("ingest", 1, T, "m\x1f1"), appended("ingest", 2, T, "b1", "m\x1f1", branch="dev")
    )
    ancestry, others = lines(server)

    assert (len(ancestry), others) == (1, ["b1"])
