"""A log of what transactions change of the lineage graph; it is written once a server keeps the graph in memory.

On PostgreSQL servers of the version before may go on beside this one, and write none of it: in a store that holds something
nobody answers from memory before a day from now. An SQLite file has one server.
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"

ANSWERS_FROM = """INSERT INTO store_settings (key, value)
SELECT 'graph_from', CAST(CAST((extract(epoch FROM clock_timestamp()) + 86400) * 1000000 AS BIGINT) AS TEXT)
WHERE EXISTS (SELECT 1 FROM datasets) OR EXISTS (SELECT 1 FROM jobs)"""


def upgrade() -> None:
    """Create the log, and note from when on it is complete."""
    op.create_table(
        "graph_news",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_graph_news"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_graph_news_transaction_id", "graph_news", ["transaction_id"], unique=False)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(ANSWERS_FROM)
