"""The datasets that runs and jobs read and write, and the edges between columns.

What several runs read, write and make into each other alike is stored once, as a template. A run
has a row for each of its templates with the times of all that is in it
(core/changes/run_templates). The views `run_relations` and `run_edges` (schema/views.py) show a row
for each relation and edge of each run. Readers select from these: `relations` and `edge_uses` here.
"""

from sqlalchemy import (
    BigInteger,
    FromClause,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    column,
    table,
)

from strandline.store.schema.columns import (
    CLUSTERED,
    bytes_column,
    code_column,
    flag_column,
    id_column,
    metadata,
    time_column,
)

relations = table(
    "run_relations",
    column("run_id", BigInteger),
    column("direction", SmallInteger),
    column("dataset_id", BigInteger),
    column("creates", SmallInteger),
    column("first_at", BigInteger),
    column("newest_at", BigInteger),
)

# A sink without a row has all sources of its run. The greatest rule counts; where a lineage facet
# names no fields, the columns are those of rule 2 (stated_edges.py). Rule 0 marks
# renamed columns: from a column of the sink to its new name (column_names.py). Rules below
# 0 mark a sink that is a view which the run read, with a set of what the view's query read; a run
# has the sets of all its events (core/changes/edges.py).
edge_uses = table(
    "run_edges",
    column("run_id", BigInteger),
    column("sink_id", BigInteger),
    column("rule", BigInteger),
    column("set_hash", LargeBinary),
    column("at", BigInteger),
)

template_relations = Table(
    "template_relations",
    metadata,
    id_column("template_id", "a hash of all that is in the template"),
    code_column("direction", "0 read, 1 written"),
    id_column("dataset_id", "the dataset as named"),
    flag_column("creates", "1: CREATE, -1: ALTER, DROP, ..: no rows; 2: read, not the sender's"),
    PrimaryKeyConstraint("template_id", "direction", "dataset_id"),
    Index(None, "dataset_id"),
    comment="the relations of a template",
    **CLUSTERED,
)

template_edges = Table(
    "template_edges",
    metadata,
    id_column("template_id", "a hash of all that is in the template"),
    id_column("sink_id", "the dataset that the edges lead into"),
    id_column("rule", "3 lineage facet, 2 columnLineage, 1 inputs x outputs, 0 renamed, <0 view"),
    bytes_column("set_hash", "the edges, in edge_columns"),
    PrimaryKeyConstraint("template_id", "sink_id", "rule"),
    Index(None, "sink_id"),
    Index(None, "set_hash"),
    comment="the edges of a template",
    **CLUSTERED,
)

run_templates = Table(
    "run_templates",
    metadata,
    id_column("run_id", "the run"),
    id_column("template_id", "the template; nothing is in two templates of one run"),
    time_column("first_at", "when all that is in the template was first seen"),
    time_column("newest_at", "when all that is in the template was last seen"),
    PrimaryKeyConstraint("run_id", "template_id"),
    Index(None, "template_id"),
    comment="the templates of each run",
    **CLUSTERED,
)

# A walk finds the newest relations of each job here. The table is as large as the graph, however
# many runs there were.
job_relations = Table(
    "job_relations",
    metadata,
    id_column("job_id", "the job as the event named it"),
    code_column("direction", "0 read, 1 written"),
    id_column("dataset_id", "the dataset as named; also sources that only edges name"),
    id_column("run_id", "the run that did so last"),
    time_column("at", "when it did"),
    flag_column("ran", "whether a run named it; false: only designs did"),
    PrimaryKeyConstraint("job_id", "direction", "dataset_id"),
    Index(None, "dataset_id", "direction"),
    comment="the datasets that each job was ever named with",
    **CLUSTERED,
)

edge_columns = Table(
    "edge_columns",
    metadata,
    bytes_column("set_hash", "a hash of all edges into one sink; without rows: it has no source"),
    id_column("source_id", "the dataset that the edges come from, as named"),
    bytes_column("columns", "a zstd frame of a JSON array of edges"),
    PrimaryKeyConstraint("set_hash", "source_id"),
    comment="the edges into one sink, once for each content",
    **CLUSTERED,
)

# The views that show the folded rows of runs, by name.
RUN_VIEWS = {relations.name: relations, edge_uses.name: edge_uses}
TEMPLATES = (run_templates, template_relations, template_edges)


def table_or_view(name: str) -> FromClause:
    """Return the table with this name, or the view that shows the rows that templates hold."""
    view: FromClause | None = RUN_VIEWS.get(name)
    return metadata.tables[name] if view is None else view
