"""Run ids that several jobs reported: each of these jobs has the run that it reported.

A run is known by its id alone, as whoever names it as a parent may call its job otherwise. Only
where STARTs, or later events, come under several names do the jobs have runs of their own. What is
stored of the common run is then deleted, and its events are taken again; `shared_runs` holds its
id from then on. A set of events that is shared stays so with any other event, so order and
repetition leave the same rows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, delete, or_, select, text, update

from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import relation_id_of
from strandline.core.changes.lineage import EventChange
from strandline.core.changes.memory import Memory
from strandline.core.changes.rows import ParentsSeen, RunSeen
from strandline.core.openlineage.names import run_id_of
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.ingest.runs_again import RelationKey, events_between, spans_of_runs
from strandline.store.ingest.writer_state import Caches
from strandline.store.schema.dataset_tables import facet_uses, facets
from strandline.store.schema.relation_tables import (
    job_relations,
    relations,
    run_templates,
)
from strandline.store.schema.run_tables import (
    REPORTED_BY_SEVERAL,
    run_leases,
    run_parents,
    run_queries,
    runs,
    shared_runs,
)
from strandline.store.schema.snapshot_tables import job_barriers, snapshot_uses, snapshots
from strandline.store.sql.id_lists import among, among_given

# Each has a row or more of each run, by this column.
_OF_RUN = (
    run_templates.c.run_id,
    run_leases.c.run_id,
    run_queries.c.run_id,
    snapshot_uses.c.run_id,
    job_barriers.c.run_id,
    job_relations.c.run_id,
    runs.c.id,
)


class _TakenAgain(NamedTuple):
    """The events of common runs and of the runs below them, and the changes that they make now."""

    changes: list[EventChange]
    starts: dict[int, set[int]]  # the jobs of a run's STARTs
    later: dict[int, set[int]]  # the jobs of its later events


def learn_shared_runs(
    connection: Connection, changes: Iterable[EventChange], memory: Memory
) -> bool:
    """Tell the memory which of the runs that are named are shared; return whether any is new."""
    ids: set[int] = set()
    for change in changes:
        if type(change) is RunSeen:
            ids.add(change.id)
        elif type(change) is ParentsSeen:
            ids.update(run_id for _, (run_id, _) in change.parents.mentions)
    shared = connection.scalars(_shared(), {"ids": list(ids)}).all() if ids else ()
    if shared:
        memory.share_runs(shared)
    return bool(shared)


def note_shared_runs(connection: Connection, ids: Collection[int]) -> None:
    """Note that several jobs reported the runs of these ids."""
    if ids:
        statement = text("INSERT INTO shared_runs (id) VALUES (:id) ON CONFLICT DO NOTHING")
        connection.execute(statement, [{"id": id_} for id_ in ids])


@cache
def _shared() -> Select[Any]:
    return select(shared_runs.c.id).where(among_given(shared_runs.c.id, "ids"))


def separate_shared_runs(
    connection: Connection, changes: Iterable[EventChange], caches: Caches
) -> tuple[list[EventChange], Collection[RelationKey]]:
    """Delete the rows of runs that turn out to be shared.

    Return what their events say now, and the relations of jobs to note again afterwards.
    """
    ids = {change.id for change in changes if type(change) is RunSeen}
    common = connection.scalars(_reported_by_several(), {"ids": list(ids)}).all() if ids else ()
    if not common:
        return [], ()
    keep_writers_out(connection)
    caches.share_runs(common)
    note_shared_runs(connection, common)
    below = _runs_below(connection, common)
    again = _take_again(connection, {*common, *below}, caches.memory)
    whole = _with_all_events(connection, common, again)
    if not whole:
        return [], ()
    related = connection.execute(
        select(job_relations.c.job_id, job_relations.c.direction, job_relations.c.dataset_id).where(
            among(job_relations.c.run_id, whole)
        )
    )
    keys = {(row.job_id, row.direction, row.dataset_id) for row in related}
    _delete(connection, whole, below)
    return again.changes, keys


@cache
def _reported_by_several() -> Select[Any]:
    return select(runs.c.id).where(among_given(runs.c.id, "ids"), REPORTED_BY_SEVERAL)


def _runs_below(connection: Connection, common: Sequence[int]) -> set[int]:
    """Return the runs that name one of these as parent or root."""
    above = (run_parents.c.parent_run_id, run_parents.c.root_run_id)
    query = select(run_parents.c.run_id).where(or_(*(among(column, common) for column in above)))
    return set(connection.scalars(query)).difference(common)


def _take_again(connection: Connection, wanted: set[int], memory: Memory) -> _TakenAgain:
    """Take the stored events of these runs again.

    They are looked for between the runs' first and newest event times.
    """
    again = _TakenAgain([], defaultdict(set), defaultdict(set))
    for event, stamp in events_between(connection, spans_of_runs(connection, wanted)):
        if event.run is None or event.job is None:
            continue
        run_id = run_id_of(event.run.run_id, event.job.namespace, event.job.name)
        job = memory.job(event.job.namespace, event.job.name)
        if wanted.isdisjoint((run_id, memory.run(event.run.run_id, job.namespace, job.name))):
            continue
        again.changes.extend(changes_of(event, stamp, memory).changes)
        jobs = again.starts if event.event_type == "START" else again.later
        jobs[run_id].add(job.id)
    return again


def _with_all_events(
    connection: Connection, common: Sequence[int], again: _TakenAgain
) -> list[int]:
    """Return those of the runs of which every job's events are still stored.

    The others stay as they are: retention or an archive took what their rows were made of.
    """
    whole: list[int] = []
    for run in connection.execute(select(runs).where(among(runs.c.id, common))):
        starts, later = again.starts[run.id], again.later[run.id]
        has_starts = {run.least_start, run.most_start} - {None} <= starts
        if has_starts and {run.least_later, run.most_later} - {None} <= later:
            whole.append(run.id)
    return whole


def _delete(connection: Connection, common: Sequence[int], below: Collection[int]) -> None:
    """Delete all that was stored of common runs, and what runs below them say of those."""
    own = select(relations.c.run_id, relations.c.direction, relations.c.dataset_id)
    rows = connection.execute(own.where(among(relations.c.run_id, common))).all()
    entities = [*common, *(relation_id_of(*row) for row in rows)]
    connection.execute(delete(facets).where(among(facets.c.entity_id, entities)))
    connection.execute(delete(facet_uses).where(among(facet_uses.c.entity_id, entities)))
    for column in _OF_RUN:
        connection.execute(delete(column.table).where(among(column, common)))
    parents = run_parents.c
    named = [parents.run_id, parents.parent_run_id, parents.root_run_id]
    connection.execute(delete(run_parents).where(_any_among(named, common)))
    # Streaming queries have their ids from the runs above them.
    connection.execute(delete(run_queries).where(among(run_queries.c.run_id, below)))
    is_query = (among(runs.c.id, below), runs.c.query == 1)
    connection.execute(delete(runs).where(*is_query))
    # The events that stated these say so again, and win over this rank.
    stated = update(snapshots).where(among(snapshots.c.run_id, common))
    connection.execute(stated.values(rank=0))


def _any_among(columns: Iterable[ColumnElement[int]], ids: Collection[int]) -> ColumnElement[bool]:
    return or_(*(among(column, ids) for column in columns))
