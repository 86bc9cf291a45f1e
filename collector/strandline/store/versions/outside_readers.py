"""What streams need that the model of versions has no place for, as they are in no domain: each starts again where it stopped.

Such a stream pins the last snapshot that one of its runs surely read; where none is known, everything. It counts for as long as
the table is among what is known of its job (store/lineage/relations.py), and, once it is stopped, until retention drops what it
read. A batch run that is under way pins what it reads.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Row, Select, TextClause, bindparam, exists, select, text

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
from strandline.store.lineage.recreated import created_at
from strandline.store.lineage.relations import Related, View, all_jobs_touching, relations_of, with_known_runs
from strandline.store.lineage.run_states import RunState, run_states
from strandline.store.schema.tables import datasets, job_barriers, jobs, runs
from strandline.store.schema.views import snapshot_lineage_from
from strandline.store.sql.id_lists import among, among_given, among_text, given

MICRO = 1_000_000
DAY = 86_400
JOBS_AT_ONCE = 500
MOST_RUNS = 20  # of an owner: of its micro-batches only the newest are looked at
MOST_USES = 20  # of a run: a stream that ran for a month has made millions


@dataclass(frozen=True, slots=True)
class Outside:
    """Which readers are outside of the model. placed: the moment in seconds up to which the model speaks for a job (retired
    then, or always); before: when a stopped stream was last heard of that counts no more; access: whose names may be said.
    """

    placed: Mapping[Job, float] = field(default_factory=dict)
    before: float = -math.inf
    access: Access = EVERYTHING

    def called(self, job: Job) -> str:
        """The job's name, where it may be said."""
        return job[1] if self.access.allows(job[0]) else HIDDEN


def outside_of(model: Model, retention_days: int | None, now: float, access: Access = EVERYTHING) -> Outside:
    """What is outside of a model, now."""
    placed = {job: retired.at for job, retired in model.retired.items()} | dict.fromkeys(model.places, math.inf)
    return Outside(placed, -math.inf if retention_days is None else now - retention_days * DAY, access)


class _Run(NamedTuple):
    """A run that read the table. part: of a stream (it is one, or a micro-batch of one); sure: what it read is committed."""

    id: int
    at: int
    owner: int
    part: bool
    sure: bool


class _Reader(NamedTuple):
    """A job that reads the table: its runs that did, by their owners, the newest first."""

    job: Job
    owners: Mapping[int, Sequence[_Run]]
    streams: bool


def outside_pins(connection: Connection, table: Table, outside: Outside, now: float) -> tuple[list[Pin], list[Job]]:
    """What readers outside of the model need of a table; and the streams among them."""
    found: list[Pin] = []
    streams: list[Job] = []
    view = with_known_runs(connection, View(round(now * MICRO)))
    asked = _Asked(connection, list(connection.scalars(ids_of_names(table))), created_at(connection, table) or 0)
    for reading in _reading(connection, table, view):
        readers = list(_readers(connection, [one for one in reading if one.at >= asked.since], outside))
        runs_read = {run.id for reader in readers for its in reader.owners.values() for run in its}
        owners = {owner for reader in readers for owner in reader.owners}
        states = run_states(connection, owners, view, runs_read)
        for reader in readers:
            if not reader.streams:
                found += _of_batch(asked, reader, states, outside)
            elif not _is_forgotten(reader, states, outside):
                streams.append(reader.job)
                found += _of_stream(asked, reader, states, outside, now)
    return found, streams


def _reading(connection: Connection, table: Table, view: View) -> Iterator[list[Related]]:
    """What is known of runs that read the table, some jobs at a time, each run once."""
    mine = select(datasets.c.canonical_id).where(datasets.c.id == id_of("dataset", *table))
    dataset = connection.scalar(mine)
    seen: set[tuple[int, int]] = set()
    for page in all_jobs_touching(connection, dataset, JOBS_AT_ONCE) if dataset is not None else ():
        related = relations_of(connection, view, page)
        reading = {(one.job, one.run): one for one in related if one.direction == SOURCE and one.dataset == dataset}
        yield [one for key, one in reading.items() if key not in seen]
        seen |= reading.keys()


def _readers(connection: Connection, reading: Sequence[Related], outside: Outside) -> Iterator[_Reader]:
    """The jobs that are outside of the model, with their runs."""
    named = connection.execute(
        select(jobs.c.id, jobs.c.namespace, jobs.c.name).where(among(jobs.c.id, {one.job for one in reading}))
    )
    names: dict[int, Job] = {row.id: (row.namespace, row.name) for row in named}
    rows = {row.id: row for row in connection.execute(_runs(), {"runs": [one.run for one in reading]})}
    of_job: dict[int, list[Related]] = {}
    for one in reading:
        if one.job in names and one.run in rows:
            of_job.setdefault(one.job, []).append(one)
    for id_, its in sorted(of_job.items(), key=lambda item: names[item[0]]):
        job, newest = names[id_], max(one.at for one in its) / MICRO
        if newest > outside.placed.get(job, -math.inf):
            yield _reader(job, its, rows)


