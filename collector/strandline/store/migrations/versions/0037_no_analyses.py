"""The tables of published analyses go."""

from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Drop both tables."""
    op.drop_table("analysis_rows")
    op.drop_table("analysis_reports")
