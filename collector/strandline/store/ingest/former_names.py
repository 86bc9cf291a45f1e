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
from strandline.core.changes.memory import DatasetName, NameBefore
from strandline.core.changes.rows import DatasetAlias, DatasetSeen, FacetSeen, SnapshotSeen
from strandline.core.identity import FORMER, RENAMED, UNTIL, Alias, former_names_in
from strandline.core.openlineage.events import Event
from strandline.core.openlineage.names import (
    former_name,
    id_of,
    namespace_id,
    place_id,
    place_of,
    run_ids_of,
)
from strandline.store.ingest.labels import aliases_around, lock, relabel, renamed_before, used_again
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.ingest.runs_again import RelationKey, events_between
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
from strandline.store.sql.facet_rows import store_by_themselves
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import raise_epoch
from strandline.store.sql.upsert import upsert

ALWAYS = 2**62  # until which a name means what it means now


class UsedAgain(NamedTuple):
    """A name that a table had until then, and that was used again."""

    rename: Alias
    before: NameBefore

    @property
    def former_id(self) -> int:
        """The id of what the name meant."""
        return id_of("dataset", *self.before.stored)


def note_names_before(connection: Connection, names: Iterable[NameBefore]) -> None:
    """Store names that tables had, and that are others' now."""
    rows: list[DatasetSeen] = []
    aliases: list[DatasetAlias] = []
    for before in names:
        rows += [_mentioned(name) for name in (before.name, before.renamed_to, before.stored)]
        name_id, renamed_id, former_id = (row.id for row in rows[-3:])
        aliases.append(DatasetAlias(renamed_id, former_id, FORMER, before.until))
        aliases.append(DatasetAlias(former_id, name_id, UNTIL))
    upsert(connection, DatasetSeen, fold_rows(DatasetSeen, rows))
    upsert(connection, DatasetAlias, fold_rows(DatasetAlias, aliases))


def _mentioned(name: DatasetName) -> DatasetSeen:
    place, id_ = place_of(*name), id_of("dataset", *name)
    return DatasetSeen(
        id_, namespace_id(name[0]), *name, id_, place_id(place), *place, None, None, 0
    )


def names_used_again(connection: Connection, rows: Rows) -> list[UsedAgain]:
    """Return the names of which these rows show that they were used again after a rename."""
    ids = {alias.alias_id for alias in rows.of(DatasetAlias) if alias.type == RENAMED}
    ids |= renamed_before(connection, rows)
    if not ids:
        return []
    aliases = aliases_around(connection, ids)
    known = {
        (former.renamed_id, former.name_id): former.until for former in former_names_in(aliases)
    }
    renames = [
        alias
        for alias in used_again(connection, aliases)
        if known.get((alias.dataset_id, alias.alias_id), -1) < alias.at
    ]
    ids = {id_ for alias in renames for id_ in alias[:2]}
    query = select(datasets.c.id, datasets.c.namespace, datasets.c.name)
    names = {
        id_: (namespace, name)
        for id_, namespace, name in connection.execute(query.where(among(datasets.c.id, ids)))
    }
    return [
        UsedAgain(
            alias,
            NameBefore(
                names[alias.alias_id],
                alias.at,
                names[alias.dataset_id],
                former_name(names[alias.alias_id], names[alias.dataset_id]),
            ),
        )
        for alias in renames
        if alias.alias_id in names and alias.dataset_id in names
    ]


def separate_names(
    connection: Connection, used: Sequence[UsedAgain], caches: Caches
) -> tuple[list[EventChange], set[RelationKey]]:
    """Delete what runs said of tables under names that are others' now.

    Return what their events say now, and the relations of jobs to note again afterwards.
    """
    keep_writers_out(connection)
    lock(connection)
    raise_epoch(connection)
    note_names_before(connection, [name.before for name in used])
    caches.memory.learn_names_before(names_before(connection))
    meanings = {name: _meanings(connection, name.rename.alias_id) for name in used}
    run_ids: set[int] = set()
    for name, former_names in meanings.items():
        run_ids |= _runs_before(connection, name, former_names)
    events = list(_events_of(connection, run_ids))
    run_ids &= _with_all_events(connection, run_ids, events)
    all_ids = {id_ for former_names in meanings.values() for id_ in former_names}
    keys = _delete(connection, run_ids, all_ids)
    for name, former_names in meanings.items():
        _move_rows(connection, name, former_names)
    _date_again(connection, all_ids)
    relabel(connection, {id_ for name in used for id_ in (*name.rename[:2], name.former_id)})
    changes: list[EventChange] = []
    for run_id, event, stamp in events:
        if run_id in run_ids:
            changes += changes_of(event, stamp, caches.memory).changes
    return changes, keys


