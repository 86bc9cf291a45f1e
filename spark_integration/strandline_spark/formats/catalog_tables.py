"""The dataset of a CatalogTable of Spark's session catalog.

Its location, its name, the catalog that holds it.
"""

from __future__ import annotations

from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.class_names import TABLE_IDENTIFIER
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm, answer, ask
from strandline_spark.model.names import qualified
from strandline_spark.model.statement import Catalog, Symlink

SESSION_CATALOG = "spark_catalog"


def location_of(table: JavaObject) -> str | None:
    """Return the location of the table's files, or None if it has no files."""
    location: str | None = answer(
        table, "location", lambda table_: ask(table_, "storage.locationUri")[0]
    )
    return location


def provider_of(table: JavaObject) -> str | None:
    """parquet, delta, hive, jdbc, ..."""
    provider: str | None = answer(table, "provider", lambda table_: ask(table_, "provider")[0])
    return provider.lower() if provider is not None else None


def table_name(table: JavaObject) -> str:
    """catalog.database.table."""
    return str(answer(table, "name", lambda table_: name_of(table_.identifier())))


def name_of(identifier: JavaObject) -> str:
    """The same, of an identifier."""
    catalog, database, table = ask(identifier, "catalog", "database", "table")
    return qualified(catalog or SESSION_CATALOG, database or "default", table)


def session_catalog(jvm: Jvm) -> Catalog:
    """The session catalog: Hive's where Spark was started with it, else Spark's own in memory."""
    kind = jvm.conf("spark.sql.catalogImplementation") or "in-memory"
    return Catalog(
        SESSION_CATALOG, kind, "spark", jvm.conf("spark.sql.warehouse.dir"), metastore(jvm)
    )


def metastore(jvm: Jvm) -> str | None:
    """The address of the Hive metastore, if one is configured."""
    configured = jvm.hadoop("hive.metastore.uris")
    return configured.split(",")[0] if configured else None


def warehouse_namespace(jvm: Jvm) -> str:
    """Return where names of the session catalog live.

    Its metastore if it has one, else the warehouse folder.
    """
    address = metastore(jvm)
    if address:
        return "hive://" + address.rpartition("://")[2]
    return folder_namespace(jvm.conf("spark.sql.warehouse.dir") or "/", jvm)


def folder_namespace(folder: str, jvm: Jvm) -> str:
    """A folder as the namespace of the tables in it."""
    namespace, name = jvm.path(folder)
    return f"{namespace}{':' if namespace == 'file' else '/'}{name}"


def symlink_of(table: JavaObject, jvm: Jvm) -> Symlink:
    """The table's own name."""
    return Symlink(warehouse_namespace(jvm), table_name(table).partition(".")[2], "TABLE")


def made_at(mention: Mention, jvm: Jvm) -> int | None:
    """Return when a table of the session catalog was made; None for one that it has not."""
    if mention.catalog_table is not None:
        identifier = mention.catalog_table.identifier()
    elif mention.catalog is not None and str(mention.catalog.name()) == SESSION_CATALOG:
        identifier = identifier_of(mention, jvm)
    else:
        return None
    try:
        return int(jvm.session.sessionState().catalog().getTableMetadata(identifier).createTime())
    except JAVA_FAILED:
        return None


def identifier_of(mention: Mention, jvm: Jvm) -> JavaObject:
    """The name that a mention gives, as the session catalog wants it."""
    database, table = mention.identifier.namespace()[-1], str(mention.identifier.name())
    return jvm.new(TABLE_IDENTIFIER, table, jvm.static("scala.Option", "apply")(database))
