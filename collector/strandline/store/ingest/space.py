"""Giving back the space of deleted rows, whose bytes stay in a database's files until then.

A command that deletes for good notes it in the same transaction (`owe`). If it is killed before the
old bytes are gone, the next process that looks removes them. Rows that retention drops only have to
make room: their space is given back in steps, between which others write.
"""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Engine, text

from strandline.store.schema.received_tables import store_settings
from strandline.store.sql.engine import reading
from strandline.store.sql.shared_settings import agree, agreed

STEP = 2000  # pages of SQLite a transaction: some megabytes, some milliseconds
LOCK_SECONDS = 20  # a table that is written anew is waited for; others wait behind that
INCREMENTAL = 2  # SQLite's auto_vacuum of a file that has been vacuumed since it was made
# In store_settings: an id of the newest note, a colon, names of tables with commas; or empty.
OWED = "space_owed"


def owe(connection: Connection, tables: list[str]) -> None:
    """Note that rows of these tables were deleted for good, so their old bytes must go."""
    owed = sorted({*_tables_in(agreed(connection).get(OWED, "")), *tables})
    agree(connection, OWED, f"{uuid4().hex}:{','.join(owed)}")


def give_owed_back(engine: Engine) -> list[str]:
    """Give back the space that is owed, and return the tables that it belonged to.

    A note that is added meanwhile is worked off as well.
    """
    tables: set[str] = set()
    while note := _note_of(engine):
        tables.update(_tables_in(note))
        give_back(engine, sorted(_tables_in(note)))
        done = store_settings.update().where(
            store_settings.c.key == OWED, store_settings.c.value == note
        )
        with engine.begin() as connection:
            connection.execute(done.values(value=""))
    return sorted(tables)


def _note_of(engine: Engine) -> str:
    with reading(engine).connect() as connection:
        return agreed(connection).get(OWED, "")


def _tables_in(note: str) -> list[str]:
    return list(filter(None, note.partition(":")[2].split(",")))


def give_back(engine: Engine, tables: list[str]) -> None:
    """Remove the old bytes of deleted rows from the database's files.

    PostgreSQL writes the tables anew (`VACUUM FULL`), and each is locked meanwhile. So does it with
    its statistics, which hold frequent values of the tables. Raises
    OperationalError if others hold a table for longer than LOCK_SECONDS.
    """
    if engine.dialect.name == "postgresql":
        _vacuum(engine, tables, "VACUUM (FULL, ANALYZE)")
        _vacuum(engine, ["pg_statistic"], "VACUUM FULL")
        return
    with engine.connect() as connection:
        connection.rollback()
        database: Any = connection.connection.driver_connection
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _vacuum(engine: Engine, tables: Iterable[str], command: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"SET lock_timeout = '{LOCK_SECONDS}s'"))
        try:
            for table in tables:
                connection.execute(text(f'{command} "{table}"'))
        finally:
            connection.execute(text("RESET lock_timeout"))


def give_room_back(engine: Engine, tables: Iterable[str]) -> None:
    """Give back the space that these tables no longer need, beside running writers.

    PostgreSQL uses it again; an SQLite file gets shorter.
    """
    if engine.dialect.name == "postgresql":
        _vacuum(engine, sorted(tables), "VACUUM")
        return
    with engine.connect() as connection:
        connection.rollback()
        database: Any = connection.connection.driver_connection
        if _pragma(database, "auto_vacuum") == INCREMENTAL:
            while free := _pragma(database, "freelist_count"):
                database.execute(f"PRAGMA incremental_vacuum({STEP})").fetchall()
                if _pragma(database, "freelist_count") >= free:
                    break
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _pragma(database: Any, pragma: str) -> int:
    return int(database.execute(f"PRAGMA {pragma}").fetchone()[0])
