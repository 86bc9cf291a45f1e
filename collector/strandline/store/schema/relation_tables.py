"""Which datasets runs and jobs read and write, and the edges between columns."""

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, SmallInteger, Table

from strandline.store.schema.columns import CLUSTERED, flag_column, id_column, metadata, only_on, time_column

# One row per run, direction (0 source, 1 sink) and dataset as named. Live, history, known: views.py.
relations = Table(
    "relations",
    metadata,
    id_column("run_id"),
    Column("direction", SmallInteger, nullable=False),
    id_column("dataset_id"),
    id_column("id"),  # entity_id of its input or output facets
    flag_column(
        "creates"
    ),  # 1 lifecycleStateChange CREATE: goes with its run if that fails; 2 read, and not the sender's
    time_column("first_at"),
    time_column("newest_at"),
    PrimaryKeyConstraint("run_id", "direction", "dataset_id"),
    # PostgreSQL stores equal entries once. On SQLite either index has the rest of the key beside it.
    Index(None, "dataset_id", info=only_on("postgresql")),
    Index(None, "dataset_id", "run_id", info=only_on("sqlite")),
    **CLUSTERED,
)

# Which datasets a job was ever named with, in either direction, and the run that did so last: a walk's way to the newest
# relations of each job, as large as the graph, however many runs there were. Sources that only edges name are here too.
job_relations = Table(
    "job_relations",
    metadata,
    id_column("job_id"),  # as the event named it
    Column("direction", SmallInteger, nullable=False),
    id_column("dataset_id"),
    id_column("run_id"),
    time_column("at"),
    PrimaryKeyConstraint("job_id", "direction", "dataset_id"),
    Index(None, "dataset_id", "direction"),
    **CLUSTERED,
)

# Edges into one sink, once per content, a row for each source. A set without rows asserts that the sink has no source.
edge_columns = Table(
    "edge_columns",
    metadata,
    Column("set_hash", LargeBinary, nullable=False),
    id_column("source_id"),  # dataset as named
    Column("columns", LargeBinary, nullable=False),  # zstd: a JSON array of core.edges.Edge
    PrimaryKeyConstraint("set_hash", "source_id"),
    **CLUSTERED,
)

# Which edges a run made into a sink, and by which rule: 3 lineage facet, 2 columnLineage facet, 1 inputs x outputs of an
# event that stands for itself. Sinks without a row: all sources of the run. The greatest rule counts.
edge_uses = Table(
    "edge_uses",
    metadata,
    id_column("run_id"),
    id_column("sink_id"),
    Column("rule", SmallInteger, nullable=False),
    Column("set_hash", LargeBinary, nullable=False),
    time_column("at"),
    PrimaryKeyConstraint("run_id", "sink_id", "rule"),
    Index(None, "sink_id"),
    Index(None, "set_hash"),
    **CLUSTERED,
)
