"""The newest relations of each job: the way of a walk."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "job_relations",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("direction", sa.SmallInteger(), nullable=False),
        sa.Column("dataset_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "direction", "dataset_id", name="pk_job_relations"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_relations_dataset_id_direction", "job_relations", ["dataset_id", "direction"], unique=False)
