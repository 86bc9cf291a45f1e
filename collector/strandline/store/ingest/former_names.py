"""Names that are used again after a rename: each of the tables keeps its own history.

What the name meant until the rename becomes a dataset of its own, which the rename joins with what
the table is called now (core/identity.py). What runs said before under the name is deleted and
their events are taken again; events that come later are named by their time (`Memory.at`). So
neither order nor repetition matters. What runs said whose events are gone stays under the name.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Column, Connection, delete, func, or_, select, update

from strandline.core.changes.compact import Rows, fold_rows
from strandline.core.changes.extract import changes_of, design_id_of
from strandline.core.changes.extraction import Stamp, relation_id_of
from strandline.core.changes.lineage import EventChange
from strandline.core.changes.memory import DatasetName, Memory, NameBefore
from strandline.core.changes.rows import (
    ELSEWHERE,
    DatasetAlias,
    DatasetSeen,
    FacetSeen,
    SnapshotSeen,
)
from strandline.core.identity import APART, FORMER, RENAMED, UNTIL
from strandline.core.openlineage.events import Event
from strandline.core.openlineage.names import (
    DEFAULT_NAMING,
    former_name,
    id_of,
    namespace_id,
    place_id,
    place_of,
    run_ids_of,
)
from strandline.store.ingest.labels import lock, relabel, renamed_before, renames_used_again
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.ingest.runs_again import (
    RelationKey,
    Span,
    events_between,
    kinds_of_runs,
    spans_of_runs,
)
from strandline.store.ingest.writer_state import Caches
from strandline.store.lineage.joined_names import names_before
from strandline.store.schema.dataset_tables import dataset_aliases, datasets, facet_uses, facets
from strandline.store.schema.relation_tables import (
    edge_columns,
    edge_uses,
    job_relations,
    relations,
    run_templates,
)
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots
from strandline.store.sql.body_references import key_of
from strandline.store.sql.facet_rows import store_by_themselves
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import raise_epoch
from strandline.store.sql.upsert import upsert

ALWAYS = 2**62  # until which a name means what it means now


class _ReusedName(NamedTuple):
    """A name that several tables had.

    ids: of its meanings, by the moment until which each counts. until: the moments of the renames
    that are new.
    """

    id: int
    ids: Mapping[int, int]
    until: Sequence[int]

    @property
    def divided(self) -> set[int]:
        """The meanings of which a part is another one's now."""
        return {id_ for until, id_ in self.ids.items() if until > min(self.until)}

    def meaning_at(self, moment: int) -> int:
        """Return what the name meant at a moment."""
        return self.ids[min(until for until in self.ids if moment < until)]


def note_names_before(connection: Connection, names: Iterable[NameBefore]) -> None:
    """Store names that tables had, and that are others' now."""
    rows: list[DatasetSeen] = []
    aliases: list[DatasetAlias] = []
    for before in names:
        rows += [_mentioned(name) for name in (before.name, before.renamed_to, before.stored)]
        name_id, renamed_id, former_id = (row.id for row in rows[-3:])
        aliases.append(DatasetAlias(renamed_id, former_id, FORMER, before.until))
        aliases.append(DatasetAlias(former_id, name_id, UNTIL, APART))
    upsert(connection, DatasetSeen, fold_rows(DatasetSeen, rows))
    upsert(connection, DatasetAlias, fold_rows(DatasetAlias, aliases))


def _mentioned(name: DatasetName) -> DatasetSeen:
    place, id_ = place_of(*name), id_of("dataset", *name)
    return DatasetSeen(
        id_, namespace_id(name[0]), *name, id_, place_id(place), *place, None, None, 0
    )


