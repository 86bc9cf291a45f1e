"""The inputs and outputs of a micro-batch or batch run, as its commit in the log of facts.

It says which ids are certain.

A stream's commit is found by its barrier facet. A batch run has none of its own: it commits when it
completes, if it is of a group and its snapshots are proven.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import orjson
from sqlalchemy import Connection, Row, Select, and_, bindparam, exists, or_, select

from strandline.core.changes.rows import ELSEWHERE
from strandline.core.changes.snapshot_claims import REPORTED
from strandline.core.changes.snapshots import (
    COMPLETES,
    NOT_THE_LAST,
    REPLACES,
    SKIPPED_CHANGES,
    WAS_EMPTY,
)
from strandline.core.openlineage.run_states import NAMES
from strandline.core.versions.facts import (
    BarrierCommitted,
    Job,
    RunEnded,
    RunStarted,
    Table,
    Used,
    WrittenSnapshot,
)
from strandline.store.lineage.checkpoints import lookups_in
from strandline.store.lineage.snapshot_reads import LONGEST_CHAIN, SAME_ROWS
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots
from strandline.store.sql.compression import expand
from strandline.store.sql.facet_rows import facet_rows, newest_rows, one_of
from strandline.store.sql.id_lists import pairs_given
from strandline.store.versions.renamed_tables import called
from strandline.store.versions.tables_behind import Behind, tables_behind

SINK = 1
COMPLETE = 4
MICRO = 1_000_000
RUN_FACET, JOB_FACET = 1, 2
NO_CONTRIBUTION = SAME_ROWS | {"delete"}

canonical = datasets.alias("canonical")
Marks = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run as stored, with the group that its barriers name."""

    row: Row[Any]
    job: Job
    group: str | None
    reads: tuple[Table, ...]
    writes: tuple[Table, ...]
    batch: bool = False

    def started(self) -> RunStarted | None:
        """Return the start of a real run; None for one that was only planned."""
        if self.row.started_at is None:
            return None
        at, seen = self.row.started_at / MICRO, self.row.received_at / MICRO
        return RunStarted(
            self.job, self.row.run_id, at, self.group, self.reads, self.writes, seen, self.batch
        )

    def ended(self) -> RunEnded | None:
        """Return the end of the run, if it ended."""
        if self.row.ended_at is None:
            return None
        ended, heard = self.row.ended_at / MICRO, self.row.received_at / MICRO
        return RunEnded(self.job, self.row.run_id, ended, NAMES[self.row.state], heard)


def uses_of(connection: Connection, marks: Marks) -> dict[tuple[int, int], list[Any]]:
    """Return the snapshots that each run read and made, by barrier (0: none).

    For each table the most certain one counts.
    """
    uses: dict[tuple[int, int], list[Any]] = {}
    rows = connection.execute(_used_snapshots(), {"marks": json.dumps(marks)}).all()
    names = called(connection, {row.dataset_id for row in rows})
    for row in rows:
        if row.flags & NOT_THE_LAST:
            continue
        uses.setdefault((row.run_id, row.barrier), []).append(_named(row, names))
    return {mark: _surest(connection, rows) for mark, rows in uses.items()}


def _named(row: Row[Any], names: Mapping[int, Table]) -> Any:
    """Return a row under the name by which facts call its table."""
    if names.get(row.dataset_id, (row.namespace, row.name)) == (row.namespace, row.name):
        return row
    namespace, name = names[row.dataset_id]
    return SimpleNamespace(**{**row._mapping, "namespace": namespace, "name": name})


