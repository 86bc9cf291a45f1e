"""Barriers of streaming jobs, snapshots of tables, and the options of their catalogs."""

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
)

from strandline.store.schema.columns import (
    CLUSTERED,
    flag_column,
    id_column,
    metadata,
    text_column,
    time_column,
)

# One row a barrier of a streaming job. query_id: the query id, new with every checkpoint directory.
job_barriers = Table(
    "job_barriers",
    metadata,
    id_column("job_id"),
    text_column("query_id"),
    Column("barrier", BigInteger, nullable=False),
    text_column("domain"),
    text_column("engine"),
    Column("batch_id", BigInteger, nullable=True),
    Column("phase", SmallInteger, nullable=False),  # 2 committed, 1 skipped
    time_column("started_at", nullable=True),
    time_column("committed_at", nullable=True),
    text_column("checkpoint"),
    id_column("run_id"),
    # Of the strandline_barrier facet what no column holds (core/changes/barrier_facets), packed or
    # as it came.
    Column("facet", LargeBinary, nullable=False),
    time_column("at"),
    id_column("hash"),
    PrimaryKeyConstraint("job_id", "barrier", "query_id"),
    Index(None, "domain", "barrier"),
    Index(None, "run_id", "barrier"),
    **CLUSTERED,
)

# One row a known snapshot of a table. rank: 3 stated by its writer, 2 by a reader's exact report, 1
# observed. Who looks for `approximate` finds it by the key: the ids that are rounded to one double
# are at most 512 apart. aside: 0 main has it, 1 only another branch has it, 2 no branch has it (it
# is staged); NULL where nobody says, which counts as main.
snapshots = Table(
    "snapshots",
    metadata,
    id_column("dataset_id"),  # as named
    text_column("snapshot_id"),
    text_column("parent_id", nullable=True),
    Column("barrier", BigInteger, nullable=True),
    text_column("query_id"),  # always empty: snapshot_uses has it
    id_column("run_id"),
    time_column("committed_at", nullable=True),
    text_column("operation"),
    text_column("format"),
    Column("row_count", BigInteger, nullable=True),
    Column(
        "approximate", Double, nullable=True
    ),  # float(snapshot_id): how stock Iceberg reports name it
    Column("rank", SmallInteger, nullable=False),
    time_column("at"),
    id_column("hash"),
    time_column(
        "first_at"
        # when it was first seen: its place among the others where no event states when it was committed
    ),
    Column("aside", SmallInteger, nullable=True),
    PrimaryKeyConstraint("dataset_id", "snapshot_id"),
    **CLUSTERED,
)

# Data lineage: which snapshot a run read (direction 0) or made (1), under which barrier (0: none).
# dataset_id comes before direction in the key, so that PostgreSQL pads nothing.
snapshot_uses = Table(
    "snapshot_uses",
    metadata,
    id_column("run_id"),
    Column("barrier", BigInteger, nullable=False),
    Column("direction", SmallInteger, nullable=False),
    id_column("dataset_id"),
    text_column("snapshot_id"),
    text_column("from_snapshot_id", nullable=True),  # exclusive start of an incremental read
    text_column("query_id"),
    flag_column("lossy"),  # snapshot_id came as a double: match snapshots.approximate
    Column("rank", SmallInteger, nullable=False),  # as in snapshots
    time_column(
        "order_at"
    ),  # among observed ones the greatest counts: newest written, earliest read
    time_column("at"),
    id_column("hash"),
    # 1 the commit replaced the whole table, 2 its author asserts that it is complete, 4 the read
    # passed over changes
    Column("flags", SmallInteger, nullable=False),
    PrimaryKeyConstraint("run_id", "barrier", "dataset_id", "direction", "snapshot_id"),
    Index(None, "dataset_id", "snapshot_id"),
    **CLUSTERED,
)

# Snapshots that a new run starts from; live until the run ends.
startup_snapshots = Table(
    "startup_snapshots",
    metadata,
    id_column("run_id"),
    id_column("job_id"),
    id_column("dataset_id"),
    text_column("snapshot_id"),
    time_column("at"),
    PrimaryKeyConstraint("run_id", "dataset_id"),
    **CLUSTERED,
)

# Options of catalogs, written by whoever configures one; table-lineage and data-lineage = false
# hide its rows from views.
catalog_options = Table(
    "catalog_options",
    metadata,
    text_column("key"),
    text_column("value"),
    text_column("namespace"),
    text_column("catalog"),
    text_column("consistency_group"),
    PrimaryKeyConstraint("namespace", "catalog", "key"),
    **CLUSTERED,
)
