"""Opening the store for a command. Only a command that writes makes one that is not there yet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from strandline.errors import SchemaError
from strandline.settings import Settings, setting_called
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


def existing_store(settings: Settings, *, takes_url: bool = False) -> Engine:
    """Return the store of a command that needs one with data.

    Raise SchemaError if there is none yet; nothing is made. `takes_url` says that the command could
    ask a collector instead.
    """
    if file := missing_file(settings.database_url):
        raise SchemaError(no_database(file, takes_url=takes_url))
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


def no_database(file: Path, *, takes_url: bool = False, silent_collector: str | None = None) -> str:
    """Return the message of a command whose SQLite file is missing.

    `silent_collector` is the address at which no collector answered either.
    """
    silent = f", and no collector answers at {silent_collector}" if silent_collector else ""
    names = ["url", "database_url"] if takes_url else ["database_url"]
    return (
        f"there is no database {file} yet{silent}: start strandline serve, "
        f"or set {' or '.join(map(setting_called, names))}"
    )


def missing_file(url: str) -> Path | None:
    """Return the file of an SQLite address, if it is not there."""
    file = file_of(url)
    return file if file is not None and not file.exists() else None