@cache
def _used_snapshots() -> Select[Any]:
    same = and_(
        snapshots.c.dataset_id == snapshot_uses.c.dataset_id,
        snapshots.c.snapshot_id == snapshot_uses.c.snapshot_id,
    )
    uses = snapshot_uses.c
    elsewhere = exists().where(
        relations.c.run_id == uses.run_id,
        relations.c.direction == uses.direction,
        relations.c.dataset_id == uses.dataset_id,
        relations.c.creates == ELSEWHERE,
    )
    return (
        select(
            uses.run_id,
            uses.barrier,
            uses.direction,
            uses.dataset_id,
            uses.snapshot_id,
            uses.from_snapshot_id,
        )
        .add_columns(uses.lossy, uses.rank, uses.flags, canonical.c.namespace, canonical.c.name)
        .add_columns(
            datasets.c.namespace.label("named_namespace"), datasets.c.name.label("named_name")
        )
        .add_columns(
            snapshots.c.parent_id, snapshots.c.barrier.label("carries"), snapshots.c.committed_at
        )
        .add_columns(snapshots.c.operation, snapshots.c.aside, snapshots.c.row_count)
        .join(datasets, datasets.c.id == uses.dataset_id)
        .join(canonical, canonical.c.id == datasets.c.canonical_id)
        .outerjoin(snapshots, same)
        .where(
            pairs_given(uses.run_id, uses.barrier, "marks"),
            or_(uses.lossy == 0, uses.direction != SINK),
        )
        .where(~elsewhere)
        .order_by(uses.direction, canonical.c.namespace, canonical.c.name, uses.at)
    )


def _surest(connection: Connection, rows: Sequence[Any]) -> list[Any]:
    """Without what was only observed of a table of which more is proven.

    Each read comes with the snapshot whose rows it shows, each commit with those that it is on.
    """
    best: dict[tuple[Any, ...], int] = {}
    for row in rows:
        table = row.direction, row.namespace, row.name
        best[table] = max(row.rank, best.get(table, row.rank))
    return [
        (row, _below(connection, row) if row.direction == SINK else _version(connection, row))
        for row in rows
        if row.rank == best[row.direction, row.namespace, row.name]
    ]


def _version(connection: Connection, row: Row[Any]) -> str | None:
    """The snapshot whose rows a compacted one shows; None for one that is not compacted."""
    operation, parent, version = row.operation, row.parent_id, None
    for _ in range(LONGEST_CHAIN):
        if operation not in SAME_ROWS or parent is None:
            break
        version = parent
        before = connection.execute(_snapshot(), {"of": row.dataset_id, "snapshot": parent}).first()
        operation, parent = (
            (before.operation, before.parent_id) if before is not None else ("", None)
        )
    return version


@cache
def _snapshot() -> Select[Any]:
    return select(snapshots.c.operation, snapshots.c.parent_id).where(
        snapshots.c.dataset_id == bindparam("of"), snapshots.c.snapshot_id == bindparam("snapshot")
    )


class _Below(NamedTuple):
    """The snapshots under a commit's parent; whether its micro-batch began on no rows."""

    snapshots: tuple[str, ...]
    was_empty: bool


def _below(connection: Connection, row: Row[Any]) -> _Below:
    """Go down from a commit to one of another micro-batch or a whole replacement.

    Those above are compactions, corrections and restores, and earlier commits of its micro-batch;
    of a restore what it restored comes next.
    """
    versions: list[str] = []
    at, was_empty = row.parent_id, bool(row.flags & WAS_EMPTY)
    for _ in range(LONGEST_CHAIN):
        parameters = {"of": row.dataset_id, "snapshot": at}
        made = connection.execute(_made(), parameters).first() if at is not None else None
        if made is None or (made.barrier and not made.flags & NOT_THE_LAST):
            break
        if made.operation not in SAME_ROWS and (made.barrier is None or made.flags & REPLACES):
            break
        if (made.run_id, made.barrier) == (row.run_id, row.barrier):  # of the same micro-batch
            was_empty = was_empty or made.parent_id is None or bool(made.flags & WAS_EMPTY)
        is_restore = made.operation == "restore"
        at = _restored_by(connection, made.run_id, row.dataset_id) if is_restore else made.parent_id
        if at is not None:
            versions.append(at)
    return _Below(tuple(versions), was_empty)


def _restored_by(connection: Connection, run: int, dataset: int) -> str | None:
    """Return the snapshot of its own table that a restoring run read."""
    reads = connection.execute(_reads_of_run(), {"run": run})
    return max((read.snapshot_id for read in reads if read.dataset_id == dataset), default=None)


