"""Dictionaries that are earlier bodies: what they are for, until when, and of which event. What is stored stays as it is."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the columns and their indexes."""
    op.add_column("dictionaries", sa.Column("key", sa.BigInteger(), nullable=True))
    op.add_column("dictionaries", sa.Column("until", sa.BigInteger(), nullable=True))
    op.add_column("dictionaries", sa.Column("source", sa.LargeBinary(), nullable=True))
    op.create_index("ix_dictionaries_key", "dictionaries", ["key"], unique=False)
    op.create_index("ix_dictionaries_source", "dictionaries", ["source"], unique=False)
