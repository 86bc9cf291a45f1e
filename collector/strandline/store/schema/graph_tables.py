"""The log of changes of the lineage graph, for processes that keep parts of it in memory."""

from sqlalchemy import Index, Table

from strandline.store.schema.columns import (
    bytes_column,
    metadata,
    number_column,
    row_number,
    time_column,
)

# On PostgreSQL transactions end in another order than they number rows: a follower of the log asks
# for all rows of transactions that had not ended at its last look.
graph_news = Table(
    "graph_news",
    metadata,
    row_number(),
    number_column("transaction_id", "PostgreSQL's transaction; 0 on SQLite, which has one writer"),
    time_column("at", "when; old rows are deleted"),
    bytes_column("body", "the changes"),
    Index(None, "transaction_id"),
    comment="what each transaction changed of the lineage graph",
    sqlite_autoincrement=True,
)
