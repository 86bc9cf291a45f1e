"""Start-up rows and the ETL tables as history too: the views as they are now."""

from alembic import op

from strandline.store.views import create_views, drop_views

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create every view anew."""
    drop_views(op.get_bind())
    create_views(op.get_bind())
