"""Barriers of streaming jobs, snapshots of tables, and the options of their catalogs."""

from sqlalchemy import Column, Double, Index, PrimaryKeyConstraint, Table

from strandline.store.schema.columns import (
    CLUSTERED,
    bytes_column,
    code_column,
    flag_column,
    id_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

job_barriers = Table(
    "job_barriers",
    metadata,
    id_column("job_id", "the streaming job"),
    text_column("query_id", "the streaming query, new with every checkpoint directory"),
    number_column("barrier", "the barrier"),
    text_column("group_name", "the consistency group"),
    text_column("engine", "the program that reported it"),
    number_column("batch_id", "the micro-batch", nullable=True),
    code_column("phase", "2 committed, 1 skipped: the greatest counts"),
    time_column("started_at", "when the micro-batch began", nullable=True),
    time_column("committed_at", "when it committed", nullable=True),
    text_column("checkpoint", "the checkpoint's location"),
    id_column("run_id", "the run that reported it"),
    bytes_column("facet", "what no column holds of the strandline_barrier facet"),
    time_column("at", "the event's time"),
    id_column("hash", "the event: decides between events of one moment"),
    PrimaryKeyConstraint("job_id", "barrier", "query_id"),
    Index(None, "group_name", "barrier"),
    Index(None, "run_id", "barrier"),
    comment="the barriers that streaming jobs reported",
    **CLUSTERED,
)

# Ids that are rounded to one double are at most 512 apart, so `approximate` needs no index.
snapshots = Table(
    "snapshots",
    metadata,
    id_column("dataset_id", "the table as named"),
    text_column("snapshot_id", "the id as text: ids exceed 2^53"),
    text_column("parent_id", "the snapshot that it was made on", nullable=True),
    number_column("barrier", "the barrier that it was made under", nullable=True),
    id_column("run_id", "the run that stated it"),
    time_column("committed_at", "when it was committed", nullable=True),
    text_column("operation", "append, overwrite, delete, ..."),
    text_column("format", "iceberg, delta, ..."),
    number_column("row_count", "the rows of the table after it", nullable=True),
    Column("approximate", Double, comment="the id as a double, as stock Iceberg reports name it"),
    code_column("rank", "3 stated by its writer, 2 by a reader's exact report, 1 observed"),
    time_column("at", "the event's time"),
    id_column("hash", "the event: decides between events of one moment"),
    time_column("first_at", "when it was first seen: its place if no commit time is stated"),
    code_column("aside", "0 main has it, 1 another branch, 2 none; NULL: main", nullable=True),
    PrimaryKeyConstraint("dataset_id", "snapshot_id"),
    Index(None, "dataset_id", "committed_at", "first_at"),
    comment="one row a known snapshot of a table",
    **CLUSTERED,
)

# dataset_id comes before direction in the key, so that PostgreSQL pads nothing.
snapshot_uses = Table(
    "snapshot_uses",
    metadata,
    id_column("run_id", "the run"),
    number_column("barrier", "the barrier, or 0"),
    code_column("direction", "0 read, 1 made"),
    id_column("dataset_id", "the table as named"),
    text_column("snapshot_id", "the snapshot"),
    text_column("from_snapshot_id", "the exclusive start of an incremental read", nullable=True),
    text_column("query_id", "the streaming query"),
    flag_column("lossy", "1: the id came as a double, to be matched with snapshots.approximate"),
    code_column("rank", "as in snapshots"),
    time_column("order_at", "of observed ones the greatest counts: newest made, earliest read"),
    time_column("at", "the event's time"),
    id_column("hash", "the event: decides between events of one moment"),
    code_column("flags", "1 replaced all, 2 complete, 4 skipped changes, 8 not its batch's last"),
    PrimaryKeyConstraint("run_id", "barrier", "dataset_id", "direction", "snapshot_id"),
    Index(None, "dataset_id", "snapshot_id"),
    comment="data lineage: the snapshots that runs read and made",
    **CLUSTERED,
)

startup_snapshots = Table(
    "startup_snapshots",
    metadata,
    id_column("run_id", "the run; the row is live until it ends"),
    id_column("job_id", "the job, for the proposals' views"),
    id_column("dataset_id", "the table as named"),
    text_column("snapshot_id", "the snapshot"),
    time_column("at", "when it was told"),
    PrimaryKeyConstraint("run_id", "dataset_id"),
    comment="the snapshots that a new run starts from",
    **CLUSTERED,
)

catalog_options = Table(
    "catalog_options",
    metadata,
    text_column("key", "table-lineage or data-lineage: false hides its rows from views"),
    text_column("value", "the value"),
    text_column("namespace", "the namespace of the catalog"),
    text_column("catalog", "the catalog"),
    text_column("consistency_group", "the group that configured it"),
    PrimaryKeyConstraint("namespace", "catalog", "key"),
    comment="options of catalogs, which people configure",
    **CLUSTERED,
)
