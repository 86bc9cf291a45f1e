"""The runs that wrote datasets last, their jobs and outcomes, now or by a past moment.

`job_relations` notes what a run touched for each job that it may belong to; whose it is says
`run_owners`. It has the newest of each job alone, so of a past moment all relations of a dataset
that had begun are asked. A run that only altered, renamed, dropped or emptied a table did not write
it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
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
    or_,
    select,
)

from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.run_states import ABORT, FAIL
from strandline.core.stopping import go_on
from strandline.store.lineage.empty_writes import only_defined
from strandline.store.lineage.run_state import (
    MOMENT,
    RunState,
    View,
    past_runs,
    run_owners,
    run_states,
)
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.id_lists import among

ALWAYS = (1 << 63) - 1  # a moment that nothing is after
MOST_WRITERS = 1_000  # the last ones of a dataset, among which the one before a run is looked for

named = datasets.alias("named")  # any of a dataset's names


class Write(NamedTuple):
    """A run that wrote a dataset, and the job that owns it."""

    namespace: str
    name: str
    run: RunState

    def answer(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {"job": {"namespace": self.namespace, "name": self.name}} | self.run.answer()


def newest_writes(connection: Connection, ids: Collection[int], view: View) -> dict[int, Write]:
    """The newest write of each of these canonical datasets that a run had written by a moment."""
    if view.past:
        rows = connection.execute(_writes_by(ids), {"moment": view.at}).all()
        past = past_runs(connection, [row.run_id for row in rows], view.at)
        states = {id_: run.state for id_, run in past.items()}
    else:
        rows = _last_writes_now(connection, ids)
        states = run_states(connection, [row.run_id for row in rows], view)
    return {
        row.dataset: Write(row.namespace, row.name, states[row.run_id])
        for row in rows
        if row.run_id in states and states[row.run_id].state != "NONE"
    }


def _last_writes_now(connection: Connection, ids: Iterable[int]) -> Sequence[Any]:
    newest = {row.dataset: row for row in connection.execute(_last_of_jobs(ids))}
    altered = [dataset for dataset, row in newest.items() if row.only_defined]
    if altered:  # what its job wrote before is in no `job_relations`
        rows = connection.execute(_writes_by(altered), {"moment": ALWAYS})
        newest |= dict.fromkeys(altered) | {row.dataset: row for row in rows}
    return [row for row in newest.values() if row is not None]


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


def _writes_by(ids: Iterable[int]) -> Select[Any]:
    """Select the newest write of each of these datasets by a moment, of all that runs wrote.

    Of writes that were under way then, the one that began last comes first.
    """
    since = case((relations.c.newest_at <= MOMENT, 0), else_=relations.c.first_at)
    newest_first = (_heard_at().desc(), since.desc(), relations.c.run_id.desc())
    standing = func.row_number().over(partition_by=named.c.canonical_id, order_by=newest_first)
    owned = (
        _touched()
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
    ordered = writes.where(*_begun(ids), *by_runs).subquery("writes")
    return select(ordered).where(ordered.c.standing == 1)


def heard_by(connection: Connection, ids: Collection[int], moment: int) -> dict[int, int]:
    """Return when a run was last heard to read or write each of these datasets by then.

    For a run that was under way, that is the moment itself.
    """
    query = select(named.c.canonical_id, func.max(_heard_at())).select_from(_touched())
    query = query.where(*_begun(ids)).group_by(named.c.canonical_id)
    return dict(map(tuple, connection.execute(query, {"moment": moment})))


def _heard_at() -> ColumnElement[Any]:
    """Return when a run was last heard to touch a dataset by the moment.

    One that was under way is heard at the moment.
    """
    ended = and_(runs.c.ended_at.is_not(None), runs.c.ended_at <= MOMENT)
    later = case((ended, runs.c.ended_at), else_=MOMENT)
    return case((relations.c.newest_at <= MOMENT, relations.c.newest_at), else_=later)


def _touched() -> FromClause:
    """Join any of the names of datasets with the runs that read or wrote them."""
    return named.join(relations, relations.c.dataset_id == named.c.id).join(
        runs, runs.c.id == relations.c.run_id
    )


def _begun(ids: Iterable[int]) -> Sequence[ColumnElement[bool]]:
    """Return the conditions that these datasets were touched by the moment."""
    return among(named.c.canonical_id, ids), relations.c.first_at <= MOMENT


class Read(NamedTuple):
    """A dataset that a run read without stating its snapshot, and the moment at which it began."""

    run: int
    dataset: int
    begun: int


def last_writers(connection: Connection, reads: Iterable[Read]) -> dict[tuple[int, int], int]:
    """Map (run, dataset) of each read to the run that had last written the dataset by then.

    What a streaming query wrote is there however it ended.
    """
    by_dataset: dict[int, list[Read]] = defaultdict(list)
    for read in reads:
        by_dataset[read.dataset].append(read)
    if not by_dataset:
        return {}
    writers: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(_last_writes(by_dataset)):
        writers[row.dataset].append(row)
    found: dict[tuple[int, int], int] = {}
    for dataset, of_dataset in by_dataset.items():
        for read in of_dataset:
            go_on()
            before = (
                write.run
                for write in writers[dataset]
                if write.first_at <= read.begun and write.run != read.run
            )
            writer = next(before, None)
            if writer is not None:
                found[read.run, dataset] = writer
    return found


def _last_writes(dataset_ids: Iterable[int]) -> Select[Any]:
    """Select the last runs that wrote into each of these datasets, the newest first."""
    newest_at = func.max(relations.c.newest_at)
    place = func.row_number().over(
        partition_by=datasets.c.canonical_id, order_by=(newest_at.desc(), runs.c.id)
    )
    writes = (
        select(
            datasets.c.canonical_id.label("dataset"),
            runs.c.id.label("run"),
            func.min(relations.c.first_at).label("first_at"),
            place.label("place"),
        )
        .join(relations, relations.c.dataset_id == datasets.c.id)
        .join(runs, runs.c.id == relations.c.run_id)
        .where(
            among(datasets.c.canonical_id, dataset_ids),
            relations.c.direction == SINK,
            runs.c.design == 0,
            or_(runs.c.streaming == 1, runs.c.state.not_in((ABORT, FAIL))),
            ~only_defined(past=False),
        )
        .group_by(datasets.c.canonical_id, runs.c.id)
        .subquery("writes")
    )
    return select(writes).where(writes.c.place <= MOST_WRITERS).order_by(writes.c.place)


def begun_at(run: Any) -> int | None:
    """Return when a run began, as far as its row knows."""
    at: int | None = run.started_at if run.started_at is not None else run.first_at
    return at
