"""What was received: the events themselves, records that are no events, and how far the collector is with both.

None of these is a fold. The other tables can be rebuilt from the events; the rest says how far the collector has come.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from strandline.store.schema.columns import (
    CLUSTERED,
    id_column,
    metadata,
    own_id,
    text_column,
    time_column,
)

# Which events are known: the first 16 bytes of SHA-256 over the bytes as received. Two byte-equal
# events are one event.
event_keys = Table(
    "event_keys",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    time_column("received_at"),
    **CLUSTERED,
)

# The events themselves, redacted, zstd-compressed; on PostgreSQL partitioned by received_at, so
# that expiring is a DROP. (The first migration says so; said here too, it would load PostgreSQL's
# dialect into every command on SQLite.)
raw_events = Table(
    "raw_events",
    metadata,
    time_column("received_at"),
    Column("hash", LargeBinary, nullable=False),
    time_column("event_time"),
    Column(
        "reference_id", BigInteger, nullable=False, server_default="0"
    ),  # the row of body_references that body is packed against; 0: none
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("received_at", "hash"),
    **CLUSTERED,
)

# Earlier bodies that later ones of their key (a job with an event type), received before `until`,
# are packed against. id is a hash of the row; `source` is the hash of the event it came with.
body_references = Table(
    "body_references",
    metadata,
    own_id(),
    Column("body", LargeBinary, nullable=False),
    id_column("key"),
    time_column("until"),
    Column("source", LargeBinary, nullable=False),
    Index(None, "key"),
    Index(None, "source"),
)

# Records that are no events, with the reason; id is a hash of body and offset, so a replay adds
# nothing.
dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    time_column("received_at"),
    text_column("topic"),
    Column("partition_id", Integer, nullable=False, server_default="-1"),
    Column("record_offset", BigInteger, nullable=False, server_default="-1"),
    text_column("reason"),
    Column("body", LargeBinary, nullable=False),
    Index(None, "received_at"),
)

# Events that a fault of this program kept from being read or stored, by the hash of what was
# received (`body` is without its secrets). They are taken again when it starts the next time.
unread_events = Table(
    "unread_events",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    time_column("received_at"),
    text_column("topic"),
    Column("partition_id", Integer, nullable=False, server_default="-1"),
    Column("record_offset", BigInteger, nullable=False, server_default="-1"),
    text_column("reason"),
    Column("body", LargeBinary, nullable=False),
    Index(None, "received_at"),
)

# How far each partition was taken, moved by compare-and-set in the transaction of the batch;
# `token` names the owner.
offsets = Table(
    "offsets",
    metadata,
    text_column("topic"),
    Column("partition_id", Integer, nullable=False),
    text_column("group_name"),
    Column("next_offset", BigInteger, nullable=False),
    text_column("token"),
    PrimaryKeyConstraint("topic", "partition_id", "group_name"),
    **CLUSTERED,
)

# What views and answers need to know of the settings: silent_seconds, recent_runs.
store_settings = Table(
    "store_settings",
    metadata,
    Column("key", Text, primary_key=True),
    text_column("value"),
    **CLUSTERED,
)

# Records that were being taken, alone, when the process died: how often each. Only kept while it
# may happen again.
crash_marks = Table(
    "crash_marks",
    metadata,
    text_column("topic"),
    Column("partition_id", Integer, nullable=False),
    text_column("group_name"),
    Column("record_offset", BigInteger, nullable=False),
    Column("crashes", Integer, nullable=False),
    PrimaryKeyConstraint("topic", "partition_id", "group_name"),
    **CLUSTERED,
)

# Events that were refused over HTTP, once for each producer and reason; id is a hash of both. body:
# the newest one's first bytes.
refused_events = Table(
    "refused_events",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    text_column("producer"),
    text_column("reason"),
    Column("count", BigInteger, nullable=False),
    time_column("first_at"),
    time_column("newest_at"),
    Column("body", LargeBinary, nullable=False),
    Index(None, "newest_at"),
)
