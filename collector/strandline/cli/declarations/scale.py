"""The commands for archives and reports, with Spark."""

from argparse import ArgumentParser

from strandline.cli.command import Command
from strandline.cli.options import (
    add_catalog_properties,
    add_list_output,
    add_spark_options,
    number,
    time_argument,
)


def archive_arguments(parser: ArgumentParser) -> None:
    """Add the target, and what is to be moved."""
    parser.add_argument(
        "--to",
        required=True,
        metavar="TARGET",
        help="a folder (or s3://, gs://, hdfs://) for Parquet files, delta:FOLDER, or "
        "iceberg:CATALOG.DATABASE.TABLE",
    )
    parser.add_argument(
        "--before",
        type=time_argument,
        metavar="TIME",
        help="move what was received before this moment: 30d, 2026-11-20T12:00:00Z (default: 7d)",
    )
    parser.add_argument(
        "--batch",
        type=int,
        default=20_000,
        metavar="EVENTS",
        help="events a batch (default: %(default)s)",
    )
    parser.add_argument(
        "--from-topic",
        action="store_true",
        help="write every event of the Kafka topic instead, with Spark, until stopped; the "
        "store is not touched",
    )
    parser.add_argument(
        "--checkpoint", metavar="FOLDER", help="with --from-topic: where Spark keeps its position"
    )
    parser.add_argument(
        "--available-now",
        action="store_true",
        help="with --from-topic: stop when the topic's end is reached",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    add_catalog_properties(parser)
    add_spark_options(parser)


def rebuild_arguments(parser: ArgumentParser) -> None:
    """Add the archive, the new store, and the live one that it shall equal."""
    parser.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="ARCHIVE",
        help="what strandline archive wrote: a folder, delta:FOLDER, or "
        "iceberg:CATALOG.DATABASE.TABLE (Spark's catalog)",
    )
    parser.add_argument(
        "--into",
        required=True,
        metavar="DATABASE_URL",
        help="an empty store; it is made and migrated",
    )
    parser.add_argument(
        "--like",
        metavar="DATABASE_URL",
        help="take path patterns, names joined by hand and annotations from this store, and "
        "compare every row with it afterwards",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    add_spark_options(parser)


def report_arguments(parser: ArgumentParser) -> None:
    """Add the report, and where the published tables are."""
    from strandline.reports.queries import REPORTS

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
    add_spark_options(parser)


COMMANDS = (
    Command(
        "archive",
        "move events out of the store, or straight from the topic, into a table for Spark",
        "archive:run",
        archive_arguments,
        shows=("database_url", "kafka_bootstrap_servers", "kafka_topic"),
    ),
    Command(
        "rebuild",
        "rebuild the lineage tables from archived events, on Spark",
        "rebuild:run",
        rebuild_arguments,
    ),
    Command(
        "report",
        "print a report about the whole graph, by Spark SQL over the published tables",
        "report:run",
        report_arguments,
        shows=(),
    ),
)
