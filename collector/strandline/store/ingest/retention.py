"""Dropping what is old: events as received, ended runs with their relations, data lineage.

Then content nobody refers to.

What is known of a job (its last runs, and of an owner's micro-batches those that touched a dataset
last) stays, however old, or a yearly job would vanish between its runs; so do the runs that those
which stay belong to. Raising the store's epoch empties every writer's caches, for they may know of
content that is gone.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, text

from strandline.core.changes.extraction import relation_id_of
from strandline.core.changes.rows import QUARANTINED
from strandline.core.openlineage.facets import INPUT, OUTPUT
from strandline.core.openlineage.times import micros_of
from strandline.store.ingest.archived import forget_archived_keys
from strandline.store.ingest.raw_events import DAY, partition_name
from strandline.store.lineage.recent_runs import RECENT_RUNS_SQL
from strandline.store.lineage.relations import recent_run_count
from strandline.store.schema.tables import facets
from strandline.store.sql.id_lists import among
from strandline.store.sql.references import drop_references
from strandline.store.sql.shared_settings import raise_epoch

RUNS_AT_ONCE = 5_000
EXPIRE_LOCK = 0x6578_7069  # writers share it, expiring has it alone

_OLD_RUNS = f"""
SELECT id FROM runs
 WHERE coalesce(newest_at, 0) < :cutoff AND child_received_at < :cutoff
   AND (SELECT silent_at FROM run_silences WHERE run_id = runs.id) < :cutoff
   AND id NOT IN ({RECENT_RUNS_SQL})
"""
_ABOVE = (
    ("run_parents", "parent_run_id"),
    ("run_parents", "root_run_id"),
    ("run_queries", "owner_id"),
)
_ABOVE_KEPT = """
DELETE FROM old_runs WHERE EXISTS (
       SELECT 1 FROM {table} below
        WHERE below.{above} = old_runs.id
          AND NOT EXISTS (SELECT 1 FROM old_runs gone WHERE gone.id = below.run_id))
"""
_OLD_PAGE = text("SELECT id FROM old_runs WHERE id > :after ORDER BY id LIMIT :most")
_OLD_RELATIONS = text("""SELECT run_id, direction, dataset_id FROM run_relations
 WHERE run_id IN (SELECT id FROM old_runs WHERE id > :after AND id <= :last)""")
_OF_RELATIONS = facets.c.kind.in_(
    [kind + apart for kind in (INPUT, OUTPUT) for apart in (0, QUARANTINED)]
)
# Kinds as facets.kind has them. Each after those that are found by way of it.
_OF_RUNS = (
    "facets WHERE entity_id IN ({old}) AND kind IN (1, 11)",
    "facet_uses WHERE entity_id IN ({old})",
    "run_templates WHERE run_id IN ({old})",
    "job_relations WHERE run_id IN ({old})",
    "run_parents WHERE run_id IN ({old})",
    "run_queries WHERE run_id IN ({old})",
    "startup_snapshots WHERE run_id IN ({old})",
    "run_leases WHERE run_id IN ({old})",
    "runs WHERE id IN ({old})",
)
_OLD_RECORDS = (
    "dead_letters WHERE received_at < :cutoff",
    "unread_events WHERE received_at < :cutoff",
    "refused_events WHERE newest_at < :cutoff",
    "snapshot_uses WHERE at < :cutoff",
    "job_barriers WHERE at < :cutoff",
)
# A set of which every facet is in a newer one of the same job, dataset or run tells nothing any
# more.
_OVERTAKEN = """facet_uses WHERE EXISTS (
       SELECT 1 FROM facet_uses newer
        WHERE newer.entity_id = facet_uses.entity_id AND newer.at > facet_uses.at
          AND NOT EXISTS (SELECT 1 FROM facet_sets held
                           WHERE held.set_id = facet_uses.set_id
                             AND NOT EXISTS (SELECT 1 FROM facet_sets again
                                              WHERE again.set_id = newer.set_id AND again.key = held.key)))"""
UNUSED = (
    "facet_sets WHERE set_id NOT IN (SELECT set_id FROM facet_uses)",
    """facet_bodies
 WHERE NOT EXISTS (SELECT 1 FROM facets WHERE facets.hash = facet_bodies.hash AND facets.body IS NULL)
   AND NOT EXISTS (SELECT 1 FROM facet_sets WHERE facet_sets.hash = facet_bodies.hash AND facet_sets.body IS NULL)""",
    "template_relations WHERE NOT EXISTS (SELECT 1 FROM run_templates used WHERE used.template_id = template_relations.template_id)",
    "template_edges WHERE NOT EXISTS (SELECT 1 FROM run_templates used WHERE used.template_id = template_edges.template_id)",
    """edge_columns
 WHERE NOT EXISTS (SELECT 1 FROM template_edges WHERE template_edges.set_hash = edge_columns.set_hash)""",
)


@dataclass(frozen=True, slots=True)
class Expired:
    """How many rows went, by table; `partitions` are whole days of raw events on PostgreSQL."""

    rows: dict[str, int]
    partitions: tuple[str, ...]


def expire(connection: Connection, before: datetime) -> Expired:
    """Drop what is older than a moment."""
    cutoff = micros_of(before)
    keep_writers_out(connection)
    raise_epoch(connection)
    partitions, gone = _expire_events(connection, cutoff)
    gone["event_keys"] += forget_archived_keys(connection, cutoff)
    gone["dictionaries"] = drop_references(connection)
    old = _collect_runs(connection, cutoff)
    gone["facets"] = _drop_facets_of_relations(connection)
    for where in (*_OLD_RECORDS, *(one.format(old=old) for one in _OF_RUNS), _OVERTAKEN, *UNUSED):
        table = where.split()[0]
        found = connection.execute(
            text(f"DELETE FROM {where}"), {"cutoff": cutoff} if ":cutoff" in where else {}
        )
        gone[table] = gone.get(table, 0) + found.rowcount
    connection.execute(text("DROP TABLE old_runs"))
    gone["dictionaries"] += _drop_unused_dictionaries(connection)
    return Expired(gone, partitions)


def _drop_unused_dictionaries(connection: Connection) -> int:
    """Drop the trained dictionaries that no event needs any more.

    A writer that has one stores it again with its next event.

    References go by their age: there may be thousands, and to look for what needs one takes going
    over all events.
    """
    unused = text(
        "DELETE FROM dictionaries WHERE id = :id AND NOT EXISTS (SELECT 1 FROM raw_events WHERE dictionary_id = :id)"
    )
    ids = connection.scalars(text("SELECT id FROM dictionaries WHERE key IS NULL")).all()
    return sum(connection.execute(unused, {"id": id_}).rowcount for id_ in ids)


def has_old_records(connection: Connection, cutoff: int) -> bool:
    """Whether anything but events is older than a moment in microseconds.

    Events may all be gone before it.
    """
    given = {"cutoff": cutoff}
    records = (f"SELECT 1 FROM {where} LIMIT 1" for where in _OLD_RECORDS)
    if any(connection.execute(text(query), given).first() for query in records):
        return True
    return (
        connection.execute(
            text(f"{_OLD_RUNS} LIMIT 1"), given | {"recent_runs": recent_run_count(connection)}
        ).first()
        is not None
    )


def keep_writers_out(connection: Connection) -> None:
    """Wait for the batches that are being written; until this transaction ends, no other begins."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": EXPIRE_LOCK})


