"""The newest state of jobs as values.

What is known of them, or what runs alone, over all of their last runs.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from operator import attrgetter

from sqlalchemy import Connection

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.exporters.run_records import (
    MICRO,
    DatasetLink,
    DatasetRecord,
    dataset_records,
    links_of,
    named_by,
    with_named_sources,
)
from strandline.store.lineage.column_edges import ColumnEdge, edges_of
from strandline.store.lineage.relations import job_edges_of
from strandline.store.lineage.run_state import View


@dataclass(frozen=True, slots=True)
class JobState:
    """The datasets that a job reads and writes, column by column where that is stated."""

    inputs: tuple[DatasetLink, ...]
    outputs: tuple[DatasetLink, ...]
    edges: tuple[ColumnEdge, ...]
    datasets: dict[int, DatasetRecord]


def job_states(
    connection: Connection, jobs: Collection[int], now: float, *, live: bool
) -> dict[int, JobState]:
    """Yield each of these jobs that reads or writes anything.

    Its edges are all that are known, or those of running runs.
    """
    job_edges = [
        job_edge
        for job_edge in job_edges_of(connection, View(round(now * MICRO), live=live), list(jobs))
        if job_edge.job in jobs
    ]
    edges: dict[int, list[ColumnEdge]] = defaultdict(list)
    for edge in edges_of(connection, job_edges):
        edges[edge.job].append(edge)
    datasets = dataset_records(
        connection, named_by(job_edges, [edge for own in edges.values() for edge in own])
    )
    links = links_of(connection, job_edges, datasets, attrgetter("job"))
    states = {}
    for job in {job_edge.job for job_edge in job_edges}:
        own = sorted(
            set(edges[job]),
            key=lambda edge: (edge.target, edge.source or (0, ""), edge.how.transform),
        )
        inputs = with_named_sources(links.get((job, SOURCE), ()), own, datasets)
        states[job] = JobState(inputs, links.get((job, SINK), ()), tuple(own), datasets)
    return states


def live_jobs(connection: Connection, jobs: Collection[int], now: float) -> set[int]:
    """Those of the jobs that run."""
    return {
        job_edge.job
        for job_edge in job_edges_of(connection, View(round(now * MICRO), live=True), list(jobs))
    }
