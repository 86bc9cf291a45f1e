"""Answers about versions from model and store together.

Readings with their lag, what blocks them, cuts, expiry.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, select

from strandline.core.openlineage.names import named
from strandline.core.versions.consistent_cut import Excluded, Line, greatest_cut
from strandline.core.versions.expirable import Expiry, Pin, expiry
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.strong_weak import Holder, Reading
from strandline.core.versions.version_answer import VersionAnswer
from strandline.errors import RefusedError
from strandline.store.lineage.checkpoints import Checkpoint, checkpoints_of
from strandline.store.lineage.lookup import labels_of
from strandline.store.lineage.table_snapshots import newer_approximate
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.versions.initial_offsets import initial_pins
from strandline.store.versions.leases import lease_pins
from strandline.store.versions.outside_readers import Outside, outside_pins
from strandline.store.versions.renamed_tables import rows_of
from strandline.store.versions.snapshot_history import heads_of, snapshot_lines

NO_BARRIER = {"barrier": None, "generation": None, "group": None, "lagSeconds": None}


@dataclass(frozen=True, slots=True)
class Latest:
    """An untracked table in a weak answer: its latest snapshot, without any promise.

    newer: a later one of which only a double is known (core/snapshots), so that nobody can read it
    by its id. untracked: why it has no barrier, where that was asked.
    """

    table: Table
    snapshot: str
    newer: str | None = None
    untracked: str | None = None


def with_latest(
    connection: Connection,
    readings: Iterable[Reading],
    tables: Sequence[Table],
    untracked: Mapping[Table, str] = MappingProxyType({}),
) -> list[Reading | Latest]:
    """The readings, and the latest snapshot of all other tables, in the order of the question.

    It asks nothing of the model, so that nobody has to wait for it. `untracked`: why each of the
    others has no barrier.
    """
    answers: dict[Table, Reading | Latest] = {reading.table: reading for reading in readings}
    return [
        answers.get(table) or _latest(connection, table, untracked.get(table)) for table in tables
    ]


def _latest(connection: Connection, table: Table, untracked: str | None) -> Latest:
    snapshot = latest_of(connection, table)
    return Latest(table, snapshot, newer_approximate(connection, table, snapshot), untracked)


def latest_of(connection: Connection, table: Table) -> str:
    """The newest snapshot that events report, or a RefusedError when there is none."""
    head = heads_of(connection, [table]).get(table)
    if head is None:
        label = labels_of(connection, [table])[table]
        raise RefusedError(f"{label}: no snapshots are known", "no_version")
    return head


def reading_answer(reading: Reading | Latest, now: float) -> dict[str, Any]:
    """A table of an answer, as JSON shows it."""
    shown: dict[str, Any] = {
        **named(reading.table),
        "snapshotId": reading.snapshot,
    }
    if isinstance(reading, Latest):
        shown |= NO_BARRIER
        if reading.newer is not None:
            shown["newerApproximate"] = reading.newer
    else:
        shown |= {
            "barrier": reading.barrier,
            "generation": reading.generation,
            "group": reading.group,
            "lagSeconds": round(reading.lag(now), 3),
        }
    if reading.untracked is not None:
        shown["untracked"] = reading.untracked
    return shown


def version_document(
    connection: Connection,
    answer: VersionAnswer,
    tables: Sequence[Table],
    now: float,
) -> dict[str, Any]:
    """Return an answer as REST and the commands show it."""
    if answer.consistency == "cut":
        shown = _cut_tables(connection, tables, answer.refused)
    else:
        answers = with_latest(connection, answer.readings, tables, answer.untracked)
        shown = [reading_answer(reading, now) for reading in answers]
    reason = {} if answer.refused is None else {"reason": str(answer.refused)}
    return {
        "consistency": answer.consistency,
        "tables": shown,
        "blockedBy": holders_answer(answer.holders, now),
    } | reason


def _cut_tables(
    connection: Connection, tables: Sequence[Table], refused: RefusedError | None
) -> list[dict[str, Any]]:
    try:
        return [table | NO_BARRIER for table in cut_answer(connection, tables)]
    except RefusedError as error:
        if refused is None:
            raise
        raise RefusedError(f"{refused}. {error}", refused.code) from None


def holders_answer(holders: Iterable[Holder], now: float) -> list[dict[str, Any]]:
    """Return the jobs and tables that block an answer, as JSON shows them."""
    return [
        {
            "job": None
            if holder.state in ("BASE_TABLE", "UNTRACKED")
            else named((holder.namespace, holder.name)),
            "table": named(holder.table),
            "state": holder.state,
            "barrier": holder.barrier,
            "last": holder.last,
            "reason": holder.reason(now),
        }
        for holder in holders
    ]


def expiry_of(
    connection: Connection,
    table: Table,
    needed: Sequence[Pin],
    now: float,
    readers: Collection[Job] = (),
    outside: Outside | None = None,
) -> Expiry:
    """Return the expirable snapshots of a table, and the reasons for keeping the rest.

    `needed` are the model's own pins, which came first.

    readers: the jobs that have a place in the model; outside: which others count.
    """
    of_others = outside or Outside(dict.fromkeys(readers, math.inf))
    line, others = snapshot_lines(connection, table)
    leases = lease_pins(connection, table, round(now * 1_000_000))
    theirs, streams = outside_pins(connection, table, of_others, now)
    begun = [
        pin
        for pin in initial_pins(connection, {*readers, *streams}, of_others.called)
        if pin.snapshot in line
    ]
    return expiry(line, [*needed, *leases, *theirs, *begun], others)


def expiry_answer(table: Table, expiry: Expiry, limit: int | None = None) -> dict[str, Any]:
    """Return the expirable snapshots in the form of REST and the command.

    Of what is kept only the oldest `limit`; `pinned` are all that somebody needs by itself.
    """
    pinned = sorted(expiry.reasons.items())
    return {
        **named(table),
        "expirable": list(expiry.expirable),
        "expirableCount": len(expiry.expirable),
        "kept": [
            {"snapshotId": snapshot.snapshot, "reasons": list(snapshot.reasons)}
            for snapshot in islice(expiry.kept(), limit)
        ],
        "keptCount": expiry.kept_count,
        "pinned": [
            {"snapshotId": expiry.ancestry[place], "reasons": list(reasons)}
            for place, reasons in pinned
        ],
        "outsideCount": len(expiry.others),
    }


@dataclass(frozen=True, slots=True)
class Cut:
    """A table's snapshot in a consistent cut.

    observed: its inputs were seen in passing, not proven.
    """

    snapshot: str
    observed: bool


def cut_of(connection: Connection, tables: Sequence[Table]) -> dict[Table, Cut]:
    """The greatest consistent cut through `tables`, from data lineage alone.

    A RefusedError when there is none.
    """
    lines, observed = _closure(connection, tables)
    without = [table for table, line in lines.items() if not line.snapshots]
    cut = greatest_cut(lines.values()) if not without else Excluded(*without[:1] * 2)
    if isinstance(cut, Excluded):
        labels = labels_of(connection, [*tables, *without, cut.table, cut.source])
        names = ", ".join(labels[table] for table in tables)
        why = (
            f"no snapshot of {labels[cut.table]} that fits was made from one of"
            f" {labels[cut.source]} that fits the other tables"
        )
        if without:
            why = f"no snapshot of {', '.join(labels[table] for table in without)} is known"
            why += _since_reused(connection, without)
        raise RefusedError(
            f"{names}: the recorded data lineage shows no consistent cut: {why}",
            "no_version",
        )
    return {table: Cut(cut[table], (table, cut[table]) in observed) for table in tables}


def cut_answer(connection: Connection, tables: Sequence[Table]) -> list[dict[str, Any]]:
    """The greatest consistent cut, table by table as JSON shows it."""
    cut = cut_of(connection, tables)
    return [
        {
            **named(table),
            "snapshotId": cut[table].snapshot,
            "observed": cut[table].observed,
        }
        for table in tables
    ]


def _closure(
    connection: Connection, tables: Sequence[Table]
) -> tuple[Mapping[Table, Line], set[tuple[Table, str]]]:
    """Return the lines of the tables and of all that is upstream and has snapshots.

    The second value is the snapshots that are not proven.
    """
    lines: dict[Table, Line] = {}
    observed: set[tuple[Table, str]] = set()
    waiting = list(tables)
    while waiting:
        table = waiting.pop()
        if table in lines:
            continue
        checkpoints = checkpoints_of(connection, table)
        observed |= {
            (table, snapshot)
            for checkpoint in checkpoints
            if checkpoint.observed
            for snapshot in checkpoint.written
        }
        lines[table] = _line(connection, table, checkpoints)
        waiting.extend(
            sorted({source for read in lines[table].read for source in read} - lines.keys())
        )
    return lines, observed


def _line(connection: Connection, table: Table, checkpoints: Sequence[Checkpoint]) -> Line:
    sources: dict[str, dict[Table, str]] = {}
    for checkpoint in checkpoints:
        for snapshot in checkpoint.written:
            sources.setdefault(snapshot, {}).update(checkpoint.read)
    whole = {snapshot for one in checkpoints for snapshot in one.whole}
    restored = {snapshot: named for one in checkpoints for snapshot, named in one.restored.items()}
    _refuse_shared_numbers(connection, table)
    line, _ = snapshot_lines(connection, table)
    read: list[Mapping[Table, str]] = [sources.get(snapshot, {}) for snapshot in line]
    return Line(table, line, read, whole, restored)


def _refuse_shared_numbers(connection: Connection, table: Table) -> None:
    """Refuse where another table had the name and may have had the same snapshot ids.

    Iceberg's ids are of one table alone; other formats count.
    """
    rows = rows_of(connection, table)
    if rows.since is None:
        return
    formats = select(snapshots.c.format).where(rows.condition).distinct()
    if set(connection.scalars(formats)) - {"iceberg"}:
        label = labels_of(connection, [table])[table]
        raise RefusedError(
            f"{label} was the name of another table before, whose snapshots may have the same ids:"
            " no cut through it is certain; write it under a new name",
            "no_version",
        )


def _since_reused(connection: Connection, tables: Sequence[Table]) -> str:
    """Say that nothing is known since another table had the name, where that is so."""
    is_reused = any(rows_of(connection, table).since is not None for table in tables)
    return " since another table had that name" if is_reused else ""
