"""The nodes that a graph does not show: deleted jobs, and what a key does not see.

Nodes that a key does not see are counted, and never named.
"""

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    func,
    select,
    true,
    union,
)

from strandline.core.changes.edges import READ_BY_VIEW
from strandline.store.lineage.run_state import MOMENT, View
from strandline.store.schema.annotation_tables import DELETED, annotations
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import edge_columns, job_relations, template_edges
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.id_lists import among, among_given
from strandline.store.sql.narrowed import access_of

deletions = annotations.alias("deletions")


def job_is_deleted(job: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that somebody deleted a job and no event of a run of it came since."""
    return _deletion(deletions.c.entity_id == job).exists()


def deleted_jobs(connection: Connection, job_ids: Iterable[int] | None, view: View) -> set[int]:
    """Return those of these jobs, or of all, that are deleted, or were at a past moment."""
    if job_ids is None:
        return set(connection.scalars(_deleted(view.past, of_all=True), {"moment": view.at}))
    wanted = set(job_ids)
    bound = {"jobs": list(wanted), "moment": view.at}
    return set(connection.scalars(_deleted(view.past), bound)) if wanted else set()


@cache
def _deleted(past: bool, of_all: bool = False) -> Select[Any]:
    by_then = deletions.c.at <= MOMENT
    query = _deletion(true() if of_all else among_given(deletions.c.entity_id, "jobs"))
    return query.where(by_then) if past else query


def deletions_of(job_ids: Collection[int]) -> Select[int, int]:
    """Return a query of which of these jobs are deleted, and since when."""
    return _deletion(among(deletions.c.entity_id, job_ids)).add_columns(deletions.c.at)


def _deletion(of_jobs: ColumnElement[bool]) -> Select[Any]:
    came_back = select(runs.c.id).where(
        runs.c.job_id == deletions.c.entity_id, runs.c.received_at > deletions.c.at
    )
    return select(deletions.c.entity_id).where(
        deletions.c.kind == DELETED, of_jobs, ~came_back.exists()
    )


def seen_jobs(connection: Connection, job_ids: Iterable[int]) -> set[int]:
    """Those of these jobs that the connection's key sees."""
    wanted = set(job_ids)
    if access_of(connection).everything or not wanted:
        return wanted
    return set(connection.scalars(select(jobs.c.id).where(among(jobs.c.id, wanted))))


def seen_datasets(connection: Connection, dataset_ids: Iterable[int]) -> set[int]:
    """Those of these datasets that the connection's key sees."""
    wanted = set(dataset_ids)
    if access_of(connection).everything or not wanted:
        return wanted
    return set(connection.scalars(select(datasets.c.id).where(among(datasets.c.id, wanted))))


def hidden_beside(connection: Connection, shown: Iterable[int]) -> int:
    """Count the hidden datasets and jobs that were ever named together with these nodes.

    Hidden are those that the key does not see.
    """
    nodes = set(shown)
    if access_of(connection).everything or not nodes:
        return 0
    return sum(
        connection.scalar(query) or 0 for query in (_datasets_beside(nodes), _jobs_beside(nodes))
    )


def _datasets_beside(nodes: set[int]) -> Select[int]:
    """Count the hidden datasets of the jobs among these nodes, and those behind their views."""
    of_jobs = select(job_relations.c.dataset_id).where(among(job_relations.c.job_id, nodes))
    of_views = (
        select(edge_columns.c.source_id)
        .join(template_edges, template_edges.c.set_hash == edge_columns.c.set_hash)
        .join(datasets, datasets.c.id == template_edges.c.sink_id)
        .where(among(datasets.c.canonical_id, nodes), template_edges.c.rule <= READ_BY_VIEW)
    )
    beside = union(of_jobs, of_views).subquery()
    is_seen = select(datasets.c.id).where(datasets.c.id == beside.c.dataset_id).exists()
    return select(func.count()).select_from(beside).where(~is_seen)


def _jobs_beside(nodes: set[int]) -> Select[int]:
    names = select(datasets.c.id).where(among(datasets.c.canonical_id, nodes))
    unseen = ~select(jobs.c.id).where(jobs.c.id == job_relations.c.job_id).exists()
    return select(func.count(job_relations.c.job_id.distinct())).where(
        job_relations.c.dataset_id.in_(names), unseen
    )
