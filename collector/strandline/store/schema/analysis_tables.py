"""First rows of what `strandline analyse --publish` found, for the API."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from strandline.store.schema.columns import CLUSTERED, id_column, metadata, text_column, time_column

# One row a report: of which moment and state it is, how many rows it has in all, and what ended it early, if anything did.
analysis_reports = Table(
    "analysis_reports",
    metadata,
    Column("report", Text, primary_key=True),
    text_column("about"),
    time_column("as_of"),
    text_column("state"),
    Column("total", BigInteger, nullable=False),
    text_column("truncated_by", nullable=True),
    **CLUSTERED,
)

# One row a place of a report: the dataset or job that it is about (a pair has another dataset), and what was found of it as
# a JSON object. Names are read from their own tables, so that a key sees the rows of its namespaces.
analysis_rows = Table(
    "analysis_rows",
    metadata,
    Column("report", Text, primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    id_column("subject_id"),
    id_column("other_id", nullable=True),
    text_column("body"),
    Index(None, "subject_id"),
    **CLUSTERED,
)
