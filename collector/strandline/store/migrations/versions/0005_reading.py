"""What reading needs: ways from a job to the runs that belong to it, and the views as they are now."""

from alembic import op

from strandline.store.views import create_views, drop_views

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the indexes, and every view anew."""
    op.create_index("ix_run_parents_parent_job_id", "run_parents", ["parent_job_id"], unique=False)
    op.create_index("ix_run_queries_job_id", "run_queries", ["job_id"], unique=False)
    drop_views(op.get_bind())
    create_views(op.get_bind())
