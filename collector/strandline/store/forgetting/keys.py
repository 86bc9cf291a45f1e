"""The keys of rows to compute again.

Those that a changed event made, and those that are about what is forgotten.

The tables are a fold over the set of events. So a row that a forgotten event took part in is
deleted, and folded again from the events that stay; one that none of them makes is gone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, select

from strandline.core.changes.compact import compact, key_of
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp, relation_id_of
from strandline.core.changes.rows import (
    FOLDS,
    BarrierSeen,
    DatasetAlias,
    DatasetSeen,
    EdgeSeen,
    EdgesUsed,
    FacetBody,
    FacetSeen,
    JobGroup,
    JobRelation,
    JobSeen,
    NamespaceSeen,
    RelationSeen,
    RunLease,
    RunParent,
    RunQuery,
    RunSeen,
    SnapshotSeen,
    SnapshotUsed,
)
from strandline.core.openlineage.events import decoded
from strandline.core.openlineage.facets import DATASET, INPUT, JOB, OUTPUT, RUN
from strandline.store.forgetting.events import Left
from strandline.store.forgetting.subjects import Target
from strandline.store.ingest.raw_events import Stored
from strandline.store.ingest.unseen_rows import only_news
from strandline.store.ingest.writer_state import Caches
from strandline.store.schema.relation_tables import relations, table_or_view
from strandline.store.schema.run_tables import runs
from strandline.store.schema.tables import metadata
from strandline.store.sql.facet_rows import store_by_themselves
from strandline.store.sql.id_lists import among

Row = tuple[Any, ...]
Key = tuple[Any, ...]
Keys = dict[type[Any], set[Key]]
CONTENT = (EdgeSeen, FacetBody)  # named by their content: others may have the same

_OF_RUNS = (
    (RunSeen, "id"), (RunParent, "run_id"), (RunParent, "parent_run_id"),
    (RunParent, "root_run_id"), (RunLease, "run_id"), (RunQuery, "run_id"), (RunQuery, "owner_id"),
    (RelationSeen, "run_id"), (JobRelation, "run_id"), (EdgesUsed, "run_id"),
    (BarrierSeen, "run_id"), (SnapshotSeen, "run_id"), (SnapshotUsed, "run_id"),
)  # fmt: skip
_OF_JOBS = (
    (JobSeen, "id"), (JobGroup, "job_id"), (JobRelation, "job_id"), (BarrierSeen, "job_id"),
    (RunParent, "parent_job_id"), (RunParent, "root_job_id"), (RunQuery, "job_id"),
)  # fmt: skip
_OF_DATASETS = (
    (DatasetSeen, "id"), (DatasetAlias, "dataset_id"), (DatasetAlias, "alias_id"),
    (RelationSeen, "dataset_id"), (JobRelation, "dataset_id"), (EdgesUsed, "sink_id"),
    (EdgeSeen, "source_id"), (SnapshotSeen, "dataset_id"), (SnapshotUsed, "dataset_id"),
)  # fmt: skip


def as_read(kind: type[Any]) -> FromClause:
    """Return the relation that holds the rows of a kind, in either form of storage."""
    return table_or_view(FOLDS[kind].table)


def key_in(kind: type[Any], row: Row) -> Key:
    """Return the key of a row, always a tuple."""
    key = key_of(kind, row)
    return key if len(FOLDS[kind].key) > 1 else (key,)


def rows_of(event: Stored, body: bytes, caches: Caches) -> dict[type[Any], list[Row]]:
    """Return the rows that one event makes, as they are stored."""
    read = decoded(body).event
    stamp = Stamp.of(read.at, event.hash, event.received_at)
    rows = only_news(compact(changes_of(read, stamp, caches.memory).changes), caches)
    caches.store_nothing()
    return rows


def keys_to_fold(
    connection: Connection, target: Target, left: Iterable[Left], caches: Caches
) -> Keys:
    """Return the keys of all rows that have to be made again."""
    keys: Keys = defaultdict(set)
    for event in left:
        before = rows_of(event.before, event.before.body, caches)
        after = {} if event.after is None else rows_of(event.before, event.after, caches)
        for kind in {*before, *after}:
            changed = {*map(tuple, before.get(kind, ()))} ^ {*map(tuple, after.get(kind, ()))}
            keys[kind] |= {key_in(kind, row) for row in changed}
    _add_own(connection, target, keys)
    _add_related(connection, keys)
    return keys


def _add_own(connection: Connection, target: Target, keys: Keys) -> None:
    """Rows about what is forgotten, whichever event made them: it may have left the store."""
    of_jobs = connection.scalars(select(runs.c.id).where(among(runs.c.job_id, target.job_ids)))
    own_runs = {*target.run_ids, *of_jobs}
    for ids, columns in (
        (own_runs, _OF_RUNS),
        (target.job_ids, _OF_JOBS),
        (target.dataset_ids, _OF_DATASETS),
    ):
        for kind, column in columns:
            _add(connection, kind, column, ids, keys)
    keys[NamespaceSeen] |= {(id_,) for id_ in target.namespace_ids}
    of = [*_relations(connection, relations.c.run_id, own_runs)]
    of += _relations(connection, relations.c.dataset_id, target.dataset_ids)
    _add_facets(connection, own_runs, (RUN,), keys)
    _add_facets(connection, target.job_ids, (JOB,), keys)
    _add_facets(connection, target.dataset_ids, (DATASET,), keys)
    _add_facets(connection, of, (INPUT, OUTPUT), keys)


def _relations(
    connection: Connection, column: ColumnElement[int], ids: Collection[int]
) -> Iterator[int]:
    if ids:
        own = select(relations.c.run_id, relations.c.direction, relations.c.dataset_id)
        for row in connection.execute(own.where(among(column, ids))):
            yield relation_id_of(*row)


def _add_related(connection: Connection, keys: Keys) -> None:
    """Add the datasets that jobs touched in such a run.

    An owner's rows are made of its micro-batches', by no event alone.
    """
    touched = {
        key[0] for kind in (RelationSeen, EdgesUsed, RunSeen, RunQuery) for key in keys[kind]
    }
    _add(connection, JobRelation, "run_id", touched, keys)


def _add(
    connection: Connection, kind: type[Any], column: str, ids: Collection[int], keys: Keys
) -> None:
    if ids:
        table = as_read(kind)
        query = select(*(table.c[column] for column in FOLDS[kind].key)).where(
            among(table.c[column], ids)
        )
        keys[kind] |= {_plain(row) for row in connection.execute(query)}


def _add_facets(
    connection: Connection, ids: Collection[int], kinds: Iterable[int], keys: Keys
) -> None:
    if ids:
        store_by_themselves(connection, ids)
        table = metadata.tables["facets"]
        wanted = [kind + apart for kind in kinds for apart in (0, 10)]
        query = select(table.c.entity_id, table.c.key, table.c.kind)
        query = query.where(among(table.c.entity_id, ids), table.c.kind.in_(wanted))
        keys[FacetSeen] |= {_plain(row) for row in connection.execute(query)}


def _plain(row: Any) -> Key:
    return tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
