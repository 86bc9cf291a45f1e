"""The log of what transactions changed of the lineage graph, for processes that keep parts of it in memory."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table

from strandline.store.schema.columns import Id, metadata, time_column

# One row a transaction. On PostgreSQL transactions end in another order than they number rows:
# whoever follows the log asks for all rows of transactions that had not ended at the last look. On
# SQLite, which has one writer, transaction_id is 0.
graph_news = Table(
    "graph_news",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("transaction_id", BigInteger, nullable=False),
    time_column("at"),
    Column("body", LargeBinary, nullable=False),
    Index(None, "transaction_id"),
    sqlite_autoincrement=True,
)
