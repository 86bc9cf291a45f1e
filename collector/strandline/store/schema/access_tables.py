"""Who may use the API, and who changed what."""

from sqlalchemy import Column, Index, LargeBinary, SmallInteger, Table

from strandline.store.schema.columns import CLUSTERED, Id, metadata, text_column, time_column

# Keys that may use the API: SHA-256 of the key, which itself is shown once and kept nowhere; `id`
# is the part of it that may be shown. scopes: with commas; namespaces: patterns, one a line.
# used_at: its last use, to the minute.
api_keys = Table(
    "api_keys",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    text_column("name"),
    time_column("created_at"),
    time_column("revoked_at", nullable=True),
    text_column("id"),
    text_column("scopes"),
    text_column("namespaces"),
    time_column("expires_at", nullable=True),
    time_column("used_at", nullable=True),
    **CLUSTERED,
)

# Who changed what, when and from where, and who was refused; `at` in microseconds.
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    time_column("at"),
    text_column("who"),
    text_column("what"),
    text_column("address"),
    Column("status", SmallInteger, nullable=False),
    text_column("details"),
    Index(None, "at"),
    sqlite_autoincrement=True,
)
