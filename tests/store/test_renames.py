"""Renames of datasets: the facet lifecycleStateChange with RENAME, from any producer."""

from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.store.ingest.labels import relabel
from strandline.store.lineage.joined_names import joined_names
from strandline.store.lineage.lookup import node_called, node_of
from worlds.builders import Json, dataset, event, rows, store, symlink

NAMESPACE = "hive://metastore:9083"
ORDERS, ARCHIVE = "bank.orders", "bank.archive"


def table(name: str, before: str | None = None) -> Json:
    if before is None:
        return dataset(name, NAMESPACE)
    facet = {
        "lifecycleStateChange": "RENAME",
        "previousIdentifier": {"namespace": NAMESPACE, "name": before},
    }
    return dataset(name, NAMESPACE, lifecycleStateChange=facet)


def renamed(second: int, old: str, new: str, state: str = "COMPLETE") -> Json:
    return event(state, second, f"rename {old}", second, outputs=[table(new, old)])


def written(second: int, name: str, job: str = "load") -> Json:
    return event("COMPLETE", second, job, second, outputs=[table(name)])


def canonical_names(engine: Engine) -> dict[str, str]:
    query = (
        "SELECT d.name, c.name FROM datasets d JOIN datasets c ON c.id = d.canonical_id ORDER BY 1"
    )
    return dict(rows(engine, query))


BEFORE, RENAME, AFTER = written(1, ORDERS), renamed(2, ORDERS, ARCHIVE), written(3, ARCHIVE)
READ = event("COMPLETE", 4, "report", 4, inputs=[table(ORDERS)])  # began before the rename


def orders_of(*events: Json) -> list[Any]:
    """Return each order of these; `make test` sees those that begin with another one each."""
    orders = [events[place:] + events[:place] for place in range(len(events))]
    others = [one for one in permutations(events) if one not in orders]
    return [*orders, *(pytest.param(one, marks=pytest.mark.slow) for one in others)]


@pytest.mark.parametrize("order", orders_of(BEFORE, RENAME, AFTER, READ))
def test_a_renamed_dataset_keeps_its_history(engine: Engine, order: tuple[Json, ...]) -> None:
    for one in order:
        store(engine, [one])
    store(engine, [RENAME])

    assert canonical_names(engine) == {ORDERS: ARCHIVE, ARCHIVE: ARCHIVE}
    with engine.connect() as connection:
        nodes = {node_of(connection, f"dataset:{NAMESPACE}:{name}") for name in (ORDERS, ARCHIVE)}
        assert {node.name for node in nodes} == {ARCHIVE}
        assert node_called(connection, ORDERS).name == ARCHIVE
        assert node_called(connection, ARCHIVE).name == ARCHIVE
        ((names,), _) = joined_names(connection, 10)
        assert [(one.name, one.reasons) for one in names.others] == [(ORDERS, ("renamed",))]
    with engine.begin() as connection:
        assert relabel(connection) == 0


@pytest.mark.parametrize("order", orders_of(BEFORE, RENAME, AFTER, written(9, ORDERS)))
def test_a_rename_joins_nothing_once_the_old_name_is_written_again(
    engine: Engine, order: tuple[Json, ...]
) -> None:
    for one in order:
        store(engine, [one])

    former = f"{ORDERS} (renamed to {ARCHIVE} at 2026-11-20T12:00:02+00:00)"
    assert canonical_names(engine) == {ORDERS: ORDERS, ARCHIVE: ARCHIVE, former: ARCHIVE}


@pytest.mark.parametrize("order", [1, -1])
def test_tables_that_swap_their_names_stay_apart(engine: Engine, order: int) -> None:
    swap = [
        written(1, "bank.a"),
        written(1, "bank.b", "other"),
        renamed(2, "bank.a", "bank.spare"),
        renamed(3, "bank.b", "bank.a"),
        renamed(4, "bank.spare", "bank.b"),
    ]
    store(engine, swap[::order])

    names = canonical_names(engine)
    assert names["bank.a"] != names["bank.b"]


