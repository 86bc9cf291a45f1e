"""Opening the store for a command."""

from sqlalchemy import Engine
from structlog.typing import FilteringBoundLogger

from strandline.settings import Settings
from strandline.store.connect import check, make_engine, migrate


def open_store(settings: Settings, log: FilteringBoundLogger) -> Engine:
    """The store, ready to be used. A SQLite file is made and migrated; a PostgreSQL has to be migrated already."""
    engine = make_engine(settings.database_url)
    if engine.dialect.name == "sqlite":
        migrate(engine)
    else:
        check(engine)
    log.info("store", database=engine.url.render_as_string(hide_password=True))
    return engine
