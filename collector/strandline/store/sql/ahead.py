"""Indexes that a migration names in AHEAD: they are built before it, while servers and consumers go on to write (PostgreSQL).

Each is built by itself, so a command that was killed goes on where it was: what is whole stays, what is not is built again.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, text

LOCK = 0x6168_6561  # who builds has it alone
LOOK_SECONDS = 0.2  # who waits holds no snapshot meanwhile: a build waits for all that are older than it is

_IS_VALID = text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")
_WHILE_OTHERS_WRITE = "CONCURRENTLY"

Report = Callable[[str], None]


def say_nothing(_: str) -> None:
    """Report nothing."""


@contextmanager
def migrating_alone(engine: Engine) -> Iterator[Connection | None]:
    """Keep others that migrate out meanwhile; gives what `build_ahead` builds with, None on SQLite."""
    if engine.dialect.name != "postgresql":
        yield None
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": LOCK}):
            time.sleep(LOOK_SECONDS)
        try:
            yield connection
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK})


def build_ahead(connection: Connection, statements: Mapping[str, str], report: Report = say_nothing) -> None:
    """Build the indexes with these names that are missing or not whole; `report` hears of each before it is built."""
    for number, (name, statement) in enumerate(statements.items(), 1):
        valid = connection.scalar(_IS_VALID, {"name": name})
        if valid:
            continue
        report(f"index {number} of {len(statements)}: {name} is being built, writers go on")
        if valid is not None:
            connection.exec_driver_sql(f"DROP INDEX {_WHILE_OTHERS_WRITE} {name}")
        connection.exec_driver_sql(statement.format(how=_WHILE_OTHERS_WRITE))
