"""Delete rows and fold them again from the events that stay.

Where retention or an archive took events away, rows that only these made cannot be folded again.
What others still refer to (a dataset, a job, a run) then stays as it was, unless it is what is
forgotten.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, or_, select, text

from strandline.core.changes.compact import Rows, compact, fold_rows
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.lineage import EventChange
from strandline.core.changes.rows import (
    FOLDS,
    DatasetAlias,
    DatasetSeen,
    EdgesUsed,
    FacetSeen,
    JobRelation,
    JobSeen,
    NamespaceSeen,
    RelationSeen,
    RunSeen,
)
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.facets import DATASET
from strandline.store.forgetting.keys import CONTENT, Key, Keys, Row, as_read, key_in
from strandline.store.forgetting.subjects import Target
from strandline.store.ingest.labels import relabel
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.retention import UNUSED
from strandline.store.ingest.run_templates import IN_TEMPLATES, RunTemplates
from strandline.store.ingest.unseen_rows import only_news
from strandline.store.ingest.writer_state import Caches
from strandline.store.lineage.owner_relations import relate_owners
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import IS_RENAMED, run_parents, run_queries, runs
from strandline.store.search.upkeep import index_again
from strandline.store.sql.compression import expand
from strandline.store.sql.facet_rows import store_by_themselves
from strandline.store.sql.id_lists import among
from strandline.store.sql.upsert import apply

AT_ONCE = 2_000
_PACKED = ("body", "facet")  # columns
# Which part of a key names the dataset or job whose words the search finds.
_SOUGHT: dict[type[Any], int] = {DatasetSeen: 0, JobSeen: 0, FacetSeen: 0, EdgesUsed: 1}
# By which columns a thing is referred to. Namespaces last: what stays keeps its own.
_REFERRED: tuple[tuple[type[Any], tuple[str, ...]], ...] = (
    (DatasetSeen, (
        "run_relations.dataset_id", "job_relations.dataset_id", "run_edges.sink_id",
        "edge_columns.source_id", "dataset_aliases.dataset_id", "dataset_aliases.alias_id",
        "snapshots.dataset_id", "snapshot_uses.dataset_id",
    )),
    (RunSeen, (
        "run_relations.run_id", "run_edges.run_id", "run_parents.run_id",
        "run_parents.parent_run_id", "run_parents.root_run_id", "run_queries.run_id",
        "run_queries.owner_id", "snapshot_uses.run_id",
    )),
    (JobSeen, (
        "runs.job_id", "job_relations.job_id", "run_parents.parent_job_id",
        "run_parents.root_job_id",
    )),
    (NamespaceSeen, ("jobs.namespace_id", "datasets.namespace_id")),
)  # fmt: skip


class Counts(NamedTuple):
    """The numbers of deleted and of changed rows, by table."""

    gone: dict[str, int]
    changed: dict[str, int]


def fold_again(connection: Connection, target: Target, keys: Keys, caches: Caches) -> Counts:
    """Make the rows with these keys again."""
    store_by_themselves(connection, [key[0] for key in keys.get(FacetSeen, ())])
    before = {kind: dict(_held(connection, kind, key)) for kind, key in keys.items() if key}
    groups = _groups_of(connection, keys)
    templates = RunTemplates(lambda _kind, _key: True)
    for kind, rows in before.items():
        if (kind not in CONTENT or target.dataset_ids) and kind not in IN_TEMPLATES:
            _delete(connection, kind, _deletable(kind, rows, target))
    templates.take_out(connection, before.get(RelationSeen, ()), before.get(EdgesUsed, ()))
    templates.store(connection, _folded(connection, keys, caches))
    _relate(connection, keys)
    _drop_unused(connection)
    _restore(connection, target, before)
    if groups:
        relabel(connection, groups)
    index_again(
        connection,
        groups | {key[place] for kind, place in _SOUGHT.items() for key in keys.get(kind, ())},
    )
    return _compared(before, lambda kind: dict(_held(connection, kind, keys[kind])))


def _deletable(kind: type[Any], rows_found: Iterable[Key], target: Target) -> list[Key]:
    """Content may be others' as well: of it only goes what names a forgotten source."""
    return [key for key in rows_found if kind not in CONTENT or key[-1] in target.dataset_ids]


def _held(
    connection: Connection, kind: type[Any], keys: Iterable[Key]
) -> Iterator[tuple[Key, Row]]:
    """Yield the stored rows with these keys."""
    fold, mark = FOLDS[kind], _mark(connection)
    where = " AND ".join(f"{name} = {mark}" for name in fold.key)
    query = f"SELECT {', '.join(kind._fields)} FROM {as_read(kind)} WHERE {where}"
    for key in keys:
        for row in connection.exec_driver_sql(query, key):
            yield key, tuple(row)