@cache
def _reads_of_run() -> Select[Any]:
    """Select what a run read, by its key: the table's index would read its whole history."""
    of = snapshot_uses.c
    return select(of.dataset_id, of.snapshot_id).where(
        of.run_id == bindparam("run"), of.direction != SINK
    )


@cache
def _made() -> Select[Any]:
    """Return how a snapshot was made: barrier NULL where no run said that it made it."""
    made = and_(
        snapshot_uses.c.dataset_id == snapshots.c.dataset_id,
        snapshot_uses.c.snapshot_id == snapshots.c.snapshot_id,
        snapshot_uses.c.direction == SINK,
    )
    return (
        select(snapshots.c.operation, snapshots.c.parent_id, snapshots.c.run_id)
        .add_columns(snapshot_uses.c.barrier, snapshot_uses.c.flags)
        .outerjoin(snapshot_uses, made)
        .where(
            snapshots.c.dataset_id == bindparam("of"),
            snapshots.c.snapshot_id == bindparam("snapshot"),
        )
        .order_by(snapshot_uses.c.barrier.desc())
        .limit(1)
    )


def commit_of(run: StartedRun, row: Row[Any], uses: Iterable[Any]) -> BarrierCommitted:
    """The commit of a micro-batch.

    It states its barrier, or else its number says only which micro-batch it is.
    """
    committed = (row.committed_at if row.committed_at is not None else row.at) / MICRO
    started = row.started_at / MICRO if row.started_at is not None else committed
    uses = list(uses)
    counted = row.batch_id is not None and row.barrier == row.batch_id + 1
    stated = not counted or any(
        use.carries == row.barrier for use, _ in uses if use.direction == SINK
    )
    lookups = lookups_in(row.facet) if not stated else frozenset[Table]()
    return BarrierCommitted(
        run.job,
        run.row.run_id,
        row.group_name or run.group,
        row.barrier,
        started,
        committed,
        _written(uses),
        _used(uses, row.barrier, lookups),
        row.batch_id,
        row.checkpoint or None,
        stated,
        row.query_id,
        _generation(row.facet),
        _aside(uses),
    )


class _BarrierFacet(msgspec.Struct):
    """The part of a barrier's facet that no column holds."""

    generation: int | None = None


_FACET = msgspec.json.Decoder(_BarrierFacet)


def _generation(facet: bytes) -> int | None:
    try:
        return _FACET.decode(expand(facet)).generation
    except msgspec.DecodeError:  # a facet that was kept as it came
        return None


def _written(uses: Iterable[Any]) -> tuple[WrittenSnapshot, ...]:
    uses = list(uses)
    own = {(use.namespace, use.name): use for use, _ in uses if use.direction != SINK}
    return tuple(
        WrittenSnapshot(
            (use.namespace, use.name),
            use.snapshot_id,
            use.parent_id,
            use.committed_at / MICRO if use.committed_at is not None else None,
            is_certain(use),
            use.operation or "",
            replaces=bool(use.flags & REPLACES),
            completes=bool(use.flags & COMPLETES),
            under=below.snapshots,
            restores=_restored(use, own),
            rows=use.row_count,
            was_empty=below.was_empty,
        )
        for use, below in uses
        if use.direction == SINK and not use.aside
    )


def _aside(uses: Iterable[Any]) -> tuple[Table, ...]:
    """Return the tables with a commit that main has not."""
    aside = {(use.namespace, use.name) for use, _ in uses if use.direction == SINK and use.aside}
    return tuple(sorted(aside))


def _restored(use: Row[Any], own: Mapping[Table, Row[Any]]) -> str | None:
    """The snapshot of its own table that a restore read."""
    read = own.get((use.namespace, use.name))
    return str(read.snapshot_id) if use.operation == "restore" and read is not None else None


def _used(uses: Iterable[Any], barrier: int, lookups: Collection[Table]) -> tuple[Used, ...]:
    return tuple(
        Used(
            (use.namespace, use.name),
            use.snapshot_id,
            use.carries == barrier,
            use.from_snapshot_id,
            version,
            is_certain(use),
            (use.named_namespace, use.named_name) in lookups,
            bool(use.flags & SKIPPED_CHANGES),
        )
        for use, version in uses
        if use.direction != SINK
    )


