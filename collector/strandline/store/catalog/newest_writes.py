"""The run that wrote a dataset last, its job, and the outcome.

`job_relations` notes what a run touched for each job that it may belong to; whose it is says
`run_owners`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from strandline.core.changes.extraction import SINK
from strandline.store.lineage.relations import View
from strandline.store.lineage.run_state import RunState, run_owners, run_states
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.id_lists import among


class Write(NamedTuple):
    """A run that wrote a dataset, and the job that owns it."""

    namespace: str
    name: str
    run: RunState

    def answer(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {"job": {"namespace": self.namespace, "name": self.name}} | self.run.answer()


def newest_writes(connection: Connection, ids: Iterable[int], now: int) -> dict[int, Write]:
    """The newest write of each of these canonical datasets that a run has written."""
    query = (
        select(datasets.c.canonical_id, job_relations.c.run_id, jobs.c.namespace, jobs.c.name)
        .join(job_relations, job_relations.c.dataset_id == datasets.c.id)
        .join(run_owners, run_owners.c.run_id == job_relations.c.run_id)
        .join(jobs, jobs.c.id == run_owners.c.job_id)
        .where(
            among(datasets.c.canonical_id, ids),
            job_relations.c.direction == SINK,
            job_relations.c.ran == 1,
        )
        .order_by(job_relations.c.at, job_relations.c.run_id)
    )
    newest = {dataset: (run, *job) for dataset, run, *job in connection.execute(query)}
    states = run_states(connection, [run for run, *_ in newest.values()], View(now))
    return {
        dataset: Write(namespace, name, states[run])
        for dataset, (run, namespace, name) in newest.items()
        if run in states and states[run].state != "NONE"
    }
