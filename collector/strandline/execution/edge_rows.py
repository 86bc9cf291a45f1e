"""The edges of all jobs as rows of tables: between datasets, and between columns.

They are what `strandline lineage` answers from: the edges of each job's recent runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Table, select

from strandline.core.changes.extraction import SINK
from strandline.core.walk import Direction, WalkStep
from strandline.store.lineage.column_edges import edges_of
from strandline.store.lineage.job_steps import Leave, by_job, stated_sources
from strandline.store.lineage.lookup import node_text
from strandline.store.lineage.nested_commands import nested_runs, without_nested
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.lineage.relations import job_edges_of, jobs_touching, with_known_runs
from strandline.store.lineage.run_state import View, iso
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.id_lists import among

Row = dict[str, Any]

JOB_EDGES = ("source", "job", "target", "rule", "read_at", "written_at")
COLUMN_EDGES = ("source", "source_column", "job", "target", "target_column", "dependency")
JOBS_AT_ONCE = 500
MOST_WRITERS = 10_000  # of the datasets that a nested command writes


def job_edge_rows(connection: Connection, moment: int) -> Iterator[Row]:
    """Yield a row for each source that a job makes a target from.

    A target without a source, and a source without a target, have a row with NULL for it. So has,
    for its job, a row from what a view's query read to the view.
    """
    into_views = set[WalkStep[int]]()
    for edges in _edges_by_jobs(connection, moment):
        stated = stated_sources(connection, edges)
        relations = by_job(edges)
        names = _Names(
            connection,
            edges,
            {source for sink in stated.of_sinks.values() for source in sink.named},
        )
        for job, of_job in relations.items():
            # Upstream, from a job, the steps into the views that it read are among the others.
            for step, reason in of_job.steps(stated, Leave(frozenset([job]), Direction.UPSTREAM)):
                if step in into_views:
                    continue
                if step.is_view:
                    into_views.add(step)
                yield {
                    "source": names.dataset(step.source),
                    "job": None if step.is_view else names.job(job),
                    "target": names.dataset(step.target),
                    "rule": reason.rule,
                    "read_at": iso(reason.read.seen.at) if reason.read else None,
                    "written_at": iso(reason.written.seen.at) if reason.written else None,
                }


def column_edge_rows(connection: Connection, moment: int) -> Iterator[Row]:
    """Yield a row for each column that a column of a job's target comes from.

    An empty column stands for all columns of its dataset; its dependency is `opaque`.
    """
    for edges in _edges_by_jobs(connection, moment):
        columns = [edge for edge in edges_of(connection, edges) if edge.source is not None]
        names = _Names(connection, edges, {edge.source[0] for edge in columns if edge.source})
        rows = set()
        for edge in columns:
            assert edge.source is not None
            source, target = names.dataset(edge.source[0]), names.dataset(edge.target[0])
            of_source, of_target = edge.source[1], edge.target[1]
            job = names.job(edge.job)
            rows.add((source, of_source, job, target, of_target, edge.how.dependency))
        for row in sorted(rows, key=str):
            yield dict(zip(COLUMN_EDGES, row, strict=True))


def _edges_by_jobs(connection: Connection, moment: int) -> Iterator[list[JobEdge]]:
    """Yield the edges of all jobs, some jobs at a time, each job once."""
    view = with_known_runs(connection, View(moment))
    query = select(job_relations.c.job_id).distinct().order_by(job_relations.c.job_id)
    names = connection.scalars(query).all()
    done = set[int]()
    for start in range(0, len(names), JOBS_AT_ONCE):
        edges = _edges_of(connection, view, names[start : start + JOBS_AT_ONCE])
        yield [edge for edge in edges if edge.job not in done]
        done.update(edge.job for edge in edges)


def _edges_of(connection: Connection, view: View, job_ids: Sequence[int]) -> list[JobEdge]:
    """Return the edges of these jobs without those of nested runs.

    Whether a run is nested is seen beside all writers of its datasets.
    """
    edges = job_edges_of(connection, view, job_ids)
    writes = [edge for edge in edges if edge.direction == SINK]
    nested = nested_runs(connection, {edge.run for edge in writes})
    if not nested:
        return edges
    written = {edge.dataset for edge in writes if edge.run in nested}
    writers = jobs_touching(connection, list(written), SINK, MOST_WRITERS)
    owners = {edge.job for edge in edges}
    all_edges = job_edges_of(connection, view, [*job_ids, *writers])
    return [edge for edge in without_nested(connection, all_edges) if edge.job in owners]


class _Names:
    """The names of the jobs and datasets of some edges, as answers write them."""

    def __init__(
        self, connection: Connection, edges: Iterable[JobEdge], other_datasets: Iterable[int]
    ) -> None:
        edges = list(edges)
        dataset_ids = {edge.dataset for edge in edges}.union(other_datasets)
        self._datasets = _texts(connection, "dataset", datasets, dataset_ids)
        self._jobs = _texts(connection, "job", jobs, {edge.job for edge in edges})

    def dataset(self, id_: int | None) -> str | None:
        """Return the name of a dataset; None where there is none."""
        return None if id_ is None else self._datasets[id_]

    def job(self, id_: int) -> str:
        """Return the name of a job."""
        return self._jobs[id_]


def _texts(connection: Connection, kind: str, table: Table, ids: Iterable[int]) -> dict[int, str]:
    columns = table.c.id, table.c.namespace, table.c.name
    rows = connection.execute(select(*columns).where(among(table.c.id, set(ids))))
    return {id_: node_text(kind, namespace, name) for id_, namespace, name in rows}
