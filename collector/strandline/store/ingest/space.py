"""Giving space back: what was deleted stays in a database's files until they are gone over.

Whoever deletes notes so in the same transaction (`owe`): if it is killed before the space is given back, the next one who
looks does it.
"""

from typing import Any

from sqlalchemy import Connection, Engine, text

from strandline.store.sql.engine import reading
from strandline.store.sql.shared_settings import agree, agreed

OWED = "space_owed"  # of store_settings: names of tables with commas between, empty when nothing is owed


def owe(connection: Connection, tables: list[str]) -> None:
    """Note that rows of these tables were deleted for good: their old bytes have to go as well."""
    known = set(filter(None, agreed(connection).get(OWED, "").split(",")))
    agree(connection, OWED, ",".join(sorted({*known, *tables})))


def give_owed_back(engine: Engine) -> list[str]:
    """Give the space back that is owed; the tables that it was of."""
    with reading(engine).connect() as connection:
        tables = sorted(filter(None, agreed(connection).get(OWED, "").split(",")))
    if tables:
        give_back(engine, tables)
        with engine.begin() as connection:
            agree(connection, OWED, "")
    return tables


def give_back(engine: Engine, tables: list[str]) -> None:
    """Let the database overwrite what the rows were: until then their old bytes are in its files."""
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
