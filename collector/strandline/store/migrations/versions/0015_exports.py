"""What is exported: changes that wait, how far each target is, what it has and what it refused. Alerts go the same way."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ALERT = 3


def upgrade() -> None:
    """Make the tables; alerts that wait in the outbox of their own go over."""
    _create_changes()
    _create_targets()
    op.execute("INSERT INTO export_head (id, seq) VALUES (1, 0)")
    op.execute(
        "INSERT INTO export_news (kind, entity_id, group_id, at, body) "
        f"SELECT {ALERT}, 0, 0, created_at, body FROM alert_outbox GROUP BY created_at, body ORDER BY min(id)"
    )
    op.drop_table("alert_outbox")


def _whole(
    name: str, default: str | None = None, kind: type[sa.types.TypeEngine[int]] = sa.BigInteger
) -> sa.Column[int]:
    return sa.Column(name, kind(), server_default=default, nullable=False)


def _create_changes() -> None:
    op.create_table(
        "export_head",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        _whole("seq"),
        sa.PrimaryKeyConstraint("id", name="pk_export_head"),
    )
    op.create_table(
        "export_news",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        _whole("kind", kind=sa.SmallInteger),
        _whole("entity_id"),
        _whole("group_id"),
        _whole("at"),
        sa.Column("hash", sa.LargeBinary(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_export_news"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "export_changes",
        _whole("kind", kind=sa.SmallInteger),
        _whole("entity_id"),
        _whole("seq"),
        _whole("group_id"),
        _whole("at"),
        sa.Column("hash", sa.LargeBinary(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("kind", "entity_id", name="pk_export_changes"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_export_changes_seq", "export_changes", ["seq"], unique=True)


def _create_targets() -> None:
    op.create_table(
        "export_targets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kinds", sa.Text(), server_default="", nullable=False),
        _whole("cursor", "0"),
        sa.Column("holder", sa.Text(), server_default="", nullable=False),
        _whole("held_until", "0"),
        _whole("heard_at", "0"),
        _whole("failures", "0", sa.Integer),
        _whole("next_at", "0"),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        _whole("sent", "0"),
        _whole("sent_at", "0"),
        _whole("dropped", "0"),
        sa.PrimaryKeyConstraint("name", name="pk_export_targets"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "export_sent",
        sa.Column("target", sa.Text(), nullable=False),
        _whole("kind", kind=sa.SmallInteger),
        _whole("entity_id"),
        sa.Column("shape", sa.LargeBinary(), nullable=False),
        sa.Column("detail", sa.LargeBinary(), nullable=False),
        _whole("at"),
        _whole("run_id", "0"),
        _whole("live", "0", sa.SmallInteger),
        _whole("stale", "0", sa.SmallInteger),
        sa.PrimaryKeyConstraint("target", "kind", "entity_id", name="pk_export_sent"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "export_parked",
        sa.Column("target", sa.Text(), nullable=False),
        _whole("kind", kind=sa.SmallInteger),
        _whole("entity_id"),
        _whole("at"),
        _whole("attempts", kind=sa.Integer),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        _whole("change_kind", kind=sa.SmallInteger),
        _whole("change_id"),
        _whole("group_id"),
        _whole("change_at"),
        sa.Column("hash", sa.LargeBinary(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("target", "kind", "entity_id", name="pk_export_parked"),
        sqlite_with_rowid=False,
    )
