"""Keys have scopes, namespaces, an end and a last use; an audit log says who changed what.

A key from before keeps doing what it did: it becomes an admin key of all namespaces.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0016"

_ID = {"sqlite": "lower(substr(hex(hash), 1, 8))", "postgresql": "substr(encode(hash, 'hex'), 1, 8)"}


def upgrade() -> None:
    """Add the columns and the table."""
    dialect = op.get_bind().dialect.name
    for name in ("id", "scopes", "namespaces"):
        op.add_column("api_keys", sa.Column(name, sa.Text(), server_default="", nullable=False))
    for name in ("expires_at", "used_at"):
        op.add_column("api_keys", sa.Column(name, sa.BigInteger(), nullable=True))
    op.execute(f"UPDATE api_keys SET id = {_ID[dialect]}, scopes = 'admin', namespaces = '*'")
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.Text(), server_default="", nullable=False),
        sa.Column("what", sa.Text(), server_default="", nullable=False),
        sa.Column("address", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("details", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_log_at", "audit_log", ["at"], unique=False)
