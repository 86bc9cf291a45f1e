"""Keys of the API, and the log of changes."""

from sqlalchemy import Column, Index, LargeBinary, Table

from strandline.store.schema.columns import (
    CLUSTERED,
    code_column,
    metadata,
    row_number,
    text_column,
    time_column,
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("hash", LargeBinary, primary_key=True, comment="SHA-256 of the key, shown only once"),
    text_column("name", "the owner, for people and the audit log"),
    time_column("created_at", "for people"),
    time_column("revoked_at", "since when it counts no more", nullable=True),
    text_column("id", "the part of the key that may be shown"),
    text_column("scopes", "what the key may do, with commas"),
    text_column("namespaces", "patterns of the namespaces that it may see, one a line"),
    time_column("expires_at", "until when it counts; NULL: for ever", nullable=True),
    time_column("used_at", "its last use, to the minute", nullable=True),
    comment="keys that may use the API",
    **CLUSTERED,
)

audit_log = Table(
    "audit_log",
    metadata,
    row_number(),
    time_column("at", "when"),
    text_column("who", "the name of the key or user"),
    text_column("what", "the request or command"),
    text_column("address", "the sender's address"),
    code_column("status", "the HTTP status: whether it was done or refused"),
    text_column("details", "what was changed"),
    Index(None, "at"),
    comment="who changed what, and who was refused",
    sqlite_autoincrement=True,
)
