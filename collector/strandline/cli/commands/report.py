"""`strandline report NAME --catalog CATALOG`: a report about the whole graph, on Spark."""

from argparse import Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

from strandline.cli.answers import (
    show_table,
    tell_list,
)
from strandline.errors import RefusedError
from strandline.history.session import spark_session
from strandline.reports.run_report import run_report
from strandline.settings import Settings


def run(options: Namespace, settings: Settings) -> int:
    """Print the report."""
    if "." in options.catalog:
        raise RefusedError(
            f"{options.catalog}: is a path in a catalog; name the catalog alone", "catalog"
        )
    before = options.before or datetime.now(UTC) - timedelta(days=7)
    with spark_session(options) as spark:
        report = run_report(spark, options.name, options.catalog, before)
        columns = report.columns
        rows = report.limit(options.limit + 1).collect()
    is_cut = len(rows) > options.limit
    items = [dict(zip(columns, map(_as_json, row), strict=True)) for row in rows[: options.limit]]
    cut = f"the first {options.limit} rows; --limit prints more" if is_cut else ""
    if not tell_list(options, items, items, cut, columns):
        cells = [[_as_text(value) for value in item.values()] for item in items]
        show_table([column.upper() for column in columns], cells, [cut] if cut else [])
    return 0


def _as_json(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _as_text(value: Any) -> str:
    return "" if value is None else str(value)