def names_used_again(connection: Connection, rows: Rows) -> list[NameBefore]:
    """Return the names of which these rows show that they were used again after a rename."""
    ids = {alias.alias_id for alias in rows.of(DatasetAlias) if alias.type == RENAMED}
    ids |= renamed_before(connection, rows)
    renames = renames_used_again(connection, ids) if ids else []
    if not renames:
        return []
    ids = {id_ for rename in renames for id_ in (rename.name_id, rename.dataset_id)}
    query = select(datasets.c.id, datasets.c.namespace, datasets.c.name)
    rows_found = connection.execute(query.where(among(datasets.c.id, ids)))
    names = {id_: (namespace, name) for id_, namespace, name in rows_found}
    used: list[NameBefore] = []
    for rename in renames:
        name, renamed_to = names[rename.name_id], names[rename.dataset_id]
        stored = former_name(name, renamed_to, rename.at)
        used.append(NameBefore(name, rename.at, renamed_to, stored))
    return used


def separate_names(
    connection: Connection, used: Sequence[NameBefore], caches: Caches
) -> tuple[list[EventChange], set[RelationKey]]:
    """Delete what was said of tables under names that are others' now.

    Return what the events say now, and the relations of jobs to note again afterwards.
    """
    keep_writers_out(connection)
    lock(connection)
    raise_epoch(connection)
    note_names_before(connection, used)
    caches.memory.learn_names_before(names_before(connection))
    names = _reused_names(connection, used)
    divided = {id_ for name in names for id_ in name.divided}
    run_ids = {run_id for name in names for run_id in _runs_before(connection, name)}
    events = list(_events_of(connection, run_ids, names, caches.memory))
    whole = _with_all_events(connection, run_ids, events)
    keys = _delete(connection, whole, divided)
    for name in names:
        _move_rows(connection, name)
    _date_again(connection, divided)
    relabel(connection, {id_ for name in names for id_ in name.ids.values()})
    changes: list[EventChange] = []
    for run_id, event, stamp in events:
        if run_id is None or run_id in whole:
            changes += changes_of(event, stamp, caches.memory).changes
    return changes, keys


def _reused_names(connection: Connection, used: Iterable[NameBefore]) -> list[_ReusedName]:
    """Return the names that these renames divide, with all of their meanings."""
    until: dict[int, list[int]] = {}
    for before in used:
        until.setdefault(id_of("dataset", *before.name), []).append(before.until)
    end, link = dataset_aliases.alias("end"), dataset_aliases.alias("link")
    query = (
        select(end.c.alias_id, link.c.at, link.c.alias_id)
        .join_from(end, link, end.c.dataset_id == link.c.alias_id)
        .where(among(end.c.alias_id, until), end.c.type == UNTIL, end.c.at == APART)
        .where(link.c.type == FORMER)
    )
    ids: dict[int, dict[int, int]] = {name_id: {ALWAYS: name_id} for name_id in until}
    for name_id, at, former_id in connection.execute(query):
        ids[name_id][at] = former_id
    return [_ReusedName(name_id, ids[name_id], until[name_id]) for name_id in until]


def _runs_before(connection: Connection, name: _ReusedName) -> set[int]:
    """Return the runs and designs that named a table of which the name meant another one."""
    used = select(relations.c.run_id).where(among(relations.c.dataset_id, name.divided))
    in_edges = (
        select(edge_uses.c.run_id)
        .join(edge_columns, edge_columns.c.set_hash == edge_uses.c.set_hash)
        .where(among(edge_columns.c.source_id, name.divided))
    )
    query = select(runs.c.id).where(
        runs.c.first_at <= max(name.until), or_(runs.c.id.in_(used), runs.c.id.in_(in_edges))
    )
    return set(connection.scalars(query))


def _spans_of_datasets(connection: Connection, ids: Collection[int]) -> list[Span]:
    """Return the times between which events were about each of these datasets."""
    times = select(datasets.c.first_at, datasets.c.newest_at).where(
        among(datasets.c.id, ids), datasets.c.first_at.is_not(None)
    )
    return [(row.first_at, row.newest_at) for row in connection.execute(times)]


