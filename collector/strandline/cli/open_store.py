"""Opening the store for a command. Only a command that writes makes one that is not there yet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from strandline.errors import SchemaError
from strandline.settings import Settings
from strandline.store.search.upkeep import fill_index
from strandline.store.sql.db_errors import reason_of
from strandline.store.sql.engine import check, file_of, is_empty, make_engine, migrate

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from structlog.typing import FilteringBoundLogger

WAIT_SECONDS = 1  # between two attempts to reach a database


def open_store(settings: Settings, log: FilteringBoundLogger) -> Engine:
    """Return the store, ready to be used; a SQLite file and PostgreSQL's tables are made.

    A PostgreSQL with tables has to be migrated already: other servers may run on it with the schema
    that it has.
    """
    engine = make_engine(settings.database_url)
    where = engine.url.render_as_string(hide_password=True)
    with _disposed_on_error(engine):
        if empty := is_empty(engine):
            log.info("store: the database is empty; its tables are made", database=where)
        if empty or engine.dialect.name == "sqlite":
            migrate(engine)
        else:
            check(engine)
        fill_index(engine)
    log.info("store", database=where)
    return engine


def wait_for_database(settings: Settings, log: FilteringBoundLogger) -> None:
    """Return when the database can be reached, or when it has been waited for long enough.

    Whoever opens the store then gets the error that is left.
    """
    from strandline.logs import Sparing  # only servers wait: commands need no logs for their help

    engine = make_engine(settings.database_url)
    until = time.monotonic() + settings.database_wait_seconds
    warn = Sparing(lambda reason: log.warning("waiting for the database", reason=reason))
    while engine.dialect.name == "postgresql" and time.monotonic() < until:
        try:
            engine.connect().close()
            break
        except DBAPIError as error:
            warn(reason_of(error))
        time.sleep(WAIT_SECONDS)
    engine.dispose()


def existing_store(settings: Settings) -> Engine:
    """Return the store of a command that only asks.

    A SchemaError where there is none yet, and nothing is made.
    """
    refuse_missing(settings)
    engine = make_engine(settings.database_url)
    with _disposed_on_error(engine):
        check(engine)
    return engine


@contextmanager
def _disposed_on_error(engine: Engine) -> Iterator[None]:
    try:
        yield
    except BaseException:
        engine.dispose()
        raise


def refuse_missing(settings: Settings) -> None:
    """Raise SchemaError where opening the store would make its file.

    What is asked for is not in a new one.
    """
    if file := missing_file(settings.database_url):
        raise SchemaError(
            f"there is no database {file} yet: start strandline serve, or name the database "
            "of your server with --database-url"
        )


def missing_file(url: str) -> Path | None:
    """Return the file of an SQLite address, if it is not there."""
    file = file_of(url)
    return file if file is not None and not file.exists() else None
