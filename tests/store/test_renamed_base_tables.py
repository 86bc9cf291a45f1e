"""A base table that is renamed goes on under its new name, with its barriers and versions."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.versions_server.events import LAKE, committed, dataset, event, facet, started
from strandline.core.versions.strong_weak import strong
from strandline.runtime.follower import Follower
from strandline.store.ingest.take import Caches, Record, take
from worlds.builders import encode

A, B, T = (LAKE, "db.a"), (LAKE, "db.b"), (LAKE, "db.t")


def renamed(before: str, after: str, at: float) -> dict[str, Any]:
    """The end of a run that renamed a table."""
    made = dataset(after, "output")
    made["facets"]["lifecycleStateChange"] = facet(
        {
            "lifecycleStateChange": "RENAME",
            "previousIdentifier": {"namespace": LAKE, "name": before},
        }
    )
    return event("COMPLETE", f"rename_{at:.0f}", at, outputs=[made])


def micro_batch(job: str, number: int, reads: str | None, writes: str) -> dict[str, Any]:
    """A micro-batch of a job, of which each run has names of its own: 10 s a barrier."""
    read = {f"db.{reads}": f"{number}"} if reads else {}
    at = 10.0 * number + (5 if reads else 0)
    return committed(job, at, number, read, {f"db.{writes}": f"{number}"}, group="d", run=number)


def run_of(job: str, number: int, reads: str | None, writes: str) -> dict[str, Any]:
    at = 10.0 * number - 2
    tables = [f"db.{reads}"] if reads else []
    return started(job, at, tables, [f"db.{writes}"], group="d", run=number)


def step(number: int, base: str) -> list[dict[str, Any]]:
    """A barrier: a stream fills the base table, another one makes t of it."""
    return [
        run_of("fill", number, None, base),
        micro_batch("fill", number, None, base),
        run_of("make", number, base, "t"),
        micro_batch("make", number, base, "t"),
    ]


def follow(engine: Engine, batches: Sequence[Sequence[dict[str, Any]]]) -> Follower:
    """Take events, each batch in a transaction of its own."""
    follower, caches = Follower(engine), Caches()
    for batch in batches:
        with engine.begin() as connection:
            take(connection, [Record(encode(one), datetime.now(UTC)) for one in batch], caches)
            follower.take_news(connection)
        caches.commit()
    return follower


STEPS = [step(1, "a"), step(2, "a"), [renamed("db.a", "db.b", 25)], step(3, "b")]


@pytest.mark.parametrize("order", list(permutations(range(4)))[::3])
def test_barriers_go_on_under_the_new_name_in_any_order_of_events(
    engine: Engine, order: tuple[int, ...]
) -> None:
    follower = follow(engine, [STEPS[number] for number in order])

    for server in (follower, Follower(engine)):
        with server.model() as model:
            assert model.done[B].order == [1, 2, 3]
            assert A not in model.group_of
            assert [one.barrier for one in strong(model, [B, T])] == [3, 3]
            assert [one.snapshot for one in strong(model, [B, T])] == ["3", "3"]
            assert model.done[T].of[1].used[0].table == B


def test_barriers_go_on_where_all_comes_at_once(engine: Engine) -> None:
    follower = follow(engine, [[one for batch in STEPS for one in batch]])

    with follower.model() as model:
        assert model.done[B].order == [1, 2, 3]
        assert A not in model.group_of


AGAIN = started("other", 40, [], ["db.a"], group="e")
OTHERS = committed("other", 41, 7, {}, {"db.a": "x"}, group="e")


@pytest.mark.parametrize("order", list(permutations(range(5)))[::11])
def test_later_writes_under_the_old_name_are_another_table(
    engine: Engine, order: tuple[int, ...]
) -> None:
    batches = [*STEPS, [AGAIN, OTHERS]]
    follower = follow(engine, [batches[number] for number in order])

    with follower.model() as model:
        assert model.done[B].order == [1, 2, 3]
        assert (model.done[A].order, model.group_of[A]) == ([7], "e")
        assert [one.barrier for one in strong(model, [B, T])] == [3, 3]


def filled(job: str, number: int, table: str, at: float) -> list[dict[str, Any]]:
    """A micro-batch of a job of its own group, which names its snapshots after itself."""
    made = {f"db.{table}": f"{job}{number}"}
    return [
        started(job, at - 1, [], [f"db.{table}"], group=job, run=number),
        committed(job, at, number, {}, made, group=job, run=number),
    ]


SWAP = [
    filled("one", 1, "a", 10),
    [*filled("two", 1, "b", 20), *filled("two", 2, "b", 30)],
    [renamed("db.a", "db.tmp", 50)],
    [renamed("db.b", "db.a", 51)],
    [renamed("db.tmp", "db.b", 52)],
    [*filled("one", 2, "b", 60), *filled("one", 3, "b", 65)],
    filled("two", 3, "a", 70),
]
REPLACED = [
    [*filled("two", 1, "b", 10), *filled("two", 2, "b", 12)],
    filled("one", 1, "a", 20),
    [renamed("db.b", "db.old", 50)],
    [renamed("db.a", "db.b", 51)],
    [*filled("one", 2, "b", 60), *filled("one", 3, "b", 65)],
]


def some_orders(
    batches: Sequence[Sequence[dict[str, Any]]], every: int
) -> list[Sequence[Sequence[dict[str, Any]]]]:
    """Return some orders of batches, and three of them once more in one transaction."""
    orders = list(permutations(batches))[7::every]
    return [*orders, *([[one for batch in order for one in batch]] for order in orders[:3])]


def barriers_of(follower: Follower) -> dict[str, dict[int, str]]:
    """Return the snapshots that carry barriers, by the names of their tables."""
    with follower.model() as model:
        return {
            name: {barrier: done.of[barrier].snapshot for barrier in done.order}
            for (_, name), done in sorted(model.done.items())
            if done.order
        }


BEGUN_ANEW = [
    (SWAP, {"db.a": {3: "two3"}, "db.b": {2: "one2", 3: "one3"}}),
    (REPLACED, {"db.b": {2: "one2", 3: "one3"}}),
]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("batches", "barriers"), BEGUN_ANEW)
def test_barriers_start_again_under_a_name_used_before(
    engine: Engine,
    batches: Sequence[Sequence[dict[str, Any]]],
    barriers: dict[str, dict[int, str]],
    *,
    at_once: bool,
) -> None:
    every = [one for batch in batches for one in batch]
    follower = follow(engine, [every] if at_once else batches)

    for server in (follower, Follower(engine)):
        assert barriers_of(server) == barriers


@pytest.mark.parametrize(
    ("batches", "barriers"),
    [
        (order, barriers)
        for (batches, barriers), every in zip(BEGUN_ANEW, (700, 13), strict=True)
        for order in some_orders(batches, every)
    ],
)
def test_no_order_of_events_gives_a_name_the_barriers_of_another_table(
    engine: Engine,
    batches: Sequence[Sequence[dict[str, Any]]],
    barriers: dict[str, dict[int, str]],
) -> None:
    follower = follow(engine, batches)

    for server in (follower, Follower(engine)):
        for name, completed in barriers_of(server).items():
            assert completed.items() <= barriers[name].items()


def at_place(place: str, name: str, barrier: int | None = None) -> dict[str, Any]:
    """A table that facts call by its place, with its name in a catalog, and its snapshot."""
    made = {"snapshotId": f"{barrier}", "format": "iceberg", "barrierId": barrier}
    one = dataset(place, "output", made if barrier is not None else None)
    link = {"namespace": LAKE, "name": name, "type": "TABLE"}
    one["facets"]["symlinks"] = facet({"identifiers": [link]})
    return one


def test_name_that_moves_between_places_moves_no_barriers(engine: Engine) -> None:
    """Iceberg's tables stay where they are; the other table with that name moves its place later."""

    def filled(job: str, number: int, place: str, name: str, at: float) -> list[dict[str, Any]]:
        begins = started(job, at - 1, [], [], group=job, run=number)
        commits = committed(job, at, number, {}, {}, group=job, run=number)
        begins["outputs"] = [at_place(place, name)]
        commits["outputs"] = [at_place(place, name, number)]
        return [begins, commits]

    moved = renamed("db.a", "/wh/p", 25)
    moved["outputs"][0]["facets"]["symlinks"] = at_place("", "db.b")["facets"]["symlinks"]
    again = {**moved, "eventTime": renamed("db.a", "/wh/p", 26)["eventTime"]}
    follower = follow(
        engine,
        [
            filled("one", 1, "/wh/p", "db.a", 10),
            [moved],
            filled("two", 1, "/wh/q", "db.a", 30),
            [again],
            filled("one", 2, "/wh/p", "db.b", 40),
            [renamed("/wh/q", "/wh/r", 45)],
            filled("two", 2, "/wh/r", "db.c", 50),
        ],
    )

    for server in (follower, Follower(engine)):
        with server.model() as model:
            assert model.done[LAKE, "/wh/p"].order == [1, 2]
            assert model.done[LAKE, "/wh/r"].order == [1, 2]
            assert model.group_of[LAKE, "/wh/r"] == "two"
            assert (LAKE, "/wh/q") not in model.group_of
