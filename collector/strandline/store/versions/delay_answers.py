"""The answer to how late a table is, as the API and the command give it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from strandline.core.openlineage.names import named
from strandline.core.versions.delays import Delay, delay, staleness
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import held_by
from strandline.errors import RefusedError
from strandline.store.lineage.lookup import labels_of
from strandline.store.versions.lookup import call


def delay_answer(
    connection: Connection, model: Model, table: Table, barrier: int | None, now: float
) -> dict[str, Any]:
    """Return the delay of a table at a barrier (its last one), and how stale the table is now.

    There is no delay of a last barrier whose time is no longer stored.
    """
    call(connection, model, [table])
    if table not in model.done or not model.is_tracked(table):
        raise RefusedError(f"{model.why_untracked(table)}: it has no barriers", "untracked")
    if barrier is None:
        last = model.done[table].last
        barrier = last if last in model.group(model.group_of[table]).births else None
    delay_found = delay(model, table, barrier) if barrier is not None else None
    parts = [part.table for part in delay_found.parts] if delay_found is not None else []
    stale = staleness(model, table, now)
    writer = model.writer(table)
    reasons = [holder.reason(now) for holder in held_by(model, [table])]
    return {
        **named(table),
        "label": model.call(table),
        "writer": named(writer) if writer is not None else None,
        "blockedBy": list(dict.fromkeys(reasons)),
        "delay": _delay(delay_found, labels_of(connection, parts))
        if delay_found is not None
        else None,
        "staleness": {
            "barrier": stale.barrier,
            "seconds": stale.seconds,
            "localSeconds": stale.local_seconds,
            "job": named(stale.job) if stale.job is not None else None,
        },
    }


def _delay(delay: Delay, labels: Mapping[Table, str]) -> dict[str, Any]:
    parts = [
        {
            "table": named(part.table) | {"label": labels.get(part.table, part.table[1])},
            "job": named(part.job) if part.job else None,
            "kind": part.kind,
            "seconds": part.seconds,
        }
        for part in delay.parts
    ]
    largest = delay.bottleneck
    bottleneck = parts[delay.parts.index(largest)] if largest is not None else None
    return {
        "barrier": delay.barrier,
        "seconds": delay.seconds,
        "parts": parts,
        "bottleneck": bottleneck,
    }
