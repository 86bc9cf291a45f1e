"""The upkeep of the search's tables, in the transaction that changes a name or a text.

`fill_index` writes them whole after a rebuild.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Delete,
    Engine,
    Select,
    Table,
    bindparam,
    delete,
    exists,
    insert,
    select,
    text,
)

from strandline.core.changes.compact import Rows
from strandline.core.changes.rows import DatasetSeen, EdgesUsed, JobSeen
from strandline.core.openlineage.facets import DATASET, JOB, RUN
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import run_templates, template_edges
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.schema.search_tables import search_names, search_texts
from strandline.store.search.changed_facets import FacetPlace
from strandline.store.search.finding import (
    APPLICATION,
    COLUMN,
    DATASET_NAME,
    DATASET_TAG,
    JOB_NAME,
    JOB_TAG,
    NAMES,
    SQL,
    START,
    fold,
    found_by_name,
    found_by_text,
)
from strandline.store.search.texts import SearchEntry, canonical_ids, entries_of, table_of
from strandline.store.sql.id_lists import among_given
from strandline.store.sql.shared_settings import agree, agreed

KIND_OF = {
    (RUN, "spark_applicationDetails"): APPLICATION,
    (DATASET, "schema"): COLUMN,
    (DATASET, "tags"): DATASET_TAG,
    (JOB, "sql"): SQL,
    (JOB, "tags"): JOB_TAG,
}
OF_DATASETS, OF_JOBS = (DATASET_NAME, DATASET_TAG, COLUMN), (JOB_NAME, JOB_TAG, SQL)
OF_RUNS = (APPLICATION,)
KINDS = (*OF_DATASETS, *OF_JOBS, *OF_RUNS)
AT_ONCE = 5_000
# in store_settings while the index is made anew: the last row it has; DONE or absent: it is whole
FILLED = "search_filled"
DONE = "done"
FILL_LOCK = 0x7365_6172

# The tables that the index is filled from, in this order, each by its ids.
FILLING = {"datasets": (datasets, OF_DATASETS), "jobs": (jobs, OF_JOBS), "runs": (runs, OF_RUNS)}
FOLLOWING = {"datasets": "jobs:-1", "jobs": "runs:-1", "runs": DONE}

IsNew = Callable[[str, object], bool]


@dataclass(slots=True)
class Touched:
    """The datasets, jobs and runs whose texts a batch may change, by kind of entry."""

    ids: dict[int, set[int]] = field(default_factory=dict)

    def add(self, kind: int, ids: Iterable[int]) -> None:
        """Note entities whose words of this kind may be others."""
        self.ids.setdefault(kind, set()).update(ids)


def touched_by(
    connection: Connection, rows: Rows, is_new: IsNew, changed: Iterable[FacetPlace]
) -> Touched:
    """Return the changes that these rows make once written.

    `is_new` says whether the writer has not stored a key before.

    Most rows change nothing: a name that is there, and a facet as it is stored (`changed` are the
    others).
    """
    ids_by_kind = Touched()
    named = (
        (DATASET_NAME, [dataset_seen.id for dataset_seen in rows.of(DatasetSeen)], datasets),
        (JOB_NAME, [job_seen.id for job_seen in rows.of(JobSeen)], jobs),
    )
    for kind, ids, table in named:
        if unknown := [id_ for id_ in ids if is_new("name sought", id_)]:
            ids_by_kind.add(
                kind,
                set(unknown).difference(
                    connection.scalars(_with_ids(table), {"ids": unknown}).all()
                ),
            )
    for place in changed:
        if (place.kind, place.key) in KIND_OF:
            ids_by_kind.add(KIND_OF[place.kind, place.key], (place.entity_id,))
    new = ids_by_kind.ids.get(DATASET_NAME, set())
    ids_by_kind.add(COLUMN, _new_sinks(connection, rows, is_new, new))
    return ids_by_kind


@cache
def _with_ids(table: Table) -> Select[Any]:
    return select(table.c.id).where(among_given(table.c.id, "ids"))


def _new_sinks(connection: Connection, rows: Rows, is_new: IsNew, new: Collection[int]) -> set[int]:
    """Return the datasets into which a run makes a new set of edges."""
    made = {(edges.sink_id, edges.set_hash) for edges in rows.of(EdgesUsed)}
    unknown = {edges for edges in made if is_new("edges sought", edges)}
    known_sinks = [sink for sink, _ in unknown if sink not in new]
    if known_sinks:
        stored = connection.execute(_edges_of(), {"sinks": known_sinks})
        unknown -= {(row.sink_id, bytes(row.set_hash)) for row in stored}
    return {sink for sink, _ in unknown}


@cache
def _edges_of() -> Select[Any]:
    """Return the sets of edges that runs have made into these sinks."""
    edges = template_edges.c
    is_used = exists().where(run_templates.c.template_id == edges.template_id)
    sets = select(edges.sink_id, edges.set_hash).distinct()
    return sets.where(among_given(edges.sink_id, "sinks"), is_used)


def index_touched(connection: Connection, rows_touched: Touched) -> None:
    """Write the texts that the touched entities have now."""
    for kind, ids in sorted(rows_touched.ids.items()):
        if ids:
            _index(connection, kind, ids)


def index_renamed(connection: Connection, ids: Collection[int]) -> None:
    """Write the texts of datasets that are in another group now, or in another place."""
    for kind in OF_DATASETS:
        _index(connection, kind, ids)


def index_again(connection: Connection, ids: Collection[int]) -> None:
    """Write all texts of these entities anew, so that nothing is left of forgotten words."""
    for kind in KINDS:
        _index(connection, kind, ids)


def entities_with(connection: Connection, text: str) -> set[int]:
    """Return the entities that the search finds for a text, whatever they are now."""
    ids: set[int] = set()
    for kind in KINDS:
        if kind in NAMES:
            ids.update(hit.id for hit in found_by_name(connection, kind, fold(text), None))
        else:
            ids.update(hit.id for hit in found_by_text(connection, kind, fold(text), -1))
    return ids


def _index(connection: Connection, kind: int, ids: Collection[int]) -> None:
    """Write the texts of a kind that some entities have now, in place of those that they had.

    On PostgreSQL the entities are locked first: of two writers at once, the second sees what the
    first has written.
    """
    owners = set(ids)
    if kind in OF_DATASETS:
        owners |= canonical_ids(connection, ids)
    if connection.dialect.name == "postgresql":
        connection.execute(_locked(table_of(kind)), {"ids": list(owners)}).all()
    stored = search_names if kind in NAMES else search_texts
    connection.execute(_stale(stored), {"of": kind, "ids": list(owners)})
    rows = [_row(kind, entry) for entry in entries_of(connection, kind, owners) if entry.texts]
    if rows:
        connection.execute(insert(stored), rows)


@cache
def _locked(table: Table) -> Select[Any]:
    return _with_ids(table).order_by(table.c.id).with_for_update()


@cache
def _stale(stored: Table) -> Delete:
    return delete(stored).where(stored.c.kind == bindparam("of"), among_given(stored.c.id, "ids"))


def _row(kind: int, entry: SearchEntry) -> dict[str, Any]:
    texts = [fold(text.replace("\0", "\ufffd")) for text in entry.texts]
    row = {
        "kind": kind,
        "id": entry.id,
        "namespace_id": entry.namespace_id,
        "texts": "\n".join(_longest(texts) if kind in NAMES else texts),
    }
    return row | {"start": texts[0][:START], "size": len(texts[0])} if kind in NAMES else row


def _longest(texts: Sequence[str]) -> list[str]:
    """Return the texts that no other contains: a part of a shorter one is a part of it."""
    longest: list[str] = []
    for name in sorted(dict.fromkeys(texts), key=len, reverse=True):
        if not any(name in longer for longer in longest):
            longest.append(name)
    return longest


def is_filled(connection: Connection) -> bool:
    """Return whether the index has everything."""
    return agreed(connection).get(FILLED, DONE) == DONE


def fill_index(engine: Engine) -> None:
    """Make the index that `begin_anew` emptied, a page of rows a transaction.

    Several processes share the work.
    """
    while not _fill_some(engine):
        pass


def begin_anew(connection: Connection) -> None:
    """Let the whole index be made again: rows were written by other means than events."""
    connection.execute(delete(search_names))
    connection.execute(delete(search_texts))
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
        table, kinds = FILLING[name]
        page = select(table.c.id).where(table.c.id > int(after)).order_by(table.c.id).limit(AT_ONCE)
        ids = list(connection.scalars(page))
        for kind in kinds if ids else ():
            _index(connection, kind, ids)
        following = f"{name}:{ids[-1]}" if ids else FOLLOWING[name]
        agree(connection, FILLED, following)
    return following == DONE
