"""Answers about versions from model and store together: readings with their lag, who holds them back, cuts, expiry."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from strandline.core.barriers import Job, Table
from strandline.core.cuts import Line, greatest_cut
from strandline.core.expiry import Expiry, Pin, expiry
from strandline.core.model import Model
from strandline.core.versions import Reading, held_by, weak, weakly_held_by
from strandline.errors import RefusedError
from strandline.store.initial_offsets import initial_pins
from strandline.store.leases import lease_pins
from strandline.store.roots import names_of, snapshot_lines
from strandline.store.tables import datasets, snapshot_uses

SINK = 1
canonical = datasets.alias("canonical")


@dataclass(frozen=True, slots=True)
class Latest:
    """An unmanaged table in a weak answer: its latest snapshot, without any promise."""

    table: Table
    snapshot: str


def weak_with_latest(connection: Connection, model: Model, tables: Sequence[Table]) -> list[Reading | Latest]:
    """The weak reading of managed tables, and the latest snapshot of all others, in the order of the question."""
    found: dict[Table, Reading | Latest] = {one.table: one for one in weak(model, tables)}
    for table in tables:
        if table not in found:
            found[table] = Latest(table, latest_of(connection, table))
    return [found[table] for table in tables]


def latest_of(connection: Connection, table: Table) -> str:
    """The newest snapshot that events told of, or a RefusedError when there is none."""
    line, _ = snapshot_lines(connection, table)
    if not line:
        raise RefusedError(f"{table[1]}: no snapshot of it is known", "no_version")
    return line[-1]


def reading_answer(one: Reading | Latest, now: float) -> dict[str, Any]:
    """A table of an answer, as JSON shows it."""
    shown: dict[str, Any] = {"namespace": one.table[0], "name": one.table[1], "snapshotId": one.snapshot}
    if isinstance(one, Latest):
        return shown | {"barrier": None, "incarnation": None, "domain": None, "lagSeconds": None}
    lag = round(one.lag(now), 3)
    return shown | {"barrier": one.barrier, "incarnation": one.incarnation, "domain": one.domain, "lagSeconds": lag}


def holders_answer(
    model: Model, tables: Sequence[Table], now: float, weakly: Sequence[Reading] | None = None
) -> list[dict[str, Any]]:
    """Who holds the tables' components back, or a weak answer, in words."""
    return [
        {
            "job": None if one.state == "ROOT" else {"namespace": one.namespace, "name": one.name},
            "table": {"namespace": one.table[0], "name": one.table[1]},
            "state": one.state,
            "barrier": one.barrier,
            "last": one.last,
            "reason": one.reason(now),
        }
        for one in (held_by(model, tables) if weakly is None else weakly_held_by(model, weakly))
    ]


def expiry_of(
    connection: Connection, table: Table, needed: Sequence[Pin], now: float, readers: Collection[Job] = ()
) -> Expiry:
    """What of a table is expirable, and why the rest is kept; `needed` are the model's own pins, which came first."""
    line, others = snapshot_lines(connection, table)
    leases = lease_pins(connection, table, round(now * 1_000_000))
    begun = [pin for pin in initial_pins(connection, readers) if pin.snapshot in line]
    return expiry(line, [*needed, *leases, *begun], others)


def cut_of(connection: Connection, tables: Sequence[Table]) -> dict[Table, str]:
    """The greatest consistent cut through `tables`, from data lineage alone; a RefusedError when there is none."""
    lines = _closure(connection, tables)
    found = greatest_cut(lines.values()) if all(line.snapshots for line in lines.values()) else None
    if found is None:
        names = ", ".join(name for _, name in tables)
        raise RefusedError(f"{names}: no consistent cut exists in what is known of their data lineage", "no_version")
    return {table: found[table] for table in tables}


def _closure(connection: Connection, tables: Sequence[Table]) -> Mapping[Table, Line]:
    """The lines of the tables and of everything upstream that has snapshots."""
    found: dict[Table, Line] = {}
    waiting = list(tables)
    while waiting:
        table = waiting.pop()
        if table in found:
            continue
        found[table] = _line(connection, table)
        waiting.extend(sorted({source for read in found[table].read for source in read} - found.keys()))
    return found


def _line(connection: Connection, table: Table) -> Line:
    made, read = snapshot_uses.alias("made"), snapshot_uses.alias("read")
    query = (
        select(made.c.snapshot_id, read.c.snapshot_id.label("read_id"), canonical.c.namespace, canonical.c.name)
        .join(read, (read.c.run_id == made.c.run_id) & (read.c.barrier == made.c.barrier) & (read.c.direction != SINK))
        .join(datasets, datasets.c.id == read.c.dataset_id)
        .join(canonical, canonical.c.id == datasets.c.canonical_id)
        .where(made.c.direction == SINK, made.c.dataset_id.in_(names_of(table)))
        .order_by(read.c.at)
    )
    sources: dict[str, dict[Table, str]] = {}
    for row in connection.execute(query):
        if (row.namespace, row.name) != table:
            sources.setdefault(row.snapshot_id, {})[row.namespace, row.name] = row.read_id
    line, _ = snapshot_lines(connection, table)
    return Line(table, line, [sources.get(snapshot, {}) for snapshot in line])
