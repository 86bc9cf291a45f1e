"""The tables of what is exported.

What waits for the targets, how far each target is, what it has, what it refused.

Ingest only adds to `export_news`. Whoever exports gives the news numbers under the lock of
export_head's one row, so a reader who has seen number n misses nothing before it, whatever the
order in which transactions end.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
)

from strandline.store.schema.columns import CLUSTERED, Id, metadata

# One row: the number of the last change. Whoever gives out numbers holds its lock.
export_head = Table(
    "export_head",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
)

# What transactions changed, without an order yet. kind: 0 a run, 1 a dataset, 2 an event as
# received, 3 an alert.
export_news = Table(
    "export_news",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("kind", SmallInteger, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    Column(
        "group_id", BigInteger, nullable=False
    ),  # of a run its job, of an event its run: what it is folded within
    Column(
        "at", BigInteger, nullable=False
    ),  # of an event its receipt: with the hash the key of raw_events
    Column("hash", LargeBinary, nullable=True),
    Column("body", LargeBinary, nullable=True),  # of an alert
    sqlite_autoincrement=True,
)

# The same in order, one row an entity: a run that changes again moves to the end, for only its
# newest state has to arrive.
export_changes = Table(
    "export_changes",
    metadata,
    Column("kind", SmallInteger, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("group_id", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=True),
    Column("body", LargeBinary, nullable=True),
    PrimaryKeyConstraint("kind", "entity_id"),
    Index(None, "seq", unique=True),
    **CLUSTERED,
)

# One row a target: all changes up to `cursor` have arrived, or are parked. `holder` is the process
# that sends at the moment.
export_targets = Table(
    "export_targets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("kinds", Text, nullable=False, server_default=""),  # what it wants: runs, events, alerts
    Column("cursor", BigInteger, nullable=False, server_default="0"),
    Column("holder", Text, nullable=False, server_default=""),
    Column("held_until", BigInteger, nullable=False, server_default="0"),
    Column(
        "heard_at", BigInteger, nullable=False, server_default="0"
    ),  # when a process last had it in its settings
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row
    Column("next_at", BigInteger, nullable=False, server_default="0"),
    Column("problem", Text, nullable=False, server_default=""),
    Column("sent", BigInteger, nullable=False, server_default="0"),
    Column("sent_at", BigInteger, nullable=False, server_default="0"),
    Column(
        "dropped", BigInteger, nullable=False, server_default="0"
    ),  # events that were folded away unsent
    **CLUSTERED,
)

# What a target has of each entity, as hashes: `shape` of what makes it another entity to people,
# `detail` of all of it.
export_sent = Table(
    "export_sent",
    metadata,
    Column("target", Text, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    Column("shape", LargeBinary, nullable=False),
    Column("detail", LargeBinary, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("run_id", BigInteger, nullable=False, server_default="0"),  # whose news it goes by
    Column(
        "live", SmallInteger, nullable=False, server_default="0"
    ),  # it may end by silence, of which no event tells
    Column(
        "stale", SmallInteger, nullable=False, server_default="0"
    ),  # a detail has changed that may wait
    PrimaryKeyConstraint("target", "kind", "entity_id"),
    **CLUSTERED,
)

# What a target refused for good, with the reason; gone when a newer state of the same entity is
# taken, an alert when it is replayed.
export_parked = Table(
    "export_parked",
    metadata,
    Column("target", Text, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("about", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("change_kind", SmallInteger, nullable=False),  # the change that it came of, for a replay
    Column("change_id", BigInteger, nullable=False),
    Column("group_id", BigInteger, nullable=False),
    Column("change_at", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=True),
    Column("body", LargeBinary, nullable=True),
    PrimaryKeyConstraint("target", "kind", "entity_id"),
    **CLUSTERED,
)
