"""Dropping what is old: events, ended runs with their relations, data lineage, unused content.

What is known of a job stays, however old: its last runs, and of a streaming query the micro-batches
that last read or wrote a dataset. Otherwise a yearly job would vanish between its runs. The runs
above a run that stays do, too. Raising the store's epoch empties the memory of every writer, which
may have content in it that is gone.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, select, text

from strandline.core.changes.edges import RENAMED_COLUMNS
from strandline.core.changes.extraction import relation_id_of
from strandline.core.changes.rows import QUARANTINED
from strandline.core.openlineage.facets import INPUT, OUTPUT
from strandline.core.openlineage.times import micros_of
from strandline.store.ingest.archived import forget_archived_keys
from strandline.store.ingest.raw_events import DAY, partition_name, partition_names
from strandline.store.lineage.recent_runs import RECENT_RUNS_SQL
from strandline.store.lineage.relations import recent_run_count
from strandline.store.schema.archive_tables import archive_batches
from strandline.store.schema.conditions import NOW
from strandline.store.schema.dataset_tables import facets
from strandline.store.schema.received_tables import raw_events
from strandline.store.search.finding import APPLICATION
from strandline.store.sql.body_references import drop_references
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import raise_epoch

RUNS_AT_ONCE = 5_000
EXPIRE_LOCK = 0x6578_7069  # writers share it, expiring has it alone

_OLD_RUNS = f"""
SELECT id FROM runs
 WHERE coalesce(newest_at, 0) < :cutoff
   AND child_received_at < :cutoff
   AND (SELECT silent_at FROM run_silences WHERE run_id = runs.id) < :cutoff
   AND id NOT IN ({RECENT_RUNS_SQL})
   AND NOT EXISTS (
       SELECT 1 FROM run_edges WHERE run_id = runs.id AND rule = {RENAMED_COLUMNS})
"""
_KEEP_RUNS_ABOVE = """
DELETE FROM old_runs
 WHERE EXISTS (
       SELECT 1 FROM {table} below
        WHERE below.{above} = old_runs.id
          AND NOT EXISTS (SELECT 1 FROM old_runs gone WHERE gone.id = below.run_id))
"""
_ABOVE = (
    ("run_parents", "parent_run_id"),
    ("run_parents", "root_run_id"),
    ("run_queries", "owner_id"),
)
_OLD_PAGE = text("SELECT id FROM old_runs WHERE id > :after ORDER BY id LIMIT :most")
_OLD_RELATIONS = text("""
SELECT run_id, direction, dataset_id
  FROM run_relations
 WHERE run_id IN (SELECT id FROM old_runs WHERE id > :after AND id <= :last)
""")
_OF_RELATIONS = facets.c.kind.in_(
    [kind + apart for kind in (INPUT, OUTPUT) for apart in (0, QUARANTINED)]
)

_OLD_RECORDS = (
    "set_aside WHERE received_at < :cutoff",
    "refused_events WHERE newest_at < :cutoff",
    "snapshot_uses WHERE at < :cutoff",
    "job_barriers WHERE at < :cutoff",
)
# Each table after those whose rows are found by way of it. Kinds are those of facets.kind.
_ROWS_OF_OLD_RUNS = (
    "facets WHERE entity_id IN (SELECT id FROM old_runs) AND kind IN (1, 11)",
    "facet_uses WHERE entity_id IN (SELECT id FROM old_runs)",
    f"search_texts WHERE id IN (SELECT id FROM old_runs) AND kind = {APPLICATION}",
    "run_templates WHERE run_id IN (SELECT id FROM old_runs)",
    "job_relations WHERE run_id IN (SELECT id FROM old_runs)",
    "run_parents WHERE run_id IN (SELECT id FROM old_runs)",
    "run_queries WHERE run_id IN (SELECT id FROM old_runs)",
    "startup_snapshots WHERE run_id IN (SELECT id FROM old_runs)",
    "run_leases WHERE run_id IN (SELECT id FROM old_runs)",
    "runs WHERE id IN (SELECT id FROM old_runs)",
)
# A set is of no use if each of its facets is in a newer set of the same entity.
_OVERTAKEN_SETS = """facet_uses WHERE EXISTS (
       SELECT 1 FROM facet_uses newer
        WHERE newer.entity_id = facet_uses.entity_id
          AND newer.at > facet_uses.at
          AND NOT EXISTS (
              SELECT 1 FROM facet_sets held
               WHERE held.set_id = facet_uses.set_id
                 AND NOT EXISTS (
                     SELECT 1 FROM facet_sets again
                      WHERE again.set_id = newer.set_id AND again.key = held.key)))"""
UNUSED = (
    "facet_sets WHERE set_id NOT IN (SELECT set_id FROM facet_uses)",
    """facet_bodies
 WHERE NOT EXISTS (
       SELECT 1 FROM facets WHERE facets.hash = facet_bodies.hash AND facets.body IS NULL)
   AND NOT EXISTS (
       SELECT 1 FROM facet_sets
        WHERE facet_sets.hash = facet_bodies.hash AND facet_sets.body IS NULL)""",
    """template_relations
 WHERE NOT EXISTS (
       SELECT 1 FROM run_templates used WHERE used.template_id = template_relations.template_id)""",
    """template_edges
 WHERE NOT EXISTS (
       SELECT 1 FROM run_templates used WHERE used.template_id = template_edges.template_id)""",
    """edge_columns
 WHERE NOT EXISTS (
       SELECT 1 FROM template_edges WHERE template_edges.set_hash = edge_columns.set_hash)""",
)


@dataclass(frozen=True, slots=True)
class Expired:
    """The number of dropped rows by table, and the dropped partitions of PostgreSQL."""

    rows: dict[str, int]
    partitions: tuple[str, ...]


class Clock(NamedTuple):
    """The database's clock, and the moment of the newest event, in microseconds."""

    database: int
    newest_event: int | None

    @property
    def now(self) -> int:
        """The older of the two, so that a clock that is ahead makes nothing old."""
        if self.newest_event is None:
            return self.database
        return min(self.database, self.newest_event)


