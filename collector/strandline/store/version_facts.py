"""From news to facts: reads what ingest stored of a run or a barrier, and says it as core/barriers.py does.

Reading the same rows twice gives the same facts, and taking a fact twice changes nothing; so it does not matter how often
and in which order news tell of a run.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, and_, select

from strandline.core.barriers import BarrierCommitted, Fact, Job, Made, RunEnded, RunStarted, Table, Used
from strandline.core.states import NAMES
from strandline.store.among import among_given, pairs_given
from strandline.store.tables import (
    datasets,
    job_barriers,
    job_domains,
    jobs,
    relations,
    runs,
    snapshot_uses,
    snapshots,
)
from strandline.store.version_log import RUN, News

COMMITTED = 2
SINK = 1
MICRO = 1_000_000

canonical = datasets.alias("canonical")


@dataclass(frozen=True, slots=True)
class Run:
    """A run as stored, with the domain that its barriers name."""

    row: Row[Any]
    job: Job
    domain: str | None
    reads: tuple[Table, ...]
    writes: tuple[Table, ...]

    def started(self) -> RunStarted | None:
        """That it really runs; None for one that was only planned."""
        if self.row.started_at is None:
            return None
        at, seen = self.row.started_at / MICRO, self.row.received_at / MICRO
        return RunStarted(self.job, self.row.run_id, at, self.domain, self.reads, self.writes, seen)

    def ended(self) -> RunEnded | None:
        """That it ended."""
        if self.row.ended_at is None:
            return None
        ended, heard = self.row.ended_at / MICRO, self.row.received_at / MICRO
        return RunEnded(self.job, self.row.run_id, ended, NAMES[self.row.state], heard)


def facts_of(connection: Connection, news: Sequence[News]) -> list[Fact]:
    """The facts that the news of runs lead to, in the order of the news; the end of a run after all else of it."""
    marks = [(one.entity_id, one.barrier) for one in sorted(news) if one.kind == RUN]
    found = runs_of(connection, sorted({run for run, _ in marks}))
    barriers = _barriers(connection, found, sorted({mark for mark in marks if mark[1]}))
    last = {run: place for place, (run, _) in enumerate(marks)}
    facts: dict[Fact, None] = {}
    for place, mark in enumerate(marks):
        run = found.get(mark[0])
        if run is None:
            continue
        said = (run.started(), *barriers.get(mark, ()), run.ended() if last[mark[0]] == place else None)
        facts |= dict.fromkeys(fact for fact in said if fact is not None)
    return list(facts)


def runs_of(connection: Connection, ids: Sequence[int]) -> dict[int, Run]:
    """The runs with these ids."""
    if not ids:
        return {}
    tables = _relations(connection, ids)
    return {
        row.id: Run(row, (row.namespace, row.name), row.domain or None, *tables.get(row.id, ((), ())))
        for row in connection.execute(_runs(), {"runs": ids})
    }


@cache
def _runs() -> Select[Any]:
    return (
        select(runs, jobs.c.namespace, jobs.c.name, job_domains.c.domain)
        .join(jobs, jobs.c.id == runs.c.job_id)
        .outerjoin(job_domains, (job_domains.c.job_id == runs.c.job_id) & (job_domains.c.at > 0))
        .where(among_given(runs.c.id, "runs"))
    )


def _relations(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[tuple[Table, ...], tuple[Table, ...]]]:
    found: dict[int, tuple[list[Table], list[Table]]] = {}
    for row in connection.execute(_tables(), {"runs": ids}):
        found.setdefault(row.run_id, ([], []))[row.direction].append((row.namespace, row.name))
    return {run: (tuple(reads), tuple(writes)) for run, (reads, writes) in found.items()}


@cache
def _tables() -> Select[Any]:
    return (
        select(relations.c.run_id, relations.c.direction, canonical.c.namespace, canonical.c.name)
        .join(datasets, datasets.c.id == relations.c.dataset_id)
        .join(canonical, canonical.c.id == datasets.c.canonical_id)
        .where(among_given(relations.c.run_id, "runs"))
        .order_by(canonical.c.namespace, canonical.c.name)
    )


def _barriers(
    connection: Connection, found: Mapping[int, Run], marks: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], list[BarrierCommitted]]:
    known = [mark for mark in marks if mark[0] in found]
    if not known:
        return {}
    uses = _uses(connection, known)
    told: dict[tuple[int, int], list[BarrierCommitted]] = {}
    for row in connection.execute(_committed_barriers(), {"marks": json.dumps(known)}):
        mark = (row.run_id, row.barrier)
        told.setdefault(mark, []).append(_committed(found[row.run_id], row, uses.get(mark, ())))
    return told


@cache
def _committed_barriers() -> Select[Any]:
    marked = pairs_given(job_barriers.c.run_id, job_barriers.c.barrier, "marks")
    told = job_barriers.c
    return select(
        told.run_id,
        told.barrier,
        told.domain,
        told.batch_id,
        told.checkpoint,
        told.started_at,
        told.committed_at,
        told.at,
        told.facet,
    ).where(marked, told.phase == COMMITTED)


def _uses(connection: Connection, marks: Sequence[tuple[int, int]]) -> dict[tuple[int, int], list[Row[Any]]]:
    """What each run read and made under each barrier, with the snapshot's parent and own barrier where known."""
    found: dict[tuple[int, int], list[Row[Any]]] = {}
    for row in connection.execute(_used_snapshots(), {"marks": json.dumps(marks)}):
        found.setdefault((row.run_id, row.barrier), []).append(row)
    return found


