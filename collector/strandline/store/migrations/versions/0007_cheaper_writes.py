"""Edges a row for each source instead of a row each; room in pages whose rows only change their times."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec
import sqlalchemy as sa
import zstandard
from alembic import op

revision = "0007"
down_revision = "0006"

AT_ONCE = 5000
# A row that only gets a newer time stays in its page, and no index has to know, where the page has room for it twice.
OFTEN_UPDATED = ("datasets", "jobs", "job_relations", "facets", "runs", "run_leases", "relations")


def upgrade() -> None:
    """Create the table, move the edges, leave room."""
    made = op.create_table(
        "edge_columns",
        sa.Column("set_hash", sa.LargeBinary(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("set_hash", "source_id", name="pk_edge_columns"),
        sqlite_with_rowid=False,
    )
    _move(op.get_bind(), made)
    op.drop_table("edges")
    if op.get_bind().dialect.name == "postgresql":
        for table in OFTEN_UPDATED:
            op.execute(f"ALTER TABLE {table} SET (fillfactor = 60)")
        for table, column in (("edge_columns", "columns"), ("facet_bodies", "body")):
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")  # frames get no smaller


def _move(connection: sa.Connection, made: sa.Table) -> None:
    """Pack the edges of each set and source; sets come whole, a page of rows at a time."""
    rows = connection.execute(
        sa.text(
            "SELECT set_hash, source_id, position, sink_column, source_column, type, subtype, transform, masking"
            " FROM edges ORDER BY set_hash, source_id, position"
        ).execution_options(yield_per=AT_ONCE)
    )
    page: list[dict[str, Any]] = []
    for packed in _packed(rows):
        page.append(packed)
        if len(page) == AT_ONCE:
            connection.execute(made.insert(), page)
            page = []
    if page:
        connection.execute(made.insert(), page)


def _packed(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    compress = zstandard.ZstdCompressor(level=1).compress
    for (set_hash, source_id), edges in groupby(rows, lambda row: (bytes(row[0]), row[1])):
        columns = compress(msgspec.json.encode([list(edge[2:]) for edge in edges]))
        yield {"set_hash": set_hash, "source_id": source_id, "columns": columns}
