"""The fingerprint of the schema, by which a program knows the stores that it can use."""

from collections.abc import Iterable
from functools import cache
from hashlib import sha256

from sqlalchemy import Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from strandline.store.schema.tables import metadata
from strandline.store.schema.views import views

KEY = "schema_fingerprint"  # in store_settings


@cache
def fingerprint() -> str:
    """Return the fingerprint of this program's schema."""
    return fingerprint_of(metadata.sorted_tables, views("sqlite").values())


def fingerprint_of(tables: Iterable[Table], queries: Iterable[str]) -> str:
    """Return a hash of tables with their indexes, as SQLite would create them, and of views.

    Line breaks and indents do not count: a query that is only laid out anew is the same one.
    """
    dialect = sqlite.dialect()
    statements = list(queries)
    for table in tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            statements.append(str(CreateIndex(index).compile(dialect=dialect)))
    words = "\n".join(" ".join(statement.split()) for statement in statements)
    return sha256(words.encode()).hexdigest()[:16]
