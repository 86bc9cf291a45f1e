"""Settings that all writers and views of a store share, one row a key of `store_settings`.

address: where the server that started last can be reached (STRANDLINE_PUBLIC_URL, if set).
epoch: raised when rows are deleted or renamed; it empties the memory of every writer.
exports: what targets want (runs, events).
graph_news: 1 once transactions note their changes of the lineage graph.
graph_pruned: the last of these notes that was deleted.
has_renames: 1 once a dataset was renamed.
job_families: [namespace, pattern] of the jobs that are one job, as JSON.
looked_before: the moment (microseconds) up to which retention has looked for old records.
recent_runs: the number of a job's runs that are known besides those of its latest application.
retention_waits_since: when retention first waited before it drops more than half of the events.
schema_fingerprint: a hash of the tables and views (schema/fingerprint.py).
silent_seconds: the silence after which a run without a heartbeat timeout is LOST.
space_owed: tables whose deleted rows are still to be overwritten (ingest/space.py).
strip_patterns: regular expressions whose matches are cut out of paths, as JSON.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from sqlalchemy import Connection, Select, select, text

from strandline.core.openlineage.names import Naming, naming_of
from strandline.store.schema.received_tables import store_settings


def agreed(connection: Connection) -> dict[str, str]:
    """Return all settings."""
    return {row.key: row.value for row in connection.execute(_all())}


@cache
def _all() -> Select[str, str]:
    return select(store_settings.c.key, store_settings.c.value)


def agree(connection: Connection, key: str, value: str) -> None:
    """Set a value."""
    statement = text(
        "INSERT INTO store_settings (key, value) VALUES (:key, :value)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        " WHERE store_settings.value <> excluded.value"
    )
    connection.execute(statement, {"key": key, "value": value})


def raise_epoch(connection: Connection) -> None:
    """Let every writer forget which rows are stored, and how datasets and jobs are named."""
    agree(connection, "epoch", str(int(agreed(connection).get("epoch", "0")) + 1))


def naming_in(settings: Mapping[str, str]) -> Naming:
    """Return how datasets and jobs are named by these settings."""
    families = json.loads(settings.get("job_families", "[]"))
    return naming_of(json.loads(settings.get("strip_patterns", "[]")), map(tuple, families))


def agreed_naming(connection: Connection) -> Naming:
    """Return how datasets and jobs are named."""
    return naming_in(agreed(connection))


def strip_patterns(connection: Connection) -> list[str]:
    """Return the regular expressions whose matches are cut out of paths."""
    patterns: list[str] = json.loads(agreed(connection).get("strip_patterns", "[]"))
    return patterns


def agree_on_patterns(connection: Connection, patterns: Sequence[str]) -> None:
    """Set the regular expressions whose matches are cut out of paths."""
    agree(connection, "strip_patterns", json.dumps(list(patterns)))
    raise_epoch(connection)


def agree_on_families(connection: Connection, families: Collection[tuple[str, str]]) -> None:
    """Set the families of jobs, each a namespace and a pattern."""
    agree(connection, "job_families", json.dumps(sorted(families)))
    raise_epoch(connection)