def clock_of(connection: Connection) -> Clock:
    """Read the clock that ages count from. Archived events count as well."""
    database = connection.execute(text(f"SELECT {NOW[connection.dialect.name]}")).scalar_one()
    newest_event = connection.scalar(select(func.max(raw_events.c.received_at)))
    newest_archived = connection.scalar(select(func.max(archive_batches.c.newest_at)))
    received = [moment for moment in (newest_event, newest_archived) if moment is not None]
    return Clock(database, max(received, default=None))


def count_events(connection: Connection, cutoff: int) -> tuple[int, int]:
    """Count the events older than a moment, and all events."""
    all_events = select(func.count()).select_from(raw_events)
    old_events = all_events.where(raw_events.c.received_at < cutoff)
    return connection.scalar(old_events) or 0, connection.scalar(all_events) or 0


def has_old_records(connection: Connection, cutoff: int) -> bool:
    """Return whether anything but events is older than a moment in microseconds."""
    parameters = {"cutoff": cutoff, "recent_runs": recent_run_count(connection)}
    for where in _OLD_RECORDS:
        if connection.execute(text(f"SELECT 1 FROM {where} LIMIT 1"), parameters).first():
            return True
    return connection.execute(text(f"{_OLD_RUNS} LIMIT 1"), parameters).first() is not None


def keep_writers_out(connection: Connection) -> None:
    """Wait for the batches that are being written; until this transaction ends, no other begins."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": EXPIRE_LOCK})


def expire(connection: Connection, before: datetime) -> Expired:
    """Drop what is older than a moment."""
    cutoff = micros_of(before)
    keep_writers_out(connection)
    raise_epoch(connection)
    partitions, counts = _drop_events(connection, cutoff)
    counts["event_keys"] += forget_archived_keys(connection, cutoff)
    counts["body_references"] = drop_references(connection)
    for where in _OLD_RECORDS:
        _delete(connection, where, counts, cutoff=cutoff)
    _collect_old_runs(connection, cutoff)
    counts["facets"] = _drop_facets_of_relations(connection)
    for where in (*_ROWS_OF_OLD_RUNS, _OVERTAKEN_SETS, *UNUSED):
        _delete(connection, where, counts)
    connection.execute(text("DROP TABLE old_runs"))
    return Expired(dict(counts), partitions)


def _drop_events(connection: Connection, cutoff: int) -> tuple[tuple[str, ...], Counter[str]]:
    """Drop old events with their keys: whole partitions, or rows where there are none (SQLite).

    The keys are looked up by hash: an index on their times would slow down every event.
    """
    counts: Counter[str] = Counter()
    if connection.dialect.name != "postgresql":
        old_events = "raw_events WHERE received_at < :cutoff"
        old_keys = f"event_keys WHERE hash IN (SELECT hash FROM {old_events})"
        _delete(connection, old_keys, counts, cutoff=cutoff)
        _delete(connection, old_events, counts, cutoff=cutoff)
        return (), counts
    first_kept = partition_name(cutoff // DAY)
    partitions = tuple(name for name in partition_names(connection) if name < first_kept)
    for name in partitions:
        keys = text(f"DELETE FROM event_keys USING {name} AS old WHERE event_keys.hash = old.hash")
        counts["event_keys"] += connection.execute(keys).rowcount
        connection.execute(text(f"DROP TABLE {name}"))
    return partitions, counts


def _delete(connection: Connection, where: str, counts: Counter[str], **parameters: int) -> None:
    """Delete rows of the table that the condition begins with, and count them."""
    table = where.split()[0]
    counts[table] += connection.execute(text(f"DELETE FROM {where}"), parameters).rowcount


def _collect_old_runs(connection: Connection, cutoff: int) -> None:
    """Fill the temporary table old_runs with the runs to drop."""
    connection.execute(text("CREATE TEMPORARY TABLE old_runs (id BIGINT PRIMARY KEY)"))
    parameters = {"cutoff": cutoff, "recent_runs": recent_run_count(connection)}
    connection.execute(text(f"INSERT INTO old_runs {_OLD_RUNS}"), parameters)
    kept_count = 1
    while kept_count:  # a run above a kept run may have runs above it
        kept_count = 0
        for table, above in _ABOVE:
            statement = text(_KEEP_RUNS_ABOVE.format(table=table, above=above))
            kept_count += connection.execute(statement).rowcount


def _drop_facets_of_relations(connection: Connection) -> int:
    """Delete the facets of the old runs' inputs and outputs, and return their number.

    Their ids are hashes, so they are computed here, for some runs at a time.
    """
    after, dropped = -1, 0  # no id is negative
    while ids := connection.scalars(_OLD_PAGE, {"after": after, "most": RUNS_AT_ONCE}).all():
        rows = connection.execute(_OLD_RELATIONS, {"after": after, "last": ids[-1]})
        relations = [relation_id_of(*row) for row in rows]
        own_facets = delete(facets).where(among(facets.c.entity_id, relations), _OF_RELATIONS)
        dropped += connection.execute(own_facets).rowcount
        after = ids[-1]
    return dropped
