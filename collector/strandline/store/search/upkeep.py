"""Keeping the index of the search in step with the store, in the transaction that changes a name or a text.

What is new is added as small pages; `join_small_pages` makes large ones of many. Whatever an entity's words were before stays in
older pages until then, which shows nobody anything (store/search/texts.py). `fill_index` makes the whole index after a rebuild.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Engine, Select, Table, bindparam, delete, func, select, text

from strandline.core.changes.compact import Rows
from strandline.core.changes.rows import DatasetSeen, EdgesUsed, JobSeen
from strandline.core.openlineage.facets import DATASET, JOB
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import edge_uses
from strandline.store.schema.run_tables import jobs
from strandline.store.schema.search_tables import search_pages
from strandline.store.search.changed_facets import FacetPlace
from strandline.store.search.pages import (
    COLUMN,
    DATASET_NAME,
    DATASET_TAG,
    FULL,
    JOB_NAME,
    JOB_TAG,
    SQL,
    WordPage,
    insert_entries,
)
from strandline.store.search.texts import canonical_ids, entries_of
from strandline.store.sql.id_lists import among, among_given
from strandline.store.sql.shared_settings import agree, agreed

KIND_OF = {
    (DATASET, "schema"): COLUMN,
    (DATASET, "tags"): DATASET_TAG,
    (JOB, "sql"): SQL,
    (JOB, "tags"): JOB_TAG,
}
OF_DATASETS, OF_JOBS = (DATASET_NAME, DATASET_TAG, COLUMN), (JOB_NAME, JOB_TAG, SQL)
MOST_SMALL = 64  # pages of a kind and namespace that are not full
AT_ONCE = 5_000
# in store_settings while the index is made anew: the last row it has; DONE or absent: it is whole
FILLED = "search_filled"
DONE = "done"
FILL_LOCK = 0x7365_6172

IsNew = Callable[[str, object], bool]


@dataclass(slots=True)
class Touched:
    """The datasets, under any name, and jobs of which a batch may change what is looked for, by kind of entry."""

    ids: dict[int, set[int]] = field(default_factory=dict)

    def add(self, kind: int, ids: Iterable[int]) -> None:
        """Note entities whose words of this kind may be others."""
        self.ids.setdefault(kind, set()).update(ids)


def touched_by(
    connection: Connection, rows: Rows, is_new: IsNew, changed: Iterable[FacetPlace]
) -> Touched:
    """What rows that are about to be written change.

    `is_new` says whether the writer has not stored a key before.

    Most rows change nothing: a name that is there, and a facet as it is stored (`changed` are the
    others).
    """
    touched = Touched()
    named = (
        (DATASET_NAME, [one.id for one in rows.of(DatasetSeen)], datasets),
        (JOB_NAME, [one.id for one in rows.of(JobSeen)], jobs),
    )
    for kind, ids, table in named:
        if unknown := [one for one in ids if is_new("name sought", one)]:
            touched.add(
                kind,
                set(unknown).difference(
                    connection.scalars(_with_ids(table), {"ids": unknown}).all()
                ),
            )
    for place in changed:
        if (place.kind, place.key) in KIND_OF:
            touched.add(KIND_OF[place.kind, place.key], (place.entity_id,))
    new = touched.ids.get(DATASET_NAME, set())
    touched.add(COLUMN, _new_sinks(connection, rows, is_new, new))
    return touched


@cache
def _with_ids(table: Table) -> Select[Any]:
    return select(table.c.id).where(among_given(table.c.id, "ids"))


def _new_sinks(
    connection: Connection, rows: Rows, is_new: IsNew, new: Collection[int]
) -> Iterator[int]:
    """The datasets into which a run makes a set of edges that no run has made into them before."""
    for sink, set_hash in {(one.sink_id, one.set_hash) for one in rows.of(EdgesUsed)}:
        if is_new("edges sought", (sink, set_hash)) and (
            sink in new or not _is_used(connection, sink, set_hash)
        ):
            yield sink


def _is_used(connection: Connection, sink: int, set_hash: bytes) -> bool:
    return connection.execute(_uses(), {"sink": sink, "set": set_hash}).first() is not None


@cache
def _uses() -> Select[Any]:
    same = (edge_uses.c.sink_id == bindparam("sink"), edge_uses.c.set_hash == bindparam("set"))
    return select(edge_uses.c.sink_id).where(*same).limit(1)


def index_touched(connection: Connection, touched: Touched) -> bool:
    """Add what the touched entities have now; gives whether small pages should be joined."""
    crowded = False
    for kind, ids in sorted(touched.ids.items()):
        if ids:
            crowded |= _index(connection, kind, ids)
    return crowded


def index_renamed(connection: Connection, ids: Collection[int]) -> None:
    """Add what datasets have that are in another group now, or in another place."""
    for kind in OF_DATASETS:
        _index(connection, kind, ids)


def _index(connection: Connection, kind: int, ids: Collection[int]) -> bool:
    owners = canonical_ids(connection, ids) if kind in OF_DATASETS else ids
    namespaces = insert_entries(connection, kind, entries_of(connection, kind, owners))
    return bool(namespaces) and connection.execute(_crowded_of(), {"of": kind}).first() is not None


@cache
def _crowded_of() -> Select[Any]:
    return _crowded().where(search_pages.c.kind == bindparam("of"))


def _crowded() -> Select[Any]:
    """(kind, namespace) of which there are many small pages."""
    group = (search_pages.c.kind, search_pages.c.namespace_id)
    return (
        select(*group)
        .where(search_pages.c.size < FULL)
        .group_by(*group)
        .having(func.count() > MOST_SMALL)
    )


def join_small_pages(connection: Connection) -> None:
    """Make few pages of many, of what their entities have now. The caller keeps writers out."""
    for kind, namespace in connection.execute(_crowded()).all():
        small = (
            search_pages.c.kind == kind,
            search_pages.c.namespace_id == namespace,
            search_pages.c.size < FULL,
        )
        rows = connection.execute(
            select(search_pages.c.id, search_pages.c.words, search_pages.c.owners).where(*small)
        )
        pages = {row.id: WordPage(bytes(row.words), bytes(row.owners)).ids for row in rows}
        connection.execute(delete(search_pages).where(among(search_pages.c.id, list(pages))))
        ids = iter(sorted({id_ for page in pages.values() for id_ in page}))
        while some := list(islice(ids, AT_ONCE)):
            insert_entries(connection, kind, entries_of(connection, kind, some))


def index_again(connection: Connection, ids: Collection[int]) -> None:
    """Make all pages anew that hold one of these datasets or jobs, so that nothing is left of words that were forgotten.

    The caller keeps writers out.
    """
    touched = {*ids, *canonical_ids(connection, ids)}
    for kind in (*OF_DATASETS, *OF_JOBS):
        query = select(search_pages.c.id, search_pages.c.words, search_pages.c.owners).where(
            search_pages.c.kind == kind
        )
        held = {
            row.id: WordPage(bytes(row.words), bytes(row.owners)).ids
            for row in connection.execute(query)
        }
        hit = {id_: own for id_, own in held.items() if not touched.isdisjoint(own)}
        connection.execute(delete(search_pages).where(among(search_pages.c.id, list(hit))))
        again = iter(sorted(touched.union(*hit.values())))
        while some := list(islice(again, AT_ONCE)):
            insert_entries(connection, kind, entries_of(connection, kind, some))


def is_filled(connection: Connection) -> bool:
    """Whether the index has everything."""
    return agreed(connection).get(FILLED, DONE) == DONE


def fill_index(engine: Engine) -> None:
    """Make the index that `begin_anew` emptied, a page of rows a transaction.

    Several processes share the work.
    """
    while not _fill_some(engine):
        pass


def begin_anew(connection: Connection) -> None:
    """Let the whole index be made again: rows were written by other means than events."""
    connection.execute(delete(search_pages))
    agree(connection, FILLED, "")


def _fill_some(engine: Engine) -> bool:
    """Index the next rows; whether these were the last."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": FILL_LOCK})
        place = agreed(connection).get(FILLED, DONE)
        if place == DONE:
            return True
        name, _, after = (place or "datasets:-1").partition(":")
        table, kinds = (datasets, OF_DATASETS) if name == "datasets" else (jobs, OF_JOBS)
        page = select(table.c.id).where(table.c.id > int(after)).order_by(table.c.id).limit(AT_ONCE)
        ids = list(connection.scalars(page))
        for kind in kinds if ids else ():
            insert_entries(connection, kind, entries_of(connection, kind, ids))
        following = f"{name}:{ids[-1]}" if ids else {"datasets": "jobs:-1", "jobs": DONE}[name]
        agree(connection, FILLED, following)
    return following == DONE
