"""Stored events of runs, to be taken again, and the relations of jobs to be noted again."""

from collections.abc import Collection, Iterator

from sqlalchemy import Connection, or_, select

from strandline.core.changes.compact import fold_rows
from strandline.core.changes.extraction import MOST_AHEAD, SOURCE, Stamp
from strandline.core.changes.rows import JobRelation
from strandline.core.openlineage.events import Event, decoded
from strandline.errors import DamagedError
from strandline.store.lineage.owner_relations import relate_owners
from strandline.store.schema.received_tables import body_references, raw_events
from strandline.store.schema.relation_tables import edge_columns, edge_uses, relations
from strandline.store.schema.run_tables import REPORTED_BY_SEVERAL, runs
from strandline.store.sql.body_references import ALONE, TYPES, key_of
from strandline.store.sql.compression import Expansion
from strandline.store.sql.id_lists import among
from strandline.store.sql.table_pages import pages_of
from strandline.store.sql.upsert import upsert

RelationKey = tuple[int, int, int]  # job, direction, dataset
Span = tuple[int, int]  # the first and the last moment, in microseconds


def spans_of_runs(connection: Connection, run_ids: Collection[int]) -> list[Span]:
    """Return the times between the first and the newest event of each of these runs."""
    times = select(runs.c.first_at, runs.c.newest_at).where(
        among(runs.c.id, run_ids), runs.c.first_at.is_not(None)
    )
    return [(row.first_at, row.newest_at) for row in connection.execute(times)]


def kinds_of_runs(connection: Connection, run_ids: Collection[int]) -> set[int] | None:
    """Return the kinds of the events of these runs (`body_references.key_of`); None: any kind."""
    of = runs.c
    names = (of.job_id, of.least_start, of.most_start, of.least_later, of.most_later)
    kinds: set[int] = set()
    for reported_by_several, *job_ids in connection.execute(
        select(REPORTED_BY_SEVERAL, *names).where(among(of.id, run_ids)).distinct()
    ):
        if reported_by_several:
            return None
        kinds |= {key_of(id_, type_) for id_ in job_ids if id_ is not None for type_ in TYPES}
    return kinds


def events_between(
    connection: Connection, spans: Collection[Span], kinds: Collection[int] | None = None
) -> Iterator[tuple[Event, Stamp]]:
    """Yield the stored events of these spans of time; others are not read.

    With kinds, only events that may be of these: what their bodies are packed against tells.
    """
    expansion = Expansion(connection)
    for first_at, newest_at in _joined_spans(spans):
        # No event is received an hour before its time or earlier (`Stamp.of`).
        query = select(raw_events).where(
            raw_events.c.received_at >= first_at - MOST_AHEAD,
            raw_events.c.event_time.between(first_at, newest_at),
        )
        if kinds is not None:
            of_kinds = select(body_references.c.id).where(among(body_references.c.key, kinds))
            reference = raw_events.c.reference_id
            query = query.where(or_(reference == ALONE, reference.in_(of_kinds)))
        for page in pages_of(connection, query, raw_events.c.received_at, raw_events.c.hash):
            for row, body in expansion.expanded(page):
                if not isinstance(body, DamagedError):
                    event = decoded(body).event
                    yield event, Stamp.of(event.at, bytes(row.hash), row.received_at)


def _joined_spans(spans: Collection[Span]) -> list[Span]:
    """Return spans of time without overlaps; those less than an hour apart are one.

    >>> _joined_spans([(5, 9), (1, 3), (10_000_000_000, 10_000_000_001)])
    [(1, 9), (10000000000, 10000000001)]
    """
    joined: list[Span] = []
    for first_at, newest_at in sorted(spans):
        if joined and first_at <= joined[-1][1] + MOST_AHEAD:
            joined[-1] = joined[-1][0], max(joined[-1][1], newest_at)
        else:
            joined.append((first_at, newest_at))
    return joined


def relate_again(connection: Connection, keys: Collection[RelationKey]) -> None:
    """Note the newest run of these relations of jobs, which may be another one than was deleted."""
    datasets = {dataset_id for _, _, dataset_id in keys}
    if not datasets:
        return
    own = (runs.c.id, runs.c.job_id, runs.c.design)
    used = select(*own, relations.c.direction, relations.c.dataset_id, relations.c.newest_at)
    used = used.join(runs, runs.c.id == relations.c.run_id)
    relations_found = [
        tuple(row)
        for row in connection.execute(used.where(among(relations.c.dataset_id, datasets)))
    ]
    named = (
        select(*own, edge_columns.c.source_id, edge_uses.c.at)
        .join(edge_uses, edge_uses.c.run_id == runs.c.id)
        .join(edge_columns, edge_columns.c.set_hash == edge_uses.c.set_hash)
    )
    for id_, job_id, design, source_id, at in connection.execute(
        named.where(among(edge_columns.c.source_id, datasets))
    ):
        relations_found.append((id_, job_id, design, SOURCE, source_id, at))
    newest = [
        JobRelation(job_id, direction, dataset_id, run_id, at, 1 - design)
        for run_id, job_id, design, direction, dataset_id, at in relations_found
        if (job_id, direction, dataset_id) in keys
    ]
    if newest:
        upsert(connection, JobRelation, fold_rows(JobRelation, newest))
    relate_owners(connection, {row[0] for row in relations_found})
