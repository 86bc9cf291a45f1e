"""What people note of jobs, datasets, columns, namespaces and sources, and who noted what when."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "annotations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("entity_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("field", sa.Text(), server_default="", nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("value", sa.Text(), server_default="", nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_annotations"),
    )
    op.create_index("ix_annotations_entity_id", "annotations", ["entity_id"], unique=False)
    op.create_index("ix_annotations_kind", "annotations", ["kind"], unique=False)
    op.create_table(
        "annotation_log",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), server_default="", nullable=False),
        sa.Column("action", sa.Text(), server_default="", nullable=False),
        sa.Column("entity", sa.Text(), server_default="", nullable=False),
        sa.Column("field", sa.Text(), server_default="", nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("value", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_annotation_log"),
    )
    op.create_index("ix_annotation_log_at", "annotation_log", ["at"], unique=False)
