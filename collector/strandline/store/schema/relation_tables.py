"""Which datasets runs and jobs read and write, and the edges between columns.

What runs read and wrote, and the edges that they made, is kept in one of two ways, and the views `run_relations` and `run_edges`
(views.py) show it whichever way it is: whoever reads asks these, as `relations` and `edge_uses` here. Since schema 0035 what
many runs have alike is one template, and a run has a row for each of its templates with the times of all that is in it
(core/changes/run_templates). A store from before keeps a row each, until `strandline migrate --templates`.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    column,
    table,
)

from strandline.store.schema.columns import CLUSTERED, flag_column, id_column, metadata, only_on, time_column

# One row per run, direction (0 source, 1 sink) and dataset as named. Live, history, known: views.py.
# creates: 1 lifecycleStateChange CREATE: goes with its run if that fails; 2 read, and not the sender's.
relations = table(
    "run_relations",
    column("run_id", BigInteger),
    column("direction", SmallInteger),
    column("dataset_id", BigInteger),
    column("creates", SmallInteger),
    column("first_at", BigInteger),
    column("newest_at", BigInteger),
)

# Which edges a run made into a sink, and by which rule: 3 lineage facet, 2 columnLineage facet, 1 inputs x outputs of an
# event that stands for itself. Sinks without a row: all sources of the run. The greatest rule counts;
# where a lineage facet names no fields, the columns are those of rule 2 (store/lineage/stated_edges).
edge_uses = table(
    "run_edges",
    column("run_id", BigInteger),
    column("sink_id", BigInteger),
    column("rule", SmallInteger),
    column("set_hash", LargeBinary),
    column("at", BigInteger),
)

# What is in a template: relations, without their times. template_id: a hash of all that is in it.
template_relations = Table(
    "template_relations",
    metadata,
    id_column("template_id"),
    Column("direction", SmallInteger, nullable=False),
    id_column("dataset_id"),
    flag_column("creates"),
    PrimaryKeyConstraint("template_id", "direction", "dataset_id"),
    Index(None, "dataset_id"),
    **CLUSTERED,
)

# And edges.
template_edges = Table(
    "template_edges",
    metadata,
    id_column("template_id"),
    id_column("sink_id"),
    Column("rule", SmallInteger, nullable=False),
    Column("set_hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("template_id", "sink_id", "rule"),
    Index(None, "sink_id"),
    Index(None, "set_hash"),
    **CLUSTERED,
)

# When all that is in a template was first and last seen in a run. Nothing is in two templates of one run.
run_templates = Table(
    "run_templates",
    metadata,
    id_column("run_id"),
    id_column("template_id"),
    time_column("first_at"),
    time_column("newest_at"),
    PrimaryKeyConstraint("run_id", "template_id"),
    Index(None, "template_id"),
    **CLUSTERED,
)

# The other way to keep relations.
relation_rows = Table(
    "relations",
    metadata,
    id_column("run_id"),
    Column("direction", SmallInteger, nullable=False),
    id_column("dataset_id"),
    id_column("id"),  # entity_id of its input or output facets
    flag_column("creates"),
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

# The other way to keep which edges a run made.
edge_use_rows = Table(
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

# The views that show what a table of rows would have, by its name, whichever way a store keeps it.
SHOWN_BY = {relation_rows.name: relations, edge_use_rows.name: edge_uses}
TEMPLATES = (run_templates, template_relations, template_edges)
