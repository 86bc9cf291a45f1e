"""The delay of a table, as one document for the API and the command line."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from strandline.core.versions.delays import Delay, delay, staleness
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import held_by
from strandline.errors import RefusedError
from strandline.store.lineage.table_labels import labels_of
from strandline.store.versions.answers import holders_answer
from strandline.store.versions.lookup import call


def delay_answer(
    connection: Connection, model: Model, table: Table, barrier: int | None, now: float
) -> dict[str, Any]:
    """Return the delay of a table at a barrier (None: its last one), its staleness, and what blocks it.

    Raise RefusedError for a table without barriers. `now` is in seconds since 1970.
    """
    if table not in model.done or not model.is_managed(table):
        call(connection, model, [table])
        raise RefusedError(f"{model.why_unmanaged(table)}: it has no barriers", "untracked")
    at_barrier = barrier if barrier is not None else model.done[table].last
    found = delay(model, table, at_barrier) if at_barrier is not None else None
    passed = {part.table for part in found.parts} if found is not None else set()
    labels = labels_of(connection, {table, *passed})
    writer = model.writer(table)
    stale = staleness(model, table, now)
    return {
        **_named(table),
        "label": labels.get(table, table[1]),
        "writer": _named(writer) if writer is not None else None,
        "delay": _delay(found, labels) if found is not None else None,
        "staleness": {
            "barrier": stale.barrier,
            "seconds": stale.seconds,
            "localSeconds": stale.local_seconds,
            "job": _named(stale.job) if stale.job is not None else None,
        },
        "blockedBy": holders_answer(held_by(model, [table]), now),
    }


def _delay(found: Delay, labels: Mapping[Table, str]) -> dict[str, Any]:
    parts = [
        {
            "table": _named(part.table) | {"label": labels.get(part.table, part.table[1])},
            "job": _named(part.job) if part.job else None,
            "kind": part.kind,
            "seconds": part.seconds,
        }
        for part in found.parts
    ]
    largest = found.bottleneck
    bottleneck = parts[found.parts.index(largest)] if largest is not None else None
    return {
        "barrier": found.barrier,
        "seconds": found.seconds,
        "parts": parts,
        "bottleneck": bottleneck,
    }


def _named(key: tuple[str, str]) -> dict[str, str]:
    return {"namespace": key[0], "name": key[1]}
