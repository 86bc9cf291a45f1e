"""The columns of the lineage tables, with their types in Spark SQL.

Standard library only: Python workers import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

_PLACE = "namespace STRING, catalog STRING, consistency_group STRING"
_JOB_LINEAGE = f"job STRING, database STRING, `table` STRING, {_PLACE}"
_SNAPSHOT_LINEAGE = (
    f"job STRING, barrier_id BIGINT, database STRING, `table` STRING, snapshot_id BIGINT, {_PLACE}"
)
_ETL = f"job_id STRING, table_name STRING, {_PLACE}"
_HISTORY = "run_id STRING, valid_from TIMESTAMP, valid_to TIMESTAMP, state STRING"

COLUMNS: Mapping[str, str] = {
    "catalog_options": f"key STRING, value STRING, {_PLACE}",
    "source_job_lineage": _JOB_LINEAGE,
    "sink_job_lineage": _JOB_LINEAGE,
    "source_snapshot_lineage": _SNAPSHOT_LINEAGE,
    "sink_snapshot_lineage": _SNAPSHOT_LINEAGE,
    "job_startup": f"job STRING, database STRING, `table` STRING, snapshot_id BIGINT, {_PLACE}",
    "__META_ETL_SOURCE": _ETL,
    "__META_ETL_SINK": _ETL,
    "__META_TABLE_VERSION": f"table_name STRING, version BIGINT, table_type STRING, {_PLACE}",
}
"""The tables and their columns as Spark's DDL."""
WITH_HISTORY = (
    "source_job_lineage",
    "sink_job_lineage",
    "job_startup",
    "__META_ETL_SOURCE",
    "__META_ETL_SINK",
)
STATES = ("running", "history")
_OTHER_NAMES = {"__meta_job_source": "__META_ETL_SOURCE", "__meta_job_sink": "__META_ETL_SINK"}
Value = str | int | datetime | None


def table_called(name: str) -> str:
    """The table of this name, in any case, or by the name that the proposals' own queries use.

    Raises ValueError with the tables that there are.

    >>> table_called("__meta_job_sink")
    '__META_ETL_SINK'
    """
    table_found = ({table.lower(): table for table in COLUMNS} | _OTHER_NAMES).get(name.lower())
    if table_found is None:
        raise ValueError(f"table: {name!r} is none of {', '.join(COLUMNS)}")
    return table_found


def columns_of(table: str, state: str) -> str:
    """The columns of a table as Spark's DDL.

    Of data lineage, which is a record, the history is the table itself.
    """
    return (
        f"{COLUMNS[table]}, {_HISTORY}"
        if state == "history" and table in WITH_HISTORY
        else COLUMNS[table]
    )


def values_of(row: Mapping[str, Any], columns: str) -> tuple[Value, ...]:
    """A row of the collector's JSON in the columns' order and types.

    An id that is no number of 64 bits is NULL, as in `try_cast`: Iceberg, Delta and Paimon have
    none.

    >>> values_of({"job": "etl", "snapshot_id": "13"}, "job STRING, snapshot_id BIGINT")
    ('etl', 13)
    """
    named = (column.split(" ") for column in columns.split(", "))
    return tuple(_AS[kind](row[name.strip("`")]) for name, kind in named)


def _number(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if -(2**63) <= number < 2**63 else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _instant(value: Any) -> datetime | None:
    return None if value is None else datetime.fromisoformat(str(value).replace("Z", "+00:00"))


_AS = {"STRING": _text, "BIGINT": _number, "TIMESTAMP": _instant}
