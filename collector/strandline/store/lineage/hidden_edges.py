"""The edges that the state of an answer hides.

Relations that were reported and are none of the recent, latest or running ones.

They are those of runs before a job's last ones, of runs that failed or ended. A walk notes what it
looked at (`Looked`); what was ever reported of that is counted by `job_relations`, which is as
large as the graph, however many runs there were.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.walk import Direction, WalkStep
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.lineage.relations import names_of_jobs
from strandline.store.lineage.run_state import MOMENT, View, run_owners
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.sql.id_lists import among_given

Key = tuple[int, int, int]  # job, direction, canonical dataset


@dataclass(slots=True)
class Looked:
    """The nodes that a walk looked at by direction: datasets, and jobs on the way.

    The relations that it found there belong to them.
    """

    datasets: dict[int, set[int]] = field(default_factory=lambda: {SOURCE: set(), SINK: set()})
    jobs: dict[int, set[int]] = field(default_factory=lambda: {SOURCE: set(), SINK: set()})
    found: set[Key] = field(default_factory=set)

    def add(
        self,
        nodes: Collection[int],
        jobs: frozenset[int],
        way: Direction,
        job_edges: Iterable[JobEdge],
        steps: Collection[WalkStep[int]],
    ) -> None:
        """Note the requested nodes and the steps that leave them.

        The `jobs` among them and what was touched are noted, too.
        """
        near, far = (SINK, SOURCE) if way is Direction.UPSTREAM else (SOURCE, SINK)
        steps = [step for step in steps if not step.is_view]
        self.datasets[near].update(nodes)
        self.jobs[far].update(jobs.intersection(nodes), (step.via for step in steps))
        self.found.update(
            (job_edge.job, job_edge.direction, job_edge.dataset) for job_edge in job_edges
        )
        self.found.update(
            (step.via, SOURCE, step.source) for step in steps if step.source is not None
        )
        self.found.update(
            (step.via, SINK, step.target) for step in steps if step.target is not None
        )

    def hidden(self, connection: Connection, view: View) -> set[Key]:
        """Return the reported relations of the looked-at nodes that are not in the answer."""
        reported: set[Key] = set()
        for direction in (SOURCE, SINK):
            parameters = {"direction": direction, "moment": view.at}
            of_datasets = parameters | {"ids": list(self.datasets[direction])}
            reported |= _keys(connection, _of_datasets(view.past), of_datasets)
            names = (
                list(names_of_jobs(connection, self.jobs[direction]))
                if self.jobs[direction]
                else []
            )
            of_jobs = _keys(connection, _of_jobs(view.past), parameters | {"ids": names})
            reported |= {key for key in of_jobs if key[0] in self.jobs[direction]}
        return reported - self.found


def _keys(connection: Connection, query: Select[Any], parameters: dict[str, Any]) -> set[Key]:
    ids: Sequence[int] = parameters["ids"]
    return set(map(tuple, connection.execute(query, parameters).all())) if ids else set()


@cache
def _of_datasets(past: bool) -> Select[Any]:
    return _reported(past).where(among_given(datasets.c.canonical_id, "ids"))


@cache
def _of_jobs(past: bool) -> Select[Any]:
    return _reported(past).where(among_given(job_relations.c.job_id, "ids"))


def _reported(past: bool) -> Select[Any]:
    """(job, direction, dataset) of what was ever reported.

    Of the past what had been by then, of any run.
    """
    joined = job_relations.join(run_owners, run_owners.c.run_id == job_relations.c.run_id)
    joined = joined.join(datasets, datasets.c.id == job_relations.c.dataset_id)
    of_direction = [job_relations.c.direction == bindparam("direction")]
    if past:
        begun = relations.c.first_at <= MOMENT
        same = (
            relations.c.dataset_id == job_relations.c.dataset_id,
            relations.c.direction == job_relations.c.direction,
        )
        owned = run_owners.alias("owned")
        by_then = select(relations.c.run_id).join(owned, owned.c.run_id == relations.c.run_id)
        of_direction.append(
            by_then.where(*same, begun, owned.c.job_id == run_owners.c.job_id).exists()
        )
    shown = select(run_owners.c.job_id, job_relations.c.direction, datasets.c.canonical_id)
    return shown.distinct().select_from(joined).where(*of_direction)
