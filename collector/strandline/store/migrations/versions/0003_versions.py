"""Consistent versions: the log of facts, leases of readers, alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables of version_tables.py."""
    _create_log()
    _create_leases()
    _create_alerts()


def _create_log() -> None:
    head = op.create_table(
        "version_head",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_version_head"),
    )
    op.bulk_insert(head, [{"id": 1, "seq": 0}])
    op.create_table(
        "version_facts",
        sa.Column("seq", ID, autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_version_facts"),
    )
    op.create_table(
        "version_news",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("entity_id", sa.BigInteger(), nullable=False),
        sa.Column("barrier", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_version_news"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "domain_roots",
        sa.Column("dataset_id", ID, autoincrement=False, nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", name="pk_domain_roots"),
    )
    op.create_table(
        "managed_jobs",
        sa.Column("job_id", ID, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_managed_jobs"),
    )


def _create_leases() -> None:
    op.create_table(
        "reader_leases",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text(), server_default="", nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reader_leases"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_reader_leases_expires_at", "reader_leases", ["expires_at"], unique=False)


def _create_alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_alerts"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "alert_outbox",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_outbox"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_outbox_next_at", "alert_outbox", ["next_at"], unique=False)