@cache
def _runs() -> Select[Any]:
    """Runs that are no mere statement of what a job would read, and whether one has barriers."""
    barriers = exists().where(job_barriers.c.run_id == runs.c.id).label("barriers")
    query = select(runs.c.id, runs.c.state, runs.c.streaming, barriers)
    return query.where(among_given(runs.c.id, "runs"), runs.c.design == 0)


def _reader(job: Job, reading: Sequence[Related], rows: Mapping[int, Row[Any]]) -> _Reader:
    owners: dict[int, list[_Run]] = {}
    for one in sorted(reading, key=lambda one: (one.at, one.since, one.run), reverse=True):
        row, is_batch = rows[one.run], one.run != one.owner
        part = bool(row.streaming or row.barriers or is_batch)
        its = owners.setdefault(one.owner, [])
        its.append(_Run(one.run, one.at, one.owner, part, not is_batch or row.state == COMPLETE))
    return _Reader(job, owners, any(run.part for its in owners.values() for run in its))


def _is_forgotten(reader: _Reader, states: Mapping[int, RunState], outside: Outside) -> bool:
    """Whether a stream is stopped, and was heard of last so long ago that retention drops what it read."""
    if any(owner in states and states[owner].live for owner in reader.owners):
        return False
    return _heard_at(reader, states) < outside.before


def _heard_at(reader: _Reader, states: Mapping[int, RunState]) -> float:
    ends = [states[owner].until for owner in reader.owners if owner in states]
    heard = [run.at for its in reader.owners.values() for run in its]
    return max(*heard, *(end for end in ends if end is not None), 0) / MICRO


class _Asked(NamedTuple):
    """Of which table it is asked: the ids of its names, and since when it is this one."""

    connection: Connection
    names: Sequence[int]
    since: int

    def read_by(self, run: int, *, surely: bool) -> list[str]:
        """The last snapshots that a run read (surely: not as a table was seen in passing), under its newest barrier."""
        given_ = {"run": run, "names": self.names, "since": self.since}
        rows = self.connection.execute(_last_uses(self.connection.dialect.name), given_).all()
        rows = [row for row in rows if not (surely and row.observed)]
        return sorted({row.snapshot_id for row in rows if _of_one_read(row) == _of_one_read(rows[0])})


def _of_one_read(row: Row[Any]) -> tuple[int, int]:
    """What reads that belong together share: the barrier; without one they are as old as each other."""
    return row.told_barrier, row.at if row.told_barrier == 0 else 0


def _of_batch(asked: _Asked, reader: _Reader, states: Mapping[int, RunState], outside: Outside) -> Iterator[Pin]:
    for owner, its in reader.owners.items():
        if owner in states and states[owner].live:
            for run in its[:MOST_RUNS]:
                for snapshot in asked.read_by(run.id, surely=False):
                    yield Pin(snapshot, f"job {outside.called(reader.job)}, which is in no domain, reads it now")


def _of_stream(
    asked: _Asked, reader: _Reader, states: Mapping[int, RunState], outside: Outside, now: float
) -> Iterator[Pin]:
    """Each run that is under way counts, and the newest of which is known what it read."""
    who = f"job {outside.called(reader.job)}, which is in no domain,"
    stopped, settled = f"stopped {ago(now - _heard_at(reader, states))} ago", False
    for owner, its in reader.owners.items():
        live = owner in states and states[owner].live
        if settled and not live:
            continue
        sure = (asked.read_by(run.id, surely=True) for run in its[:MOST_RUNS] if run.sure)
        snapshots = next((one for one in sure if one), [])
        for snapshot in snapshots:
            yield Pin(snapshot, f"{who} last read it ({'running' if live else stopped})")
        if live and not snapshots:
            yield Pin(None, f"{who} reads it (running): from which snapshot on is not known")
        settled = settled or live or bool(snapshots)
    if not settled:
        yield Pin(None, f"{who} read it ({stopped}): from which snapshot on is not known")


@cache
def _last_uses(dialect: str) -> TextClause:
    """By the run, from its newest barrier on: the sum keeps both databases from the index of all that read the table."""
    uses = f"""
        SELECT * FROM snapshot_uses
         WHERE run_id = :run AND direction = {SOURCE} AND {among_text(dialect, "dataset_id + 0", "names")} AND at >= :since
           AND NOT EXISTS (SELECT 1 FROM job_barriers aborted
                            WHERE aborted.run_id = snapshot_uses.run_id AND aborted.barrier = snapshot_uses.barrier
                              AND aborted.phase = 1)
         ORDER BY barrier DESC, at DESC LIMIT {MOST_USES}"""
    query = f"""
        SELECT snapshot_id, told_barrier, at, observed FROM ({snapshot_lineage_from(uses)}) AS used
         WHERE snapshot_id IS NOT NULL ORDER BY told_barrier DESC, at DESC"""
    ids = given("names", BigInteger)
    return text(query).bindparams(bindparam("run", type_=BigInteger), bindparam("since", type_=BigInteger), ids)
