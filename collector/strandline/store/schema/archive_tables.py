"""What the store notes of events that left it for an archive."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, SmallInteger, Table, Text

from strandline.store.schema.columns import CLUSTERED, metadata

# One row a batch of events of one day that leaves together. It is written before the batch is, with
# the events' keys, so that an archiver that was killed writes the same batch again under the same
# name. `events` are pairs of time and hash.
archive_batches = Table(
    "archive_batches",
    metadata,
    Column("id", Text, primary_key=True),
    Column("target", Text, nullable=False),
    Column("day", Integer, nullable=False),  # days since 1970
    Column("newest_at", BigInteger, nullable=False),  # receipt, microseconds
    Column("count", Integer, nullable=False),
    Column("done", SmallInteger, nullable=False),
    Column("events", LargeBinary, nullable=False),
    Index(None, "newest_at"),
    **CLUSTERED,
)
