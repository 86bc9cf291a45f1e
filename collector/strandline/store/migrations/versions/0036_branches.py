"""Snapshots that stand beside the main line of their table: on another branch, or on none. What is stored stays as it is."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Add the column."""
    op.add_column("snapshots", sa.Column("aside", sa.SmallInteger(), nullable=True))
