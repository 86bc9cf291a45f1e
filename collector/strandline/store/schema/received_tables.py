"""The tables of received events, dead letters and unread events, and of the topics' offsets.

None of these is a fold. The other tables can be rebuilt from the events.
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
    bytes_column,
    count_column,
    id_column,
    metadata,
    number_column,
    own_id,
    text_column,
    time_column,
)

event_keys = Table(
    "event_keys",
    metadata,
    Column(
        "hash", LargeBinary, primary_key=True, comment="16 bytes of SHA-256 of the event's bytes"
    ),
    time_column("received_at", "finds the event in raw_events"),
    comment="tells which events are known, so that each is stored once",
    **CLUSTERED,
)

# On PostgreSQL the first migration partitions this table by received_at, so that expiring is a
# DROP. (Said here, it would load PostgreSQL's dialect into every command on SQLite.)
raw_events = Table(
    "raw_events",
    metadata,
    time_column("received_at", "orders events for replay; retention counts their age from it"),
    bytes_column("hash", "the key in event_keys"),
    time_column("event_time", "the moment that the sender states"),
    count_column(
        "reference_id", "the row of body_references that the body is packed against, or 0"
    ),
    bytes_column("body", "the event as received, without secrets, as a zstd frame"),
    PrimaryKeyConstraint("received_at", "hash"),
    comment="the events; everything else that is known of jobs and tables is a fold of them",
    postgresql_partition_by="RANGE (received_at)",
    **CLUSTERED,
)

body_references = Table(
    "body_references",
    metadata,
    own_id("a hash of the row, by which damage is noticed"),
    bytes_column("body", "an earlier event's body, packed without a reference"),
    id_column("key", "the job or dataset and the event type whose events it serves"),
    time_column("until", "only events received before are packed against it"),
    bytes_column("source", "the hash of the event that it came with, to forget both together"),
    Index(None, "key"),
    Index(None, "source"),
    comment="what similar events have in common, which saves nine tenths of their size",
)

set_aside = Table(
    "set_aside",
    metadata,
    text_column("kind", "dead: it is no event; unread: a fault of ours kept it from being read"),
    bytes_column("id", "dead: a hash of place and body; unread: the event's hash"),
    time_column("received_at", "orders the lists; retention counts the age from it"),
    text_column("topic", "the Kafka topic; empty if it came in another way"),
    Column("partition_id", Integer, nullable=False, server_default="-1", comment="-1: no topic"),
    Column(
        "record_offset", BigInteger, nullable=False, server_default="-1", comment="-1: no topic"
    ),
    text_column("reason", "the fault, for people"),
    bytes_column("body", "the record without secrets, so that it can be taken again"),
    PrimaryKeyConstraint("kind", "id"),
    Index(None, "kind", "received_at"),
    comment="records that could not be taken; `strandline replay` and each start try them again",
)

refused_events = Table(
    "refused_events",
    metadata,
    Column("id", LargeBinary, primary_key=True, comment="a hash of producer and reason"),
    text_column("producer", "the program that sent it"),
    text_column("reason", "the fault that its sender was told"),
    number_column("count", "how often it was refused"),
    time_column("first_at", "shows since when"),
    time_column("newest_at", "shows whether it goes on; retention counts the age from it"),
    bytes_column("body", "the beginning of the newest one, as an example"),
    Index(None, "newest_at"),
    comment="events that were refused over HTTP, counted by producer and reason",
)

offsets = Table(
    "offsets",
    metadata,
    text_column("topic", "the Kafka topic"),
    Column("partition_id", Integer, nullable=False, comment="the partition's number"),
    text_column("group_name", "the consumer group"),
    number_column("next_offset", "moved by compare-and-set in the transaction of the batch"),
    text_column("token", "the owner; empty if it left in good order"),
    number_column("suspected_offset", "the record that was being taken alone", nullable=True),
    Column(
        "crashes", Integer, nullable=False, server_default="0", comment="how often it died there"
    ),
    PrimaryKeyConstraint("topic", "partition_id", "group_name"),
    comment="how far each partition was taken, so that no record is taken twice or missed",
    **CLUSTERED,
)

store_settings = Table(
    "store_settings",
    metadata,
    Column("key", Text, primary_key=True, comment="the name (sql/shared_settings.py)"),
    text_column("value", "the value as text"),
    comment="what all writers and views of the store have to agree on",
    **CLUSTERED,
)

# Whoever gives out a number holds the lock of its row, so a reader who has seen number n misses
# nothing before it, in whatever order transactions end.
numbers = Table(
    "numbers",
    metadata,
    Column("name", Text, primary_key=True, comment="version_facts or export_changes"),
    number_column("seq", "the last number that was given out"),
    comment="the last number of each log that has one order for all servers",
    **CLUSTERED,
)
VERSION_FACTS, EXPORT_CHANGES = "version_facts", "export_changes"
