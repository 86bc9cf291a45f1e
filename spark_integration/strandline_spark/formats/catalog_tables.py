"""What a CatalogTable of Spark's session catalog says of a dataset: its location, its name, the catalog that holds it."""

from __future__ import annotations

from strandline_spark.jvm import JavaObject, Jvm, optional
from strandline_spark.statement import Catalog, Symlink

SESSION_CATALOG = "spark_catalog"


def location_of(table: JavaObject) -> str | None:
    """Where the table's files lie, or None if it has no files."""
    location = optional(table.storage().locationUri())
    return str(location.toString()) if location is not None else None


def table_name(table: JavaObject) -> str:
    """catalog.database.table."""
    identifier = table.identifier()
    catalog, database = optional(identifier.catalog()), optional(identifier.database())
    return f"{catalog or SESSION_CATALOG}.{database or 'default'}.{identifier.table()}"


def catalog_of(table: JavaObject, jvm: Jvm) -> Catalog:
    """The session catalog: Hive's where Spark was started with it, else Spark's own in memory."""
    kind = jvm.conf("spark.sql.catalogImplementation") or "in-memory"
    return Catalog(SESSION_CATALOG, kind, "spark", jvm.conf("spark.sql.warehouse.dir"), metastore(jvm))


def metastore(jvm: Jvm) -> str | None:
    """The address of the Hive metastore, if one is configured."""
    configured = jvm.hadoop("hive.metastore.uris")
    return configured.split(",")[0] if configured else None


def symlink_of(table: JavaObject, jvm: Jvm) -> Symlink:
    """The table's own name: below the metastore if there is one, else below the warehouse folder."""
    address = metastore(jvm)
    name = table_name(table).partition(".")[2]
    if address:
        return Symlink("hive://" + address.rpartition("://")[2], name, "TABLE")
    namespace, folder = jvm.path(jvm.conf("spark.sql.warehouse.dir") or "/")
    return Symlink(f"{namespace}{':' if namespace == 'file' else '/'}{folder}", name, "TABLE")