def _collect_runs(connection: Connection, cutoff: int) -> str:
    """The runs to drop, in a table of this transaction; gives the query for them."""
    connection.execute(text("CREATE TEMPORARY TABLE old_runs (id BIGINT PRIMARY KEY)"))
    given = {"cutoff": cutoff, "recent_runs": recent_run_count(connection)}
    connection.execute(text(f"INSERT INTO old_runs {_OLD_RUNS}"), given)
    while sum(
        connection.execute(text(_ABOVE_KEPT.format(table=table, above=above))).rowcount
        for table, above in _ABOVE
    ):
        pass  # what they belong to may belong to others
    return "SELECT id FROM old_runs"


def _drop_facets_of_relations(connection: Connection) -> int:
    """Delete the facets of these runs' inputs and outputs, of some runs at once.

    Their ids are no column; gives how many.
    """
    after, dropped = -1, 0  # no id is negative
    while ids := connection.scalars(_OLD_PAGE, {"after": after, "most": RUNS_AT_ONCE}).all():
        own = [
            relation_id_of(*one)
            for one in connection.execute(_OLD_RELATIONS, {"after": after, "last": ids[-1]})
        ]
        if own:
            dropped += connection.execute(
                delete(facets).where(among(facets.c.entity_id, own), _OF_RELATIONS)
            ).rowcount
        after = ids[-1]
    return dropped


def _expire_events(connection: Connection, cutoff: int) -> tuple[tuple[str, ...], dict[str, int]]:
    """Drop the partitions that are wholly older; single rows only where there are none (SQLite).

    An event's key goes with it, looked up by its hash: an index on the keys' times would cost every
    event something.
    """
    if connection.dialect.name != "postgresql":
        old_events = "raw_events WHERE received_at < :cutoff"
        keys = f"DELETE FROM event_keys WHERE hash IN (SELECT hash FROM {old_events})"
        statements = {"event_keys": keys, "raw_events": f"DELETE FROM {old_events}"}
        return (), {
            name: connection.execute(text(statement), {"cutoff": cutoff}).rowcount
            for name, statement in statements.items()
        }
    query = (
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'raw_events'::regclass"
    )
    newest = partition_name(cutoff // DAY)
    old = tuple(sorted(name for (name,) in connection.execute(text(query)) if name < newest))
    return old, {"event_keys": sum(_drop_partition(connection, name) for name in old)}


def _drop_partition(connection: Connection, name: str) -> int:
    """Drop a day of events with their keys; gives how many."""
    keys = text(f"DELETE FROM event_keys USING {name} AS old WHERE event_keys.hash = old.hash")
    gone = connection.execute(keys).rowcount
    connection.execute(text(f"DROP TABLE {name}"))
    return gone
