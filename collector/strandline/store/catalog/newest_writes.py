"""The run that wrote a dataset last, its job, and the outcome.

`job_relations` notes what a run touched for each job that it may belong to; whose it is says
`run_owners`. A run that only altered, renamed, dropped or emptied a table did not write it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    exists,
    func,
    select,
)

from strandline.core.changes.extraction import SINK
from strandline.store.lineage.recent_runs import MOMENT, only_defined
from strandline.store.lineage.run_state import RunState, View, run_owners, run_states
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.id_lists import among

ALWAYS = (1 << 63) - 1  # a moment that nothing is after

named = datasets.alias("named")  # any of a dataset's names


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
    newest = {row.dataset: row for row in connection.execute(_last_of_jobs(ids))}
    altered = [dataset for dataset, row in newest.items() if row.only_defined]
    if altered:  # what its job wrote before is in no `job_relations`
        rows = connection.execute(writes_by(altered), {"moment": ALWAYS})
        newest |= dict.fromkeys(altered) | {row.dataset: row for row in rows}
    writes = {dataset: row for dataset, row in newest.items() if row is not None}
    states = run_states(connection, [row.run_id for row in writes.values()], View(now))
    return {
        dataset: Write(row.namespace, row.name, states[row.run_id])
        for dataset, row in writes.items()
        if row.run_id in states and states[row.run_id].state != "NONE"
    }


def _last_of_jobs(ids: Iterable[int]) -> Select[Any]:
    """Select the last run of each job that named these datasets as outputs, the newest last."""
    defined = exists().where(
        relations.c.run_id == job_relations.c.run_id,
        relations.c.dataset_id == job_relations.c.dataset_id,
        only_defined(past=False),
    )
    return (
        select(
            datasets.c.canonical_id.label("dataset"),
            job_relations.c.run_id,
            jobs.c.namespace,
            jobs.c.name,
            defined.label("only_defined"),
        )
        .join_from(datasets, job_relations, job_relations.c.dataset_id == datasets.c.id)
        .join(runs, runs.c.id == job_relations.c.run_id)
        .join(run_owners, run_owners.c.run_id == job_relations.c.run_id)
        .join(jobs, jobs.c.id == run_owners.c.job_id)
        .where(
            among(datasets.c.canonical_id, ids),
            job_relations.c.direction == SINK,
            job_relations.c.ran == 1,
        )
        .order_by(job_relations.c.at, job_relations.c.run_id)
    )


def writes_by(ids: Iterable[int]) -> Select[Any]:
    """Select the newest write of each of these datasets by a moment, of all that runs wrote.

    Of writes that were under way then, the one that began last comes first.
    """
    since = case((relations.c.newest_at <= MOMENT, 0), else_=relations.c.first_at)
    newest_first = (heard_at().desc(), since.desc(), relations.c.run_id.desc())
    standing = func.row_number().over(partition_by=named.c.canonical_id, order_by=newest_first)
    owned = (
        touched()
        .join(run_owners, run_owners.c.run_id == runs.c.id)
        .join(jobs, jobs.c.id == run_owners.c.job_id)
    )
    columns = (
        named.c.canonical_id.label("dataset"),
        relations.c.run_id,
        jobs.c.namespace,
        jobs.c.name,
    )
    writes = select(*columns, standing.label("standing")).select_from(owned)
    by_runs = (
        relations.c.direction == SINK,
        runs.c.design == 0,
        ~only_defined(past=True, table=named.name),
    )
    ordered = writes.where(*begun(ids), *by_runs).subquery("writes")
    return select(ordered).where(ordered.c.standing == 1)


def heard_at() -> ColumnElement[Any]:
    """Return when a run was last heard to touch a dataset by the moment.

    One that was under way is heard at the moment.
    """
    ended = and_(runs.c.ended_at.is_not(None), runs.c.ended_at <= MOMENT)
    later = case((ended, runs.c.ended_at), else_=MOMENT)
    return case((relations.c.newest_at <= MOMENT, relations.c.newest_at), else_=later)


def touched() -> FromClause:
    """Join any of the names of datasets with the runs that read or wrote them."""
    return named.join(relations, relations.c.dataset_id == named.c.id).join(
        runs, runs.c.id == relations.c.run_id
    )


def begun(ids: Iterable[int]) -> Sequence[ColumnElement[bool]]:
    """Return the conditions that these datasets were touched by the moment."""
    return among(named.c.canonical_id, ids), relations.c.first_at <= MOMENT
