"""Events that left the store for an archive."""

from sqlalchemy import Column, Index, Integer, Table, Text

from strandline.store.schema.columns import (
    CLUSTERED,
    bytes_column,
    code_column,
    metadata,
    time_column,
)

# The row is written before the batch is: an archiver that was killed writes the same batch again,
# under the same name.
archive_batches = Table(
    "archive_batches",
    metadata,
    Column("id", Text, primary_key=True, comment="the batch's name in the archive"),
    Column("target", Text, nullable=False, comment="the archive"),
    Column(
        "day", Integer, nullable=False, comment="days since 1970, which the archive is split by"
    ),
    time_column("newest_at", "the newest receipt in it, for retention of the keys"),
    Column("count", Integer, nullable=False, comment="the number of events, for answers"),
    code_column("done", "1: the archive has it, and the events were deleted here"),
    bytes_column("events", "pairs of time and hash, by which the batch is written again"),
    Index(None, "newest_at"),
    comment="batches of events of one day that leave together",
    **CLUSTERED,
)
