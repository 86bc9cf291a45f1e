"""Batches of events that left the store for an archive."""

from alembic import op

revision = "0022"
down_revision = "0018"

_TABLE = """CREATE TABLE archive_batches (
    id TEXT NOT NULL,
    target TEXT NOT NULL,
    day INTEGER NOT NULL,
    newest_at BIGINT NOT NULL,
    count INTEGER NOT NULL,
    done SMALLINT NOT NULL,
    events {bytes} NOT NULL,
    CONSTRAINT pk_archive_batches PRIMARY KEY (id)
)"""


def upgrade() -> None:
    """Make the table."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(_TABLE.format(bytes="BLOB") + " WITHOUT ROWID")
    else:
        op.execute(_TABLE.format(bytes="BYTEA"))
    op.execute("CREATE INDEX ix_archive_batches_newest_at ON archive_batches (newest_at)")