def _delete(connection: Connection, kind: type[Any], keys: list[Key]) -> None:
    fold, mark = FOLDS[kind], _mark(connection)
    where = " AND ".join(f"{name} = {mark}" for name in fold.key)
    if keys:
        connection.exec_driver_sql(f"DELETE FROM {fold.table} WHERE {where}", keys)


def _mark(connection: Connection) -> str:
    return "%s" if connection.dialect.name == "postgresql" else "?"


def _folded(connection: Connection, keys: Keys, caches: Caches) -> Rows:
    """Return the rows with these keys that the events make."""
    result = Rows()
    if not any(keys.values()):
        return result
    events = events_of(connection)
    while page := list(islice(events, AT_ONCE)):
        statements: list[EventChange] = []
        for one in page:
            read = decoded(one.body).event
            statements += changes_of(
                read, Stamp.of(read.at, one.hash, one.received_at), caches.memory
            ).changes
        rows = only_news(compact(statements), caches)
        caches.store_nothing()
        for kind, some in rows.items():
            wanted = keys.get(kind, ())
            if chosen := [row for row in some if key_in(kind, row) in wanted]:
                result.put(kind, fold_rows(kind, [*result.of(kind), *chosen]))
    return result


def _groups_of(connection: Connection, keys: Keys) -> set[int]:
    """Return the datasets whose names or places may change.

    Those of the rows, and whoever shares a group with one of them.
    """
    dataset_ids = {key[0] for key in keys.get(DatasetSeen, ())} | {
        id_ for key in keys.get(DatasetAlias, ()) for id_ in key[:2]
    }
    dataset_ids |= {key[0] for key in keys.get(FacetSeen, ()) if key[2] == DATASET}
    other = datasets.alias("other_name")
    query = select(other.c.id).join(datasets, datasets.c.canonical_id == other.c.canonical_id)
    return (
        {*dataset_ids, *connection.scalars(query.where(among(datasets.c.id, dataset_ids)))}
        if dataset_ids
        else set()
    )


def _relate(connection: Connection, keys: Keys) -> None:
    """Add the owners of micro-batches, and the relations of renamed runs."""
    jobs = {key[0] for key in keys.get(JobRelation, ())}
    if not jobs:
        return
    of_jobs = (
        select(run_queries.c.run_id).where(among(run_queries.c.job_id, jobs)),
        select(run_parents.c.run_id).where(among(run_parents.c.parent_job_id, jobs)),
        select(runs.c.id).where(
            IS_RENAMED, or_(among(runs.c.least_start, jobs), among(runs.c.least_later, jobs))
        ),
    )
    ids = sorted({id_ for query in of_jobs for id_ in connection.scalars(query)})
    for start in range(0, len(ids), AT_ONCE):
        relate_owners(connection, ids[start : start + AT_ONCE])


def _drop_unused(connection: Connection) -> None:
    for where in UNUSED:
        connection.execute(text(f"DELETE FROM {where}"))


def _restore(
    connection: Connection, target: Target, before: dict[type[Any], dict[Key, Row]]
) -> None:
    own = {*target.dataset_ids, *target.run_ids, *target.job_ids, *target.namespace_ids}
    for kind, references in _REFERRED:
        rows = {key: row for key, row in before.get(kind, {}).items() if key[0] not in own}
        there = dict(_held(connection, kind, rows))
        gone = [
            row
            for key, row in rows.items()
            if key not in there and _is_referred_to(connection, key[0], references)
        ]
        apply(connection, {kind: gone} if gone else {})


def _is_referred_to(connection: Connection, id_: int, references: Iterable[str]) -> bool:
    places = (reference.split(".") for reference in references)
    return any(
        connection.execute(
            text(f"SELECT 1 FROM {table} WHERE {column} = :id LIMIT 1"), {"id": id_}
        ).first()
        for table, column in places
    )


def _compared(
    before: dict[type[Any], dict[Key, Row]], held: Callable[[type[Any]], dict[Key, Row]]
) -> Counts:
    counts = Counts({}, {})
    for kind, rows in before.items():
        after, table = held(kind), FOLDS[kind].table
        counts.gone[table] = len(rows.keys() - after.keys())
        counts.changed[table] = sum(
            key in after and _read(kind, after[key]) != _read(kind, row)
            for key, row in rows.items()
        )
    return counts


def _read(kind: type[Any], row: Row) -> Row:
    """Return the row with its bodies unpacked.

    Bodies that are packed in different ways are the same.
    """
    named = zip(kind._fields, row, strict=True)
    return tuple(
        expand(value) if name in _PACKED and value is not None else value for name, value in named
    )