def at_place(path: str, link: str, before: str | None = None) -> Json:
    """A table at a place, with its name in a catalog."""
    facets = table(link, before)["facets"]
    return dataset(path, "file", symlinks=symlink(link, NAMESPACE), **facets)


FORMER_ORDERS = f"{ORDERS} (renamed to file:/w/1 at 2026-11-20T12:00:02+00:00)"
MOVED = event("COMPLETE", 2, "rename", 2, outputs=[at_place("/w/1", ARCHIVE, ORDERS)])
CREATED = event("COMPLETE", 1, "load", 1, outputs=[at_place("/w/1", ORDERS)])
AGAIN = event("COMPLETE", 3, "load", 3, outputs=[at_place("/w/2", ORDERS)])


@pytest.mark.parametrize("order", orders_of(CREATED, MOVED, AGAIN))
def test_table_made_under_the_name_of_a_renamed_one_is_another(
    engine: Engine, order: tuple[Json, ...]
) -> None:
    for one in order:
        store(engine, [one])

    joined = {
        ARCHIVE: "/w/1", "/w/1": "/w/1", ORDERS: "/w/2", "/w/2": "/w/2", FORMER_ORDERS: "/w/1"
    }  # fmt: skip
    assert canonical_names(engine) == joined
    with engine.begin() as connection:
        assert relabel(connection) == 0
        connection.exec_driver_sql("DELETE FROM job_relations")
        assert relabel(connection) == 0


@pytest.mark.parametrize("order", [1, -1])
def test_table_that_takes_the_place_of_another_by_renames_is_not_joined_with_it(
    engine: Engine, order: int
) -> None:
    events = [
        CREATED,
        event("COMPLETE", 4, "build", 1, outputs=[at_place("/w/2", "bank.built")]),
        MOVED,
        event("COMPLETE", 5, "rename", 3, outputs=[at_place("/w/2", ORDERS, "bank.built")]),
    ]
    for one in events[::order]:
        store(engine, [one])

    names = canonical_names(engine)
    assert names == {
        ARCHIVE: "/w/1", "/w/1": "/w/1", ORDERS: "/w/2", "bank.built": "/w/2", "/w/2": "/w/2",
        FORMER_ORDERS: "/w/1",
    }  # fmt: skip


def test_a_dataset_that_is_renamed_twice_and_back_has_its_last_name(engine: Engine) -> None:
    store(engine, [BEFORE, renamed(2, ORDERS, ARCHIVE), renamed(3, ARCHIVE, "bank.old")])

    assert set(canonical_names(engine).values()) == {"bank.old"}

    store(engine, [renamed(4, "bank.old", ORDERS)])

    assert set(canonical_names(engine).values()) == {ORDERS}


@pytest.mark.parametrize("state", ["START", "FAIL", "ABORT"])
def test_a_rename_counts_when_it_is_done(engine: Engine, state: str) -> None:
    store(engine, [BEFORE, renamed(2, ORDERS, ARCHIVE, state)])

    assert canonical_names(engine) == {ORDERS: ORDERS, ARCHIVE: ARCHIVE}


def test_rename_can_be_reported_without_a_job(engine: Engine) -> None:
    told = event("COMPLETE", 2, "none", 2)
    del told["run"], told["job"], told["eventType"]
    told |= {"inputs": None, "outputs": None, "dataset": table(ARCHIVE, ORDERS)}
    store(engine, [BEFORE, told])

    assert canonical_names(engine) == {ORDERS: ARCHIVE, ARCHIVE: ARCHIVE}


def test_rename_reported_twice_counts_once(engine: Engine) -> None:
    store(engine, [BEFORE, renamed(2, ORDERS, ARCHIVE), renamed(3, ORDERS, ARCHIVE)])

    assert rows(engine, "SELECT count(*) FROM dataset_aliases WHERE type = 'RENAMED'") == [(1,)]
    assert canonical_names(engine) == {ORDERS: ARCHIVE, ARCHIVE: ARCHIVE}
