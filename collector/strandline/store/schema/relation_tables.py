"""The datasets that runs and jobs read and write, and the edges between columns.

What several runs read, write and make into each other alike is stored once, as a template. A run
has a row for each of its templates with the times of all that is in it
(core/changes/run_templates). The views `run_relations` and `run_edges` (views.py) show a row for
each relation and edge of each run. Readers select from these: `relations` and `edge_uses` here.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    FromClause,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    column,
    table,
)

from strandline.store.schema.columns import CLUSTERED, flag_column, id_column, metadata, time_column

# One row per run, direction (0 source, 1 sink) and dataset as named. Live, history, known:
# views.py. creates: 1 lifecycleStateChange CREATE: goes with its run if that fails; 2 read, and not
# the sender's.
relations = table(
    "run_relations",
    column("run_id", BigInteger),
    column("direction", SmallInteger),
    column("dataset_id", BigInteger),
    column("creates", SmallInteger),
    column("first_at", BigInteger),
    column("newest_at", BigInteger),
)

# Which edges a run made into a sink, and by which rule: 3 lineage facet, 2 columnLineage facet, 1
# inputs x outputs of an event that stands for itself. Sinks without a row: all sources of the run.
# The greatest rule counts; where a lineage facet names no fields, the columns are those of rule 2
# (store/lineage/stated_edges).
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

# When all that is in a template was first and last seen in a run. Nothing is in two templates of
# one run.
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

# Which datasets a job was ever named with, in either direction, and the run that did so last (a
# design where no run did: ran = 0): a walk's way to the newest relations of each job, as large as the graph, however many runs there
# were. Sources that only edges name are here too.
job_relations = Table(
    "job_relations",
    metadata,
    id_column("job_id"),  # as the event named it
    Column("direction", SmallInteger, nullable=False),
    id_column("dataset_id"),
    id_column("run_id"),
    time_column("at"),
    flag_column("ran"),
    PrimaryKeyConstraint("job_id", "direction", "dataset_id"),
    Index(None, "dataset_id", "direction"),
    **CLUSTERED,
)

# Edges into one sink, once per content, a row for each source. A set without rows asserts that the
# sink has no source.
edge_columns = Table(
    "edge_columns",
    metadata,
    Column("set_hash", LargeBinary, nullable=False),
    id_column("source_id"),  # dataset as named
    Column("columns", LargeBinary, nullable=False),  # zstd: a JSON array of core.edges.Edge
    PrimaryKeyConstraint("set_hash", "source_id"),
    **CLUSTERED,
)

# The views that show the folded rows of runs, by name.
RUN_VIEWS = {relations.name: relations, edge_uses.name: edge_uses}
TEMPLATES = (run_templates, template_relations, template_edges)


def table_or_view(name: str) -> FromClause:
    """Return the table with this name, or the view that shows the rows that templates hold."""
    view: FromClause | None = RUN_VIEWS.get(name)
    return metadata.tables[name] if view is None else view
