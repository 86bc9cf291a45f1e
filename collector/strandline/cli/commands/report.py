"""`strandline report NAME --catalog CATALOG`: a report about the whole graph, on Spark."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

from strandline.cli.answers import (
    add_list_output,
    number,
    show_table,
    tell_list,
    time_argument,
)
from strandline.cli.command import Command
from strandline.errors import RefusedError
from strandline.history.session import spark_arguments, spark_session
from strandline.reports.queries import REPORTS
from strandline.reports.run_report import run_report
from strandline.settings import Settings


def arguments(parser: ArgumentParser) -> None:
    """The report, and where the published tables are."""
    about = "; ".join(f"{name}: {report.about}" for name, report in REPORTS.items())
    parser.add_argument("name", choices=sorted(REPORTS), metavar="NAME", help=about)
    parser.add_argument(
        "--catalog",
        required=True,
        metavar="CATALOG",
        help="Spark's catalog with the tables of `strandline tables publish`",
    )
    parser.add_argument(
        "--before",
        type=time_argument,
        metavar="TIME",
        help="of stale: 30d, 2026-11-20T12:00:00Z (default: 7d)",
    )
    parser.add_argument(
        "--limit",
        type=number(1, 1_000_000),
        default=20,
        metavar="N",
        help="rows to print (default: %(default)s)",
    )
    add_list_output(parser)
    spark_arguments(parser)


def run(options: Namespace, settings: Settings) -> int:
    """Print the report."""
    if "." in options.catalog:
        raise RefusedError(
            f"{options.catalog}: is the name of a catalog and of something in it", "catalog"
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


REPORT = Command("report", run, arguments, shows=())
