"""The proposals' tables as rows: live, or (relations and start-up rows) as history.

The views hold their definition.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, text

from strandline.errors import NotFoundError
from strandline.store.lineage.run_state import iso

TABLES = (
    "catalog_options",
    "source_job_lineage",
    "sink_job_lineage",
    "source_snapshot_lineage",
    "sink_snapshot_lineage",
    "job_startup",
    "__META_ETL_SOURCE",
    "__META_ETL_SINK",
    "__META_TABLE_VERSION",
)
# The proposals' own queries name two of their tables so.
OTHER_NAMES = {"__meta_job_source": "__META_ETL_SOURCE", "__meta_job_sink": "__META_ETL_SINK"}
_LIVING = (
    "source_job_lineage",
    "sink_job_lineage",
    "job_startup",
    "__META_ETL_SOURCE",
    "__META_ETL_SINK",
)
WITH_HISTORY = {name: f"{name}_history" for name in _LIVING}
AT_ONCE = 1_000


def table_called(name: str) -> str:
    """The table of this name, in any case; raises NotFoundError with the names that there are."""
    tables = {table.lower(): table for table in TABLES} | OTHER_NAMES
    table_found = tables.get(name.lower())
    if table_found is None:
        raise NotFoundError(f"no such table: {name!r}", TABLES)
    return table_found


def columns_of(connection: Connection, table: str, *, history: bool) -> list[str]:
    """The names of the table's columns."""
    with connection.execute(text(f"{_query(table, history=history)} LIMIT 0")) as result:
        return list(result.keys())


def rows_of(connection: Connection, table: str, *, history: bool) -> Iterator[dict[str, Any]]:
    """Return the rows of the table in their order.

    Data lineage is a record, so its history is the table itself. Ids are text.
    """
    places = range(1, len(columns_of(connection, table, history=history)) + 1)
    query = f"{_query(table, history=history)} ORDER BY {', '.join(map(str, places))}"
    streamed = connection.execution_options(stream_results=True, yield_per=AT_ONCE)
    with streamed.execute(text(query)) as result:
        for row in result.mappings():
            yield {name: _as_json(name, value) for name, value in row.items()}


def _query(table: str, *, history: bool) -> str:
    return f"SELECT * FROM {WITH_HISTORY.get(table, table) if history else table}"


def _as_json(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in ("barrier_id", "snapshot_id"):
        return str(value)
    return iso(value) if name in ("valid_from", "valid_to") else value
