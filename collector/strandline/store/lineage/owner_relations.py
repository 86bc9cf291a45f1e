"""`job_relations` of owners.

Micro-batches touch datasets under names of their own, and several owners share such a name;
a run may be renamed on the way.

So what such a run touched is noted for each job that may be its owner's as well, as soon as both
are known, whichever came first. A job too many does no harm: whose a run is decides `run_owners`.
"""

from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Select, and_, case, literal, or_, select, union

from strandline.core.changes.compact import Rows, fold_rows
from strandline.core.changes.extraction import SOURCE
from strandline.core.changes.rows import JobRelation, RelationSeen, RunParent, RunQuery, RunSeen
from strandline.store.schema.relation_tables import edge_columns, edge_uses, relations
from strandline.store.schema.run_tables import IS_RENAMED, run_parents, run_queries, runs
from strandline.store.sql.id_lists import among_given
from strandline.store.sql.upsert import upsert


def runs_in(rows: Rows) -> set[int]:
    """The runs of which the rows say more than that they have children."""
    runs = {relation_seen.run_id for relation_seen in rows.of(RelationSeen)}
    runs |= {run_parent.run_id for run_parent in rows.of(RunParent)}
    runs |= {run_query.run_id for run_query in rows.of(RunQuery)}
    return runs | {run_seen.id for run_seen in rows.of(RunSeen) if run_seen.first_at is not None}


def relate_owners(connection: Connection, touched_runs: Collection[int]) -> list[JobRelation]:
    """Note for owning jobs what their micro-batches and renamed runs touched.

    All of it is dated at the run's newest event. A later event may take an edge back, and when that
    edge was used would then depend on the order of the events. Return what was noted.
    """
    owned = connection.execute(_owned(), {"runs": list(touched_runs)}) if touched_runs else ()
    jobs = {run: {job for job in owners if job is not None} for run, *owners in owned}
    if not jobs:
        return []
    relations = connection.execute(_touched(), {"runs": list(jobs)}).all()
    job_relations = [
        JobRelation(job, way, dataset, run, at)
        for way, dataset, run, at in relations
        for job in jobs[run]
    ]
    if job_relations:
        upsert(connection, JobRelation, fold_rows(JobRelation, job_relations))
    return job_relations


@cache
def _owned() -> Select[Any]:
    """The jobs that such runs may belong to.

    Most runs are none of them, and this is all that is asked of those.
    """
    batch = and_(runs.c.streaming == 1, runs.c.spark == 1, run_parents.c.parent_job_id.is_not(None))
    names = (case((IS_RENAMED, name)) for name in (runs.c.least_start, runs.c.least_later))
    joined = runs.outerjoin(run_parents, run_parents.c.run_id == runs.c.id)
    return (
        select(runs.c.id, case((batch, run_parents.c.parent_job_id)), run_queries.c.job_id, *names)
        .select_from(joined.outerjoin(run_queries, run_queries.c.run_id == runs.c.id))
        .where(
            among_given(runs.c.id, "runs"),
            or_(batch, IS_RENAMED, run_queries.c.run_id.is_not(None)),
        )
    )


@cache
def _touched() -> CompoundSelect[Any]:
    stated = edge_uses.join(edge_columns, edge_columns.c.set_hash == edge_uses.c.set_hash)
    linked = select(
        relations.c.direction, relations.c.dataset_id, runs.c.id, runs.c.newest_at
    ).join(runs, runs.c.id == relations.c.run_id)
    named = select(
        literal(SOURCE), edge_columns.c.source_id, runs.c.id, runs.c.newest_at
    ).select_from(stated.join(runs, runs.c.id == edge_uses.c.run_id))
    return union(
        linked.where(among_given(relations.c.run_id, "runs")),
        named.where(among_given(edge_uses.c.run_id, "runs")),
    )
