"""The snapshots that streams outside of all groups need, which the model of versions does not hold.

Each starts again where it stopped.

Such a stream pins the last snapshot that one of its runs surely read; where none is known,
everything. It counts for as long as the table is among what is known of its job
(store/lineage/relations.py), and, once it is stopped, until retention drops what it read. A batch
run that is under way pins what it reads.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Row,
    Select,
    TextClause,
    bindparam,
    exists,
    select,
    text,
)

from strandline.core.access.granted import EVERYTHING, Access
from strandline.core.access.hidden import HIDDEN
from strandline.core.changes.extraction import SOURCE
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.run_states import COMPLETE
from strandline.core.versions.expirable import Pin
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import ago
from strandline.store.lineage.lookup import ids_of_names
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.lineage.relations import all_jobs_touching, job_edges_of, with_known_runs
from strandline.store.lineage.run_state import RunState, View, run_states
from strandline.store.lineage.table_snapshots import created_at
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.schema.snapshot_tables import job_barriers
from strandline.store.schema.snapshot_views import snapshot_lineage_from
from strandline.store.sql.id_lists import among, among_given, among_text, given

MICRO = 1_000_000
DAY = 86_400
JOBS_AT_ONCE = 500
MOST_RUNS = 20  # of an owner: of its micro-batches only the newest are looked at
MOST_USES = 20  # of a run: a stream that ran for a month has made millions


@dataclass(frozen=True, slots=True)
class Outside:
    """The readers outside of the model.

    placed: the moment in seconds up to which the model speaks for a job (retired then, or always).
    before: when a stopped stream was last heard of that counts no more.
    access: whose names may be said.
    """

    placed: Mapping[Job, float] = field(default_factory=dict)
    before: float = -math.inf
    access: Access = EVERYTHING

    def has(self, job: Job, heard_at: float) -> bool:
        """Return whether the model does not speak for a job that was heard of then."""
        return heard_at > self.placed.get(job, -math.inf)

    def called(self, job: Job) -> str:
        """The job's name, where it may be said."""
        return job[1] if self.access.allows(job[0]) else HIDDEN


def outside_of(
    model: Model, retention_days: int | None, now: float, access: Access = EVERYTHING
) -> Outside:
    """Return the jobs and readers outside of a model, now."""
    placed = {job: retired.at for job, retired in model.retired.items()} | dict.fromkeys(
        model.places, math.inf
    )
    return Outside(
        placed, -math.inf if retention_days is None else now - retention_days * DAY, access
    )


class _Run(NamedTuple):
    """A run that read the table.

    `part` says that it is a stream or one of its micro-batches; `sure`, that what it read is
    committed.
    """

    id: int
    at: int
    owner: int
    part: bool
    sure: bool


class _Reader(NamedTuple):
    """A job that reads the table, with its reading runs by owner and the owners' states.

    The newest run comes first.
    """

    job: Job
    owners: Mapping[int, Sequence[_Run]]
    states: Mapping[int, RunState]

    @property
    def streams(self) -> bool:
        """True if it is a stream."""
        return any(run.part for its in self.owners.values() for run in its)

    def live(self, owner: int) -> bool:
        """Return whether a run is under way."""
        return owner in self.states and self.states[owner].live

    @property
    def heard_at(self) -> float:
        """The time at which the job last said that it reads the table, or ended."""
        ends = [self.states[owner].until or 0 for owner in self.owners if owner in self.states]
        return max(*ends, 0, *(its[0].at for its in self.owners.values())) / MICRO

    def is_forgotten(self, before: float) -> bool:
        """Return true if the job is stopped, and so old that retention drops its reads."""
        return self.heard_at < before and not any(map(self.live, self.owners))


class _Asked(NamedTuple):
    """A question: a table (its names, and since when they mean it), its readers, the moment."""

    connection: Connection
    names: Sequence[int]
    since: int
    outside: Outside
    now: float

    def last_read(self, runs_: Iterable[_Run], *, surely: bool) -> list[str]:
        """The last snapshots that the first of these runs read of which any are known."""
        return next((position for run in runs_ if (position := self._read_by(run.id, surely))), [])

    def _read_by(self, run: int, surely: bool) -> list[str]:
        """Return the snapshots read under a run's newest barrier; surely: exact ones only."""
        parameters = {"run": run, "names": self.names, "since": self.since}
        rows = self.connection.execute(_last_uses(self.connection.dialect.name), parameters).all()
        rows = [row for row in rows if not (surely and row.observed)]
        return sorted(
            {row.snapshot_id for row in rows if _of_one_read(row) == _of_one_read(rows[0])}
        )


def _of_one_read(row: Row[Any]) -> tuple[int, int]:
    """Return the key that the reads of one step share: the barrier.

    Reads without a barrier are equally old.
    """
    return row.told_barrier, row.at if row.told_barrier == 0 else 0


def outside_pins(
    connection: Connection, table: Table, outside: Outside, now: float
) -> tuple[list[Pin], list[Job]]:
    """Return the snapshots that readers outside of the model need, and the streams among them."""
    pins: list[Pin] = []
    streams: list[Job] = []
    since = created_at(connection, table) or 0
    question = _Asked(
        connection, list(connection.scalars(ids_of_names(table))), since, outside, now
    )
    for reader in _readers(question, table):
        if not reader.streams:
            pins += _of_batch(question, reader)
        elif not reader.is_forgotten(outside.before):
            streams.append(reader.job)
            pins += _of_stream(question, reader)
    return pins, streams


