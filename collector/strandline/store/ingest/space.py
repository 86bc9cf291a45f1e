"""Giving space back: what was deleted stays in a database's files until they are gone over.

Whoever deletes for good notes so in the same transaction (`owe`): if it is killed before the old
bytes are gone, the next one who looks does it. What retention drops only has to make room: that is
given back in steps, between which others write.
"""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Engine, text

from strandline.store.schema.received_tables import store_settings
from strandline.store.sql.engine import reading
from strandline.store.sql.shared_settings import agree, agreed

STEP = 2000  # pages of SQLite a transaction: some megabytes, some milliseconds
INCREMENTAL = (
    2  # SQLite's auto_vacuum of files that were made by this version, or gone over by VACUUM since
)
# Of store_settings: an id of the newest note, a colon, names of tables with commas between; empty
# when nothing is owed.
OWED = "space_owed"


def owe(connection: Connection, tables: list[str]) -> None:
    """Note that rows of these tables were deleted for good: their old bytes have to go as well."""
    owed = sorted({*_tables_in(agreed(connection).get(OWED, "")), *tables})
    agree(connection, OWED, f"{uuid4().hex}:{','.join(owed)}")


def give_owed_back(engine: Engine) -> list[str]:
    """Give the space back that is owed; the tables that it was of.

    What is owed anew meanwhile stays noted, and is given too.
    """
    given: set[str] = set()
    while note := _note_of(engine):
        given.update(_tables_in(note))
        give_back(engine, sorted(_tables_in(note)))
        done = store_settings.update().where(
            store_settings.c.key == OWED, store_settings.c.value == note
        )
        with engine.begin() as connection:
            connection.execute(done.values(value=""))
    return sorted(given)


def _note_of(engine: Engine) -> str:
    with reading(engine).connect() as connection:
        return agreed(connection).get(OWED, "")


def _tables_in(note: str) -> list[str]:
    return list(filter(None, note.partition(":")[2].split(",")))


def give_back(engine: Engine, tables: list[str]) -> None:
    """Let the database overwrite what the rows were.

    Until then their old bytes are in its files.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if engine.dialect.name == "postgresql":
            for table in tables:
                connection.execute(text(f'VACUUM "{table}"'))
            return
    with engine.connect() as connection:
        connection.rollback()
        database: Any = connection.connection.driver_connection
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def give_room_back(engine: Engine, tables: Iterable[str]) -> None:
    """Give back what these tables no longer need.

    PostgreSQL uses it again, an SQLite file gets shorter by what is free.
    """
    if engine.dialect.name == "postgresql":
        give_back(engine, sorted(tables))
        return
    with engine.connect() as connection:
        connection.rollback()
        database: Any = connection.connection.driver_connection
        if _asked(database, "auto_vacuum") == INCREMENTAL:
            while free := _asked(database, "freelist_count"):
                database.execute(f"PRAGMA incremental_vacuum({STEP})").fetchall()
                if _asked(database, "freelist_count") >= free:
                    break
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _asked(database: Any, pragma: str) -> int:
    return int(database.execute(f"PRAGMA {pragma}").fetchone()[0])