@cache
def _used_snapshots() -> Select[Any]:
    same = and_(
        snapshots.c.dataset_id == snapshot_uses.c.dataset_id, snapshots.c.snapshot_id == snapshot_uses.c.snapshot_id
    )
    return (
        select(snapshot_uses.c.run_id, snapshot_uses.c.barrier, snapshot_uses.c.direction, snapshot_uses.c.snapshot_id)
        .add_columns(canonical.c.namespace, canonical.c.name)
        .add_columns(snapshots.c.parent_id, snapshots.c.barrier.label("carries"), snapshots.c.committed_at)
        .join(datasets, datasets.c.id == snapshot_uses.c.dataset_id)
        .join(canonical, canonical.c.id == datasets.c.canonical_id)
        .outerjoin(snapshots, same)
        .where(pairs_given(snapshot_uses.c.run_id, snapshot_uses.c.barrier, "marks"))
        .order_by(snapshot_uses.c.direction, canonical.c.namespace, canonical.c.name, snapshot_uses.c.at)
    )


def _committed(run: Run, row: Row[Any], uses: Iterable[Row[Any]]) -> BarrierCommitted:
    committed = (row.committed_at if row.committed_at is not None else row.at) / MICRO
    started = row.started_at / MICRO if row.started_at is not None else committed
    uses = list(uses)
    return BarrierCommitted(
        run.job,
        run.row.run_id,
        row.domain or run.domain,
        row.barrier,
        started,
        committed,
        tuple(_made(use) for use in uses if use.direction == SINK),
        tuple(
            Used((use.namespace, use.name), use.snapshot_id, use.carries == row.barrier)
            for use in uses
            if use.direction != SINK
        ),
        row.batch_id,
        row.checkpoint or None,
        _incarnation(row.facet),
    )


class _Told(msgspec.Struct):
    """What of a barrier's facet no column holds."""

    incarnation: int | None = None


def _incarnation(facet: bytes) -> int | None:
    try:
        return _TOLD.decode(facet).incarnation
    except msgspec.DecodeError:  # a facet that was kept as it came
        return None


_TOLD = msgspec.json.Decoder(_Told)


def _made(use: Row[Any]) -> Made:
    at = use.committed_at / MICRO if use.committed_at is not None else None
    return Made((use.namespace, use.name), use.snapshot_id, use.parent_id, at)
