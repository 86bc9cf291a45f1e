"""The lineage tables as real Iceberg tables of a catalog, for SQL on any engine.

They are the proposals' tables, and the edges of all jobs between datasets and between columns.
Each table is replaced in one commit by what the store has now. pyiceberg writes it in
parts, so memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection

from strandline.errors import RefusedError
from strandline.execution.edge_rows import (
    COLUMN_EDGES,
    JOB_EDGES,
    column_edge_rows,
    job_edge_rows,
)
from strandline.execution.iceberg_tables import INSTALL, IcebergTables
from strandline.store.catalog.proposal_tables import TABLES, WITH_HISTORY, columns_of, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

DATABASE = "strandline"
ROWS_AT_ONCE = 50_000
_NUMBERS = ("barrier_id", "snapshot_id", "version")
_TIMES = ("valid_from", "valid_to", "read_at", "written_at")


class PublishedTable(NamedTuple):
    """A table that was written: catalog.database.table, and how many rows it has."""

    name: str
    rows: int


def publish(
    connection: Connection, tables: IcebergTables, catalog: str
) -> Iterator[PublishedTable]:
    """Write each lineage table into the catalog's database `strandline`, and the edges of all jobs.

    What ran is NAME_history. Raises RefusedError where the catalog does not take a table, or has
    one of its name that was not published.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise RefusedError(f"pyarrow is needed to publish tables: {INSTALL}") from error
    pairs = [(name, False) for name in TABLES] + [(name, True) for name in WITH_HISTORY]
    for name, history in pairs:
        columns = columns_of(connection, name, history=history)
        called = f"{catalog}.{DATABASE}.{WITH_HISTORY[name] if history else name}"
        parts = _parts(rows_of(connection, name, history=history), columns)
        yield PublishedTable(called, tables.replace_rows(called, _schema(columns), parts))
    moment = int(datetime.now(UTC).timestamp() * 1_000_000)
    edges = {
        "job_edges": (JOB_EDGES, job_edge_rows(connection, moment)),
        "column_edges": (COLUMN_EDGES, column_edge_rows(connection, moment)),
    }
    for name, (columns_of_edges, rows) in edges.items():
        called = f"{catalog}.{DATABASE}.{name}"
        schema = _schema(columns_of_edges)
        count = tables.replace_rows(called, schema, _parts(rows, columns_of_edges))
        yield PublishedTable(called, count)


def _schema(columns: Sequence[str]) -> pa.Schema:
    """Return the types of columns.

    barrier_id, snapshot_id and version are 64-bit integers, times have microseconds in UTC, all
    else is text.
    """
    import pyarrow as pa

    instant = pa.timestamp("us", tz="UTC")
    return pa.schema(
        [
            (
                column,
                pa.int64() if column in _NUMBERS else instant if column in _TIMES else pa.string(),
            )
            for column in columns
        ]
    )


def _parts(rows: Iterator[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[pa.Table]:
    import pyarrow as pa

    schema = _schema(columns)
    while part := list(islice(rows, ROWS_AT_ONCE)):
        yield pa.table(
            {
                column: [_READ.get(column, _as_is)(row[column]) for row in part]
                for column in columns
            },
            schema=schema,
        )


def _number(value: Any) -> int | None:
    """Return the number of an id, or None (NULL) if it has no 64 bits, as in Spark's `try_cast`.

    Iceberg, Delta and Paimon have none.
    """
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if -(2**63) <= number < 2**63 else None


def _instant(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _as_is(value: Any) -> Any:
    return value


_READ: Mapping[str, Callable[[Any], Any]] = dict.fromkeys(_NUMBERS, _number) | dict.fromkeys(
    _TIMES, _instant
)