def is_certain(use: Row[Any]) -> bool:
    """Return whether the id is proven to be the table's own and what was consumed.

    Nothing is derived from less.
    """
    return int(use.rank) >= REPORTED and not use.lossy


def batch_jobs(connection: Connection, jobs: Collection[int]) -> set[int]:
    """Those of the jobs whose type says that they are no streams."""
    if not jobs:
        return set()
    held = facet_rows(one_of(jobs), (JOB_FACET,), one_of(["jobType"]))
    rows = newest_rows(connection.execute(select(held)))
    return {row.entity_id for row in rows if row.content is not None and _is_batch(row.content)}


def _is_batch(body: bytes) -> bool:
    try:
        return str(orjson.loads(expand(body)).get("processingType")).upper() == "BATCH"
    except (ValueError, AttributeError):
        return False


def batch_commits(
    connection: Connection, runs: Mapping[int, StartedRun]
) -> dict[int, BarrierCommitted]:
    """Return the commits of the runs that are completed batch runs of a group."""
    ended = {id_: run for id_, run in runs.items() if _is_ended_batch(run)}
    of_group = _of_groups(connection, ended)
    if not of_group:
        return {}
    uses = uses_of(connection, [(id_, 0) for id_ in of_group])
    contributing = {
        id_: run for id_, run in of_group.items() if _contributes(run, uses.get((id_, 0), ()))
    }
    inputs = {
        id_: _all_inputs(run, _used(uses[id_, 0], 0, ())) for id_, run in contributing.items()
    }
    behind = tables_behind(
        connection,
        {
            id_: ([use.table for use in inputs[id_]], run.row.ended_at)
            for id_, run in contributing.items()
        },
    )
    return {
        id_: _batch_commit(run, uses[id_, 0], inputs[id_], behind[id_])
        for id_, run in contributing.items()
    }


def _is_ended_batch(run: StartedRun) -> bool:
    return run.row.state == COMPLETE and not run.row.streaming


def _of_groups(connection: Connection, ended: Mapping[int, StartedRun]) -> dict[int, StartedRun]:
    """Those that state their group themselves, or name none."""
    marked = _with_group(connection, [id_ for id_, run in ended.items() if run.group is not None])
    return {id_: run for id_, run in ended.items() if run.group is None or id_ in marked}


def _with_group(connection: Connection, runs: Sequence[int]) -> set[int]:
    """Those that name their group themselves.

    A DELETE, say, may be a run of the same job and names none.
    """
    if not runs:
        return set()
    held = facet_rows(one_of(runs), (RUN_FACET,), one_of(["strandline_barrier"]))
    return set(connection.scalars(select(held.c.entity_id)))


def _contributes(run: StartedRun, uses: Sequence[Any]) -> bool:
    written = [use for use, _ in uses if use.direction == SINK]
    is_timed = run.row.started_at is not None and run.row.ended_at is not None
    return (
        is_timed and bool(written) and all(use.operation not in NO_CONTRIBUTION for use in written)
    )


def _batch_commit(
    run: StartedRun, uses: Sequence[Any], inputs: Sequence[Used], behind: Behind
) -> BarrierCommitted:
    started, ended = run.row.started_at / MICRO, run.row.ended_at / MICRO
    return BarrierCommitted(
        run.job,
        run.row.run_id,
        run.group,
        0,
        started,
        ended,
        _written(uses),
        tuple(msgspec.structs.replace(use, behind=behind[use.table]) for use in inputs),
        stated=False,
    )


def _all_inputs(run: StartedRun, used: Sequence[Used]) -> list[Used]:
    """Return all that a batch run read: also files, and tables of which no snapshot is reported."""
    named = {use.table for use in used}
    others = [Used(table, "", aligned=False, exact=False) for table in run.reads]
    return [*used, *(use for use in others if use.table not in named)]
