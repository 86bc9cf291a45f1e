"""`strandline tables publish --catalog NAME`.

The lineage tables as real tables of a catalog's `strandline` database.
"""

from argparse import Namespace

from strandline.cli.answers import counted, tell
from strandline.cli.open_store import existing_store
from strandline.errors import RefusedError
from strandline.execution.iceberg_tables import IcebergTables, catalog_properties
from strandline.execution.published_tables import PublishedTable, publish
from strandline.settings import Settings
from strandline.store.sql.engine import reading


def run(options: Namespace, settings: Settings) -> int:
    """Write the tables."""
    if "." in options.catalog:
        raise RefusedError(
            f"{options.catalog}: is a path in a catalog; name the catalog alone", "catalog"
        )
    tables = IcebergTables(catalog_properties(options.catalog_property))
    engine = existing_store(settings)
    try:
        with reading(engine).connect() as connection:
            published = list(publish(connection, tables, options.catalog))
    finally:
        engine.dispose()
    answer = [{"table": table.name, "rows": table.rows} for table in published]
    tell(answer, lambda: list(map(_line, published)), as_json=options.json)
    return 0


def _line(table: PublishedTable) -> str:
    return f"{table.name}  {counted(table.rows, 'row')}"