def _readers(question: _Asked, table: Table) -> Iterator[_Reader]:
    """Return the jobs outside of the model that read the present table, with their runs."""
    view = with_known_runs(question.connection, View(round(question.now * MICRO)))
    for reading in _reading(question.connection, table, view):
        outside = _outside(question, [run for run in reading if run.at >= question.since])
        runs_read = [run for its in outside.values() for run in its]
        states = run_states(
            question.connection,
            {run.owner for run in runs_read},
            view,
            {run.id for run in runs_read},
        )
        for job, its in sorted(outside.items()):
            yield _Reader(job, _by_owner(its), states)


def _outside(question: _Asked, reading: Sequence[JobEdge]) -> dict[Job, list[_Run]]:
    of_job = _by_job(question.connection, reading)
    return {job: its for job, its in of_job.items() if question.outside.has(job, its[0].at / MICRO)}


def _reading(connection: Connection, table: Table, view: View) -> Iterator[list[JobEdge]]:
    """Yield the known runs that read the table, some jobs at a time, each run once."""
    mine = select(datasets.c.canonical_id).where(datasets.c.id == id_of("dataset", *table))
    dataset = connection.scalar(mine)
    visited: set[tuple[int, int]] = set()
    for page in all_jobs_touching(connection, dataset, JOBS_AT_ONCE) if dataset is not None else ():
        related = job_edges_of(connection, view, page)
        reading = {
            (edge.job, edge.run): edge
            for edge in related
            if (edge.direction, edge.dataset) == (SOURCE, dataset)
        }
        yield [run for key, run in reading.items() if key not in visited]
        visited |= reading.keys()


def _by_job(connection: Connection, reading: Sequence[JobEdge]) -> dict[Job, list[_Run]]:
    """The runs of each job, the newest first."""
    ids = {one.job for one in reading}
    named = connection.execute(
        select(jobs.c.id, jobs.c.namespace, jobs.c.name).where(among(jobs.c.id, ids))
    )
    names: dict[int, Job] = {row.id: (row.namespace, row.name) for row in named}
    rows = {
        row.id: row for row in connection.execute(_runs(), {"runs": [one.run for one in reading]})
    }
    runs_of: dict[Job, list[_Run]] = {}
    for run in sorted(reading, key=lambda one: (one.at, one.since, one.run), reverse=True):
        if run.job in names and run.run in rows:
            runs_of.setdefault(names[run.job], []).append(_run(run, rows[run.run]))
    return runs_of


@cache
def _runs() -> Select[Any]:
    """Runs that are no mere statement of what a job would read, and whether one has barriers."""
    barriers = exists().where(job_barriers.c.run_id == runs.c.id).label("barriers")
    query = select(runs.c.id, runs.c.state, runs.c.streaming, barriers)
    return query.where(among_given(runs.c.id, "runs"), runs.c.design == 0)


def _run(job_edge: JobEdge, row: Row[Any]) -> _Run:
    is_batch = job_edge.run != job_edge.owner
    sure = not is_batch or row.state == COMPLETE
    return _Run(
        job_edge.run,
        job_edge.at,
        job_edge.owner,
        bool(row.streaming or row.barriers or is_batch),
        sure,
    )


def _by_owner(its: Sequence[_Run]) -> dict[int, list[_Run]]:
    runs_of: dict[int, list[_Run]] = {}
    for run in its:
        of_owner = runs_of.setdefault(run.owner, [])
        if len(of_owner) < MOST_RUNS:
            of_owner.append(run)
    return runs_of


def _of_batch(question: _Asked, reader: _Reader) -> Iterator[Pin]:
    why = f"job {question.outside.called(reader.job)}, which is in no group, reads it now"
    for owner, its in reader.owners.items():
        if reader.live(owner):
            yield from (Pin(snapshot, why) for snapshot in question.last_read(its, surely=False))


def _of_stream(question: _Asked, reader: _Reader) -> Iterator[Pin]:
    """Each run that is under way counts, and the newest of which is known what it read."""
    who = f"job {question.outside.called(reader.job)}, which is in no group,"
    stopped, settled = f"stopped {ago(question.now - reader.heard_at)} ago", False
    for owner, its in reader.owners.items():
        live = reader.live(owner)
        if live or not settled:
            snapshots = question.last_read((run for run in its if run.sure), surely=True)
            yield from _pins_of(who, "running" if live else stopped, snapshots, live)
            settled = live or bool(snapshots)
    if not settled:
        yield _of_unknown(who, stopped)


def _pins_of(who: str, state: str, snapshots: Sequence[str], live: bool) -> Sequence[Pin]:
    if live and not snapshots:
        return [_of_unknown(who, state)]
    return [Pin(snapshot, f"{who} last read it ({state})") for snapshot in snapshots]


def _of_unknown(who: str, state: str) -> Pin:
    return Pin(None, f"{who} reads it ({state}): from which snapshot on is not known")


@cache
def _last_uses(dialect: str) -> TextClause:
    """By the run, from its newest barrier on.

    The sum keeps both databases from the index of all that read the table.
    """
    uses = f"""
        SELECT * FROM snapshot_uses
         WHERE run_id = :run AND direction = {SOURCE}
           AND {among_text(dialect, "dataset_id + 0", "names")} AND at >= :since
           AND NOT EXISTS (SELECT 1 FROM job_barriers skipped
                            WHERE skipped.run_id = snapshot_uses.run_id
                              AND skipped.barrier = snapshot_uses.barrier
                              AND skipped.phase = 1)
         ORDER BY barrier DESC, at DESC LIMIT {MOST_USES}"""
    query = f"""
        SELECT snapshot_id, told_barrier, at, observed FROM ({snapshot_lineage_from(uses)}) AS used
         WHERE snapshot_id IS NOT NULL ORDER BY told_barrier DESC, at DESC"""
    ids = given("names", BigInteger)
    return text(query).bindparams(
        bindparam("run", type_=BigInteger), bindparam("since", type_=BigInteger), ids
    )
