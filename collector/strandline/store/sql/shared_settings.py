"""What all writers and views of a store have to agree on, kept in the store itself: one row a key.

silent_seconds: silence after which a run without a heartbeat timeout is LOST. recent_runs: how many
runs of a job are known besides those of its latest application. strip_patterns: what is cut out of
paths, as JSON. looked_before: up to which moment (microseconds) was looked for what is too old
beside events. exports: what targets want to hear of (runs, events). graph_news: 1 once transactions
note what they change of the lineage graph. graph_pruned: which of these notes are gone. epoch:
raised whenever rows are taken away or named anew, which empties every writer's caches.
"""

import json
from collections.abc import Sequence
from functools import cache

from sqlalchemy import Connection, Select, select, text

from strandline.store.schema.received_tables import store_settings


def agreed(connection: Connection) -> dict[str, str]:
    """All that is agreed on."""
    return {row.key: row.value for row in connection.execute(_all())}


@cache
def _all() -> Select[str, str]:
    return select(store_settings.c.key, store_settings.c.value)


def agree(connection: Connection, key: str, value: str) -> None:
    """Agree on a value from now on."""
    statement = text(
        "INSERT INTO store_settings (key, value) VALUES (:key, :value) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE store_settings.value <> excluded.value"
    )
    connection.execute(statement, {"key": key, "value": value})


def raise_epoch(connection: Connection) -> None:
    """Let every writer forget what it knows to be stored, and how datasets are named."""
    agree(connection, "epoch", str(int(agreed(connection).get("epoch", "0")) + 1))


def strip_patterns(connection: Connection) -> list[str]:
    """The regular expressions whose matches are cut out of names that are paths."""
    found: list[str] = json.loads(agreed(connection).get("strip_patterns", "[]"))
    return found


def agree_on_patterns(connection: Connection, patterns: Sequence[str]) -> None:
    """Strip by these patterns from now on."""
    agree(connection, "strip_patterns", json.dumps(list(patterns)))
    raise_epoch(connection)
