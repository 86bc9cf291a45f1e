"""An archive as a store that lives as long as its analysis: rebuilt in an SQLite file, by the rules of every rebuild."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from strandline.errors import SettingsError
from strandline.history.rebuild import NO_NAMES, NameRules, Rebuilt, names_of, rebuild
from strandline.store.sql.engine import make_engine, migrate, reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ELSEWHERE = (
    "analyse --from: rebuilds in a file that other machines cannot read: strandline rebuild --into a PostgreSQL, "
    "and analyse that with --database-url"
)


class ArchivedStore(NamedTuple):
    """The address of the file, and what was rebuilt."""

    url: str
    rebuilt: Rebuilt


def archived_store(spark: SparkSession, source: str, like: str | None, scratch: str) -> ArchivedStore:
    """Rebuild the archive at `source` below `scratch`, with the names that were joined in the store `like`.

    Raises SettingsError on a cluster, whose workers could not read the file.
    """
    if not spark.sparkContext.master.startswith("local"):
        raise SettingsError([ELSEWHERE])
    url = f"sqlite:///{scratch}/rebuilt.db"
    engine = make_engine(url)
    try:
        migrate(engine)
        return ArchivedStore(url, rebuild(spark, source, engine, _names(like), scratch))
    finally:
        engine.dispose()


def _names(like: str | None) -> NameRules:
    if like is None:
        return NO_NAMES
    live = make_engine(like)
    try:
        with reading(live).connect() as connection:
            return names_of(connection)
    finally:
        live.dispose()
