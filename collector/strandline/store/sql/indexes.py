"""Filling an empty store without its indexes, which are made once at the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, Index

from strandline.store.schema.tables import metadata


@contextmanager
def without_indexes(engine: Engine, tables: Sequence[str]) -> Iterator[None]:
    """Drop the indexes of these tables, and create them again at the end.

    If the work fails, it has to be done again; that creates the indexes.
    """
    indexes = [index for table in tables for index in _indexes_of(table)]
    with engine.begin() as connection:
        for index in indexes:
            index.drop(connection, checkfirst=True)
    yield
    with engine.connect() as connection, _sorting_on_disk(connection):
        for index in indexes:
            index.create(connection, checkfirst=True)
            connection.commit()


def _indexes_of(table: str) -> list[Index]:
    return sorted(metadata.tables[table].indexes, key=lambda index: index.name or "")


@contextmanager
def _sorting_on_disk(connection: Connection) -> Iterator[None]:
    """Let SQLite sort the rows of an index on disk rather than in memory."""
    if connection.dialect.name != "sqlite":
        yield
        return
    cursor = connection.connection.cursor()
    cursor.execute("PRAGMA temp_store = FILE")
    try:
        yield
    finally:
        cursor.execute("PRAGMA temp_store = MEMORY")
