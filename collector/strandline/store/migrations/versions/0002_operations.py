"""API keys, and marks of records that may kill the process."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "api_keys",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("hash", name="pk_api_keys"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "crash_marks",
        sa.Column("topic", sa.Text(), server_default="", nullable=False),
        sa.Column("partition_id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.Text(), server_default="", nullable=False),
        sa.Column("record_offset", sa.BigInteger(), nullable=False),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("topic", "partition_id", "group_name", name="pk_crash_marks"),
        sqlite_with_rowid=False,
    )