def _events_of(
    connection: Connection,
    run_ids: Collection[int],
    reused: Collection[_ReusedName],
    memory: Memory,
) -> Iterator[tuple[int | None, Event, Stamp]]:
    """Yield the stored events of runs and designs, each with the id, and those about the names."""
    divided = {id_ for name in reused for id_ in name.divided}
    name_ids = {name.id for name in reused}
    spans = [*spans_of_runs(connection, run_ids), *_spans_of_datasets(connection, divided)]
    kinds = kinds_of_runs(connection, run_ids) if memory.naming == DEFAULT_NAMING else None
    if kinds is not None:
        kinds |= {key_of(id_, None) for id_ in name_ids}
    for event, stamp in events_between(connection, spans, kinds):
        named = event.dataset
        if event.job is not None:
            names = event.job.namespace, event.job.name
            ids: Collection[int]
            if event.run is None:
                ids = [design_id_of(*names, stamp.at)]
            else:
                ids = run_ids_of(event.run.run_id, *names)
            for run_id in set(ids).intersection(run_ids):
                yield run_id, event, stamp
        elif named is not None and memory.dataset(named.namespace, named.name).id in name_ids:
            yield None, event, stamp


def _with_all_events(
    connection: Connection,
    run_ids: Collection[int],
    events: Iterable[tuple[int | None, Event, Stamp]],
) -> set[int]:
    """Return those of the runs whose first and newest events are still stored."""
    query = select(runs.c.id, runs.c.first_at, runs.c.newest_at)
    missing = {
        row.id: {row.first_at, row.newest_at}
        for row in connection.execute(query.where(among(runs.c.id, run_ids)))
    }
    for run_id, _, stamp in events:
        if run_id is not None:
            missing[run_id].discard(stamp.at)
    return {run_id for run_id, moments in missing.items() if not moments}


def _delete(
    connection: Connection, run_ids: Collection[int], name_ids: Collection[int]
) -> set[RelationKey]:
    """Delete what these runs read and wrote; return their jobs' relations with the names."""
    of_name = select(relations.c.run_id, relations.c.direction, relations.c.dataset_id).where(
        among(relations.c.run_id, run_ids), among(relations.c.dataset_id, name_ids)
    )
    entities = [relation_id_of(*row) for row in connection.execute(of_name).all()]
    connection.execute(delete(facets).where(among(facets.c.entity_id, entities)))
    connection.execute(delete(facet_uses).where(among(facet_uses.c.entity_id, entities)))
    connection.execute(delete(run_templates).where(among(run_templates.c.run_id, run_ids)))
    connection.execute(delete(snapshot_uses).where(among(snapshot_uses.c.run_id, run_ids)))
    of = job_relations.c
    newest = among(of.dataset_id, name_ids), among(of.run_id, run_ids)
    rows = connection.execute(select(of.job_id, of.direction, of.dataset_id).where(*newest)).all()
    connection.execute(delete(job_relations).where(*newest))
    return {(row.job_id, row.direction, row.dataset_id) for row in rows}


def _move_rows(connection: Connection, name: _ReusedName) -> None:
    """Move the facets and snapshots that the name had before the new renames.

    What came at the moment of a rename may be of either table; its events say of which.
    """
    store_by_themselves(connection, name.divided)
    kinds: tuple[tuple[type[FacetSeen | SnapshotSeen], Column[int], Column[int]], ...] = (
        (FacetSeen, facets.c.entity_id, facets.c.at),
        (SnapshotSeen, snapshots.c.dataset_id, snapshots.c.first_at),
    )
    for kind, owner, at in kinds:
        before = among(owner, name.divided), at <= max(name.until)
        columns = [owner.table.c[field] for field in kind._fields[1:]]
        moved = [
            kind(name.meaning_at(moment), *row)
            for moment, *row in connection.execute(select(at, *columns).where(*before))
            if moment not in name.until
        ]
        connection.execute(delete(owner.table).where(*before))
        if moved:
            upsert(connection, kind, fold_rows(kind, moved))


def _date_again(connection: Connection, dataset_ids: Collection[int]) -> None:
    """Date datasets by the runs that use them."""
    own = relations.c.creates != ELSEWHERE
    for id_ in dataset_ids:
        dates = select(func.min(relations.c.first_at), func.max(relations.c.newest_at))
        dates = dates.where(relations.c.dataset_id == id_, own)
        first_at, newest_at = connection.execute(dates).one()
        named = int(first_at is not None)
        row = update(datasets).where(datasets.c.id == id_)
        connection.execute(row.values(first_at=first_at, newest_at=newest_at, named=named))
