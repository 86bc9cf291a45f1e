"""Events that a fault of the program kept from being read, until it starts the next time."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "unread_events",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("topic", sa.Text(), server_default="", nullable=False),
        sa.Column("partition_id", sa.Integer(), server_default="-1", nullable=False),
        sa.Column("record_offset", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_unread_events"),
    )
    op.create_index("ix_unread_events_received_at", "unread_events", ["received_at"], unique=False)
