"""Opening the store for a command. Only a command that writes makes one that is not there yet."""

from pathlib import Path

from sqlalchemy import Engine
from structlog.typing import FilteringBoundLogger

from strandline.errors import SchemaError
from strandline.settings import Settings
from strandline.store.connect import check, file_of, make_engine, migrate


def open_store(settings: Settings, log: FilteringBoundLogger) -> Engine:
    """The store, ready to be used. A SQLite file is made and migrated; a PostgreSQL has to be migrated already."""
    engine = make_engine(settings.database_url)
    if engine.dialect.name == "sqlite":
        migrate(engine)
    else:
        check(engine)
    log.info("store", database=engine.url.render_as_string(hide_password=True))
    return engine


def existing_store(settings: Settings) -> Engine:
    """The store of a command that only asks: a SchemaError where there is none yet, and nothing is made."""
    refuse_missing(settings)
    engine = make_engine(settings.database_url)
    try:
        check(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def refuse_missing(settings: Settings) -> None:
    """Raise SchemaError where opening the store would make its file: what is asked for is not in a new one."""
    if missing_file(settings.database_url):
        raise SchemaError("the database is empty: nothing was collected there yet (strandline serve makes its tables)")


def missing_file(url: str) -> Path | None:
    """The file of an SQLite address, if it is not there."""
    file = file_of(url)
    return file if file is not None and not file.exists() else None
