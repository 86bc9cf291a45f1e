"""First rows of the reports that were published by an analysis."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0025"


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "analysis_reports",
        sa.Column("report", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), server_default="", nullable=False),
        sa.Column("as_of", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default="", nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("truncated_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("report", name="pk_analysis_reports"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "analysis_rows",
        sa.Column("report", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("other_id", sa.BigInteger(), nullable=True),
        sa.Column("body", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("report", "place", name="pk_analysis_rows"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_analysis_rows_subject_id", "analysis_rows", ["subject_id"], unique=False)
