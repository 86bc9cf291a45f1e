"""Streams that fill a table, name no group, and belong to the group whose jobs read the table.

So ingest jobs may carry the group or not. What is decided is stored as a row of `job_groups` at the
moment FOLLOWS; every group that an event names replaces it. Where jobs of two groups read the
table, nothing is decided. Nor is it where the stream makes the table from tables of the group.
"""

from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, exists, select, text

from strandline.core.changes.compact import Rows
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.rows import ELSEWHERE, BarrierSeen, JobRelation
from strandline.core.openlineage.names import id_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import job_groups
from strandline.store.schema.snapshot_tables import job_barriers
from strandline.store.sql.id_lists import among, among_given
from strandline.store.versions.tables_behind import tables_behind

FOLLOWS = 1  # microseconds since 1970: no event is as old
EVER = 2**62
JOIN = text(
    "INSERT INTO job_groups (job_id, group_name, at, hash)"
    " VALUES (:job_id, :group_name, :at, 0) ON CONFLICT DO NOTHING"
)

writes, reads = job_relations.alias("writes"), job_relations.alias("reads")
written, read = datasets.alias("written"), datasets.alias("read")


def join_groups(connection: Connection, rows: Rows, followed: Collection[int]) -> set[int]:
    """Let streams join the group whose jobs read what they fill; return the new members.

    followed: those jobs of the rows that are in groups, maybe with others.
    """
    streams = {
        barrier.job_id
        for barrier in rows.of(BarrierSeen)
        if barrier.batch_id is not None and barrier.job_id not in followed
    }
    readers = {
        relation.job_id
        for relation in rows.of(JobRelation)
        if relation.direction == SOURCE and relation.ran and relation.job_id in followed
    }
    if readers:
        filling = connection.execute(_filling_for_readers(), {"jobs": sorted(readers)})
        streams |= {row.job_id for row in filling}
    if not streams:
        return set()
    groups: dict[int, set[str]] = {}
    for row in connection.execute(_groups_of_readers(), {"jobs": sorted(streams)}):
        groups.setdefault(row.job_id, set()).add(row.group_name)
    members = set()
    for job, names in sorted(groups.items()):
        group = min(names)
        if len(names) == 1 and not _is_made_from(connection, job, group):
            connection.execute(JOIN, {"job_id": job, "group_name": group, "at": FOLLOWS})
            members.add(job)
    return members


@cache
def _filling_for_readers() -> Select[Any]:
    return _filling().where(among_given(reads.c.job_id, "jobs"))


@cache
def _groups_of_readers() -> Select[Any]:
    return _filling().where(among_given(writes.c.job_id, "jobs"))


def _filling() -> Select[Any]:
    """Select the streams without a group, each with the groups of jobs that read what it fills."""
    own = exists().where(job_groups.c.job_id == writes.c.job_id).correlate(writes)
    micro_batches = exists().where(
        job_barriers.c.job_id == writes.c.job_id, job_barriers.c.batch_id.is_not(None)
    )
    may_read = exists().where(
        relations.c.run_id == reads.c.run_id,
        relations.c.direction == SOURCE,
        relations.c.dataset_id == reads.c.dataset_id,
        relations.c.creates != ELSEWHERE,
    )
    of_reader = job_groups.alias("of_reader")
    return (
        select(writes.c.job_id, of_reader.c.group_name)
        .distinct()
        .select_from(writes)
        .join(written, written.c.id == writes.c.dataset_id)
        .join(read, read.c.canonical_id == written.c.canonical_id)
        .join(reads, (reads.c.dataset_id == read.c.id) & (reads.c.direction == SOURCE))
        .join(of_reader, of_reader.c.job_id == reads.c.job_id)
        .where(writes.c.direction == SINK, writes.c.ran == 1, reads.c.ran == 1)
        .where(of_reader.c.group_name != "", of_reader.c.at > FOLLOWS)
        .where(~own, micro_batches, may_read)
    )


def _is_made_from(connection: Connection, stream: int, group: str) -> bool:
    """Return whether a stream reads what jobs of a group write, or what was made from that."""
    inputs = {(row.namespace, row.name) for row in connection.execute(_inputs(stream))}
    behind = tables_behind(connection, {stream: (inputs, EVER)})[stream]
    tables = inputs.union(*behind.values())
    if not tables:
        return False
    made = (
        select(writes.c.job_id)
        .join(written, written.c.id == writes.c.dataset_id)
        .join(job_groups, job_groups.c.job_id == writes.c.job_id)
        .where(among(written.c.canonical_id, [id_of("dataset", *table) for table in tables]))
        .where(writes.c.direction == SINK, job_groups.c.group_name == group)
    )
    return connection.execute(made.limit(1)).first() is not None


def _inputs(stream: int) -> Select[Any]:
    canonical = datasets.alias("canonical")
    return (
        select(canonical.c.namespace, canonical.c.name)
        .select_from(reads)
        .join(read, read.c.id == reads.c.dataset_id)
        .join(canonical, canonical.c.id == read.c.canonical_id)
        .where(reads.c.job_id == stream, reads.c.direction == SOURCE)
    )
