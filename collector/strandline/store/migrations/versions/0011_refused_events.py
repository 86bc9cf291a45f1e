"""What was refused over HTTP leaves a trace: how often, by producer and reason, and the newest of each."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "refused_events",
        sa.Column("id", sa.LargeBinary(), nullable=False),
        sa.Column("producer", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("newest_at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_refused_events"),
    )
    op.create_index("ix_refused_events_newest_at", "refused_events", ["newest_at"], unique=False)