def _meanings(connection: Connection, name_id: int) -> dict[int, int]:
    """Map what a name meant, and means now, to the moment until which it did."""
    until, link = dataset_aliases.alias("until"), dataset_aliases.alias("link")
    query = (
        select(link.c.alias_id, link.c.at)
        .join_from(until, link, until.c.dataset_id == link.c.alias_id)
        .where(until.c.alias_id == name_id, until.c.type == UNTIL, link.c.type == FORMER)
    )
    return {name_id: ALWAYS} | {row.alias_id: row.at for row in connection.execute(query)}


def _runs_before(connection: Connection, name: UsedAgain, meanings: Mapping[int, int]) -> set[int]:
    """Return the runs and designs that named the table by its name before."""
    later = [id_ for id_, until in meanings.items() if until > name.rename.at]
    used = select(relations.c.run_id).where(among(relations.c.dataset_id, later))
    in_edges = (
        select(edge_uses.c.run_id)
        .join(edge_columns, edge_columns.c.set_hash == edge_uses.c.set_hash)
        .where(among(edge_columns.c.source_id, later))
    )
    query = select(runs.c.id).where(
        runs.c.first_at <= name.rename.at, or_(runs.c.id.in_(used), runs.c.id.in_(in_edges))
    )
    return set(connection.scalars(query))


def _events_of(
    connection: Connection, run_ids: Collection[int]
) -> Iterator[tuple[int, Event, Stamp]]:
    """Yield the stored events of runs and designs, each with the id."""
    for event, stamp in events_between(connection, run_ids):
        if event.job is None:
            continue
        names = event.job.namespace, event.job.name
        ids: Collection[int]
        if event.run is None:
            ids = [design_id_of(*names, stamp.at)]
        else:
            ids = run_ids_of(event.run.run_id, *names)
        for run_id in set(ids).intersection(run_ids):
            yield run_id, event, stamp


def _with_all_events(
    connection: Connection, run_ids: Collection[int], events: Iterable[tuple[int, Event, Stamp]]
) -> set[int]:
    """Return those of the runs whose first and newest events are still stored."""
    query = select(runs.c.id, runs.c.first_at, runs.c.newest_at)
    missing = {
        row.id: {row.first_at, row.newest_at}
        for row in connection.execute(query.where(among(runs.c.id, run_ids)))
    }
    for run_id, _, stamp in events:
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


def _move_rows(connection: Connection, name: UsedAgain, meanings: Mapping[int, int]) -> None:
    """Move the facets and snapshots that the name had before the rename."""
    until = name.rename.at
    since = max((end for end in meanings.values() if end < until), default=-ALWAYS)
    later = [id_ for id_, end in meanings.items() if end > until]
    store_by_themselves(connection, later)
    kinds: tuple[tuple[type[FacetSeen | SnapshotSeen], Column[int], Column[int]], ...] = (
        (FacetSeen, facets.c.entity_id, facets.c.at),
        (SnapshotSeen, snapshots.c.dataset_id, snapshots.c.first_at),
    )
    for kind, owner, at in kinds:
        others = [owner.table.c[field] for field in kind._fields[1:]]
        before = among(owner, later), at >= since, at < until
        moved = [
            kind(name.former_id, *row) for row in connection.execute(select(*others).where(*before))
        ]
        if moved:
            connection.execute(delete(owner.table).where(*before))
            upsert(connection, kind, fold_rows(kind, moved))


def _date_again(connection: Connection, dataset_ids: Collection[int]) -> None:
    """Date datasets by the runs that use them."""
    for id_ in dataset_ids:
        dates = select(func.min(relations.c.first_at), func.max(relations.c.newest_at))
        first_at, newest_at = connection.execute(dates.where(relations.c.dataset_id == id_)).one()
        own = update(datasets).where(datasets.c.id == id_)
        connection.execute(own.values(first_at=first_at, newest_at=newest_at))
