"""The way from a run to one of its barriers: a run has as many as it had micro-batches."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Let the index of runs hold the barrier."""
    op.create_index("ix_job_barriers_run_id_barrier", "job_barriers", ["run_id", "barrier"], unique=False)
    op.drop_index("ix_job_barriers_run_id", "job_barriers")
