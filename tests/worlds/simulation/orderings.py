"""One set of events in many orders, repeated and cut into batches, folded by the core alone.

Each leaves the rows that a store has.

A tenth of a millisecond for each event, so that a hundred thousand orders take a minute. What the
store finds out from rows is no fold over events, and left out here: the ids and names that a group
of datasets shares (`store/ingest/labels.py`), and which job a run belongs to
(`store/lineage/owner_relations.py`).
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine

from store.test_any_order import Arrival, take_all
from strandline.core.changes.compact import compact, fold_rows
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.lineage import EventChange
from strandline.core.changes.rows import (
    FOLDS,
    DatasetSeen,
    EdgeSeen,
    EdgesUsed,
    FacetBody,
    FacetSeen,
    FacetSetUsed,
    JobRelation,
    SetFacet,
)
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.store.ingest.unseen_rows import only_news
from strandline.store.ingest.writer_state import Caches
from strandline.store.sql.engine import migrate
from worlds.builders import encode
from worlds.simulation.databases import Observer, quick_engine
from worlds.simulation.histories import history, received

Row = tuple[Any, ...]
Tables = dict[type[Any], set[Row]]
Batches = list[list[int]]
LABELS = ("canonical_id", "place_id", "catalog", "database_name", "table_name")
EVENTS = (2, 9)  # of a history
OF_EACH = 50  # orders of a history


class OrderStore(NamedTuple):
    """A store that takes histories one event after the other, and the observer of its file."""

    engine: Engine
    observer: Observer


@contextmanager
def order_store(folder: Path) -> Iterator[OrderStore]:
    """Make an empty store in a folder."""
    file = folder / "orders.db"
    engine = quick_engine(file)
    migrate(engine)
    observer = Observer(file)
    yield OrderStore(engine, observer)
    observer.close()
    engine.dispose()


def first_wrong_order(store: OrderStore, first: int, orders: int, now: datetime) -> str:
    """Return the first history with an order that leaves other rows than the store has, '' if none has one."""
    for seed in range(first, first + orders // OF_EACH):
        arrivals, chance = events_of(seed, now), random.Random(seed)
        expected, statements = (
            stored(store.engine, store.observer, arrivals),
            statements_of(arrivals),
        )
        for _ in range(OF_EACH):
            batches = order_of(chance, len(arrivals))
            if wrong := difference(expected, folded(statements, batches)):
                return f"history {seed} as {batches}: {wrong}"
    return ""


def events_of(seed: int, now: datetime) -> list[Arrival]:
    """A history by a seed; in every other one several events have one time."""
    chance = random.Random(f"orders {seed}")
    found = history(chance, now, *EVENTS)
    if seed % 2:
        times = [one["eventTime"] for one, _ in found]
        found = [(one | {"eventTime": chance.choice(times)}, at) for one, at in found]
    return [(one, received(at, now)) for one, at in found]


def order_of(chance: random.Random, count: int) -> Batches:
    """The events in an order, half of them again, in batches.

    As the places of a history of so many.
    """
    places = [*range(count), *chance.sample(range(count), count // 2)]
    chance.shuffle(places)
    batches = []
    while places:
        size = chance.randint(1, count)
        batches.append(places[:size])
        del places[:size]
    return batches


def statements_of(arrivals: Iterable[Arrival]) -> list[Sequence[EventChange]]:
    """Return the statements of each event."""
    memo, found = Caches().memory, list[Sequence[EventChange]]()
    for one, at in arrivals:
        body = encode(one)
        event, _ = decoded(body)
        found.append(
            changes_of(event, Stamp.of(event.at, content_hash(body), micros_of(at)), memo).changes
        )
    return found


def folded(statements: Sequence[Sequence[EventChange]], batches: Batches) -> Tables:
    """The rows that the batches leave, one after the other."""
    caches, held = Caches(), dict[type[Any], list[Any]]()
    for batch in batches:
        rows = only_news(compact([one for place in batch for one in statements[place]]), caches)
        caches.commit()
        for kind, new in rows.items():
            held[kind] = fold_rows(kind, [*held[kind], *new]) if kind in held else new
    return in_use({kind: set(map(tuple, held.get(kind, ()))) for kind in FOLDS})


def stored(engine: Engine, observer: Observer, arrivals: Sequence[Arrival]) -> Tables:
    """The rows of a store that took the events one by one, in order; `observer` reads its file."""
    take_all(engine, arrivals, range(len(arrivals)))
    queries = {
        kind: f"SELECT {', '.join(kind._fields)} FROM {fold.table}" for kind, fold in FOLDS.items()
    }
    return in_use({kind: set(observer.rows(query)) for kind, query in queries.items()})


def in_use(tables: Tables) -> Tables:
    """The rows without labels, and without those that nothing leads to any more.

    How many of these there are, the order decides.
    """
    sets = {row[0] for row in _named(tables, EdgesUsed, "set_hash")}
    names = tuple(name for name in DatasetSeen._fields if name not in LABELS)
    left_out: Tables = {kind: set() for kind in (FacetBody, SetFacet, FacetSetUsed, JobRelation)}
    return (
        tables
        | left_out
        | {
            DatasetSeen: set(_named(tables, DatasetSeen, *names)),
            FacetSeen: _facets(tables),
            EdgeSeen: {row for row in tables[EdgeSeen] if row[0] in sets},
        }
    )


def _facets(tables: Tables) -> set[Row]:
    """The newest facets by the hash of their content, in rows of their own or in sets.

    Which of the two, a writer's memory decides.
    """
    held = [(row[:3], row[3:5], row[6:]) for row in tables[FacetSeen]]
    sets = defaultdict[int, list[SetFacet]](list)
    for row in tables[SetFacet]:
        sets[row[0]].append(SetFacet(*row))
    for entity, set_id, at in tables[FacetSetUsed]:
        held += [
            ((entity, one.key, one.kind), (at, one.hash), (one.deleted, "")) for one in sets[set_id]
        ]
    newest = {place: (stamp, rest) for place, stamp, rest in sorted(held, key=itemgetter(1))}
    return {(*place, *stamp, *rest) for place, (stamp, rest) in newest.items()}


def _named(tables: Tables, kind: type[Any], *names: str) -> Iterable[Row]:
    """These columns of the rows of a kind."""
    places = [kind._fields.index(name) for name in names]
    return (tuple(row[place] for place in places) for row in tables[kind])


def difference(expected: Tables, found: Tables) -> str:
    """The first kind of rows that are not the same, '' if all are."""
    for kind, rows in expected.items():
        if rows != found[kind]:
            return f"{kind.__name__}: {sorted(rows - found[kind], key=repr)} became {sorted(found[kind] - rows, key=repr)}"
    return ""
