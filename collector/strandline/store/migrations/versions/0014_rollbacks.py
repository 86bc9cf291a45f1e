"""Rollbacks that are being carried out: one a domain, with the plan that they began with."""

from alembic import op

revision = "0014"
down_revision = "0013"

_SQLITE = """CREATE TABLE open_rollbacks (
    domain TEXT NOT NULL,
    begun_at BIGINT NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_open_rollbacks PRIMARY KEY (domain)
) WITHOUT ROWID"""
_POSTGRESQL = """CREATE TABLE open_rollbacks (
    domain TEXT NOT NULL,
    begun_at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_open_rollbacks PRIMARY KEY (domain)
)"""


def upgrade() -> None:
    """Make the table."""
    op.execute(_SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL)
