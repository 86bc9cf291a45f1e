"""The commands that act: on tables, jobs, catalogs and the store."""

from argparse import ArgumentParser

from strandline.cli.command import Command
from strandline.cli.options import (
    add_catalog_properties,
    add_collector_arguments,
    add_list_output,
)

EXPORT_FORMATS = ("marquez", "datahub", "openmetadata", "openlineage", "file")
EXPORT_ACTIONS = ("list", "parked", "preview", "replay", "resend", "forget")
NAMED = ("NAMESPACE", "NAME")


def expire_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("table", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    parser.add_argument(
        "--json", action="store_true", help="the answer as JSON, with all expirable snapshots"
    )
    add_collector_arguments(parser)
    parser.add_argument(
        "--execute", action="store_true", help="drop what is expirable, through pyiceberg"
    )
    parser.add_argument(
        "--no-tags", action="store_true", help="with --execute: do not tag pinned snapshots"
    )
    parser.add_argument(
        "--watch",
        type=float,
        metavar="SECONDS",
        help="with --execute: repeat every so many seconds, until stopped",
    )
    add_catalog_properties(parser)


def rollback_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("table", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    parser.add_argument(
        "barrier", type=int, help="the barrier to go back to, or to the newest possible before it"
    )
    parser.add_argument(
        "--lost-state",
        action="append",
        default=[],
        metavar="JOB",
        help="a job whose checkpoint is lost",
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--rehearse",
        action="store_true",
        help="print what --execute would change, and change nothing",
    )
    ways.add_argument(
        "--execute", action="store_true", help="carry the steps out on Iceberg and Delta tables"
    )
    ways.add_argument(
        "--done",
        action="store_true",
        help="the steps were done by hand: check them, and raise the generation",
    )
    add_catalog_properties(parser)
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def retire_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("job", help="the job's name, or job:NAMESPACE:NAME")
    parser.add_argument(
        "--even-if-running", action="store_true", help="retire a job though it is running"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def catalog_options_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "catalog",
        nargs="?",
        help="the catalog that is configured; without it all options are listed",
    )
    parser.add_argument(
        "options",
        nargs="*",
        metavar="KEY=VALUE",
        help="table-lineage=false, data-lineage=false; KEY= resets it",
    )
    add_list_output(parser)


def tables_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "action", choices=("publish",), help="replace the tables by what the store has now"
    )
    parser.add_argument(
        "--catalog",
        required=True,
        metavar="NAME",
        help="an Iceberg catalog; its database strandline is made",
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    add_catalog_properties(parser)


def export_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--to",
        required=True,
        choices=EXPORT_FORMATS,
        help="what to export to; file: OpenLineage events",
    )
    parser.add_argument(
        "place", nargs="?", help="its address, or a file; else that of the settings"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be sent")
    parser.add_argument(
        "--json", action="store_true", help="how much was exported, and what was rejected, as JSON"
    )


def exports_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=EXPORT_ACTIONS,
        help="list (default); parked: rejected items with reasons; preview: what would be sent "
        "next; replay: send parked items again; resend: send everything again; "
        "forget: remove the target",
    )
    parser.add_argument("name", nargs="?", help="the target")
    add_list_output(parser)


def import_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--from", dest="source", required=True, choices=("marquez", "datahub"), help="which catalog"
    )
    parser.add_argument(
        "place",
        nargs="?",
        help="a Marquez' address, else that of the settings; a file of DataHub's metadata",
    )
    parser.add_argument("--json", action="store_true", help="what was imported, as JSON")


def forget_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--job", nargs=2, metavar=NAMED, help="a job with its runs and their events")
    what.add_argument("--dataset", nargs=2, metavar=NAMED, help="a dataset under each of its names")
    what.add_argument(
        "--run", metavar="ID", help="a run with its events; one whose id is no UUID needs --of"
    )
    what.add_argument(
        "--namespace", metavar="NAME", help="a namespace with all jobs and datasets in it"
    )
    what.add_argument(
        "--event", metavar="HASH", help="an event, by the hash that `GET /api/v2/events` shows"
    )
    what.add_argument(
        "--secret-from",
        metavar="FILE",
        help="a file with a secret (-: standard input); on the command line others would see it",
    )
    parser.add_argument("--of", nargs=2, metavar=NAMED, help="the job of the run")
    parser.add_argument(
        "--execute", action="store_true", help="delete it; without this only count the rows"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def retention_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--execute", action="store_true", help="delete now; without this only count the events"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


COMMANDS = (
    Command(
        "expire",
        "list expirable snapshots, and why others are pinned",
        "expire:run",
        expire_arguments,
    ),
    Command(
        "rollback",
        "plan, or execute, going back to a barrier with a table and its downstream tables",
        "rollback:run",
        rollback_arguments,
    ),
    Command(
        "retire",
        "stop waiting for a job that will not return",
        "retire:run",
        retire_arguments,
    ),
    Command(
        "catalog-options",
        "list or set what the lineage tables show of a catalog",
        "catalog_options:run",
        catalog_options_arguments,
    ),
    Command(
        "tables",
        "publish the lineage tables as real tables of an Iceberg catalog",
        "tables:run",
        tables_arguments,
    ),
    Command(
        "export",
        "export everything stored to a catalog or into a file",
        "export:run",
        export_arguments,
        shows=(
            "database_url",
            "marquez_on_end",
            "datahub_on_end",
            "datahub_env",
            "datahub_platform_instance",
            "datahub_mapping_file",
            "datahub_schemas",
            "openlineage_events",
        ),
    ),
    Command(
        "exports",
        "show the state of each export target, and its parked items",
        "exports:run",
        exports_arguments,
    ),
    Command(
        "import",
        "import from Marquez, or from a file of DataHub's metadata",
        "import_from:run",
        import_arguments,
        shows=("database_url", "marquez_url", "marquez_token_file"),
    ),
    Command(
        "forget",
        "delete a job, dataset, run, namespace, event or secret from the store; "
        "only counts without --execute",
        "forget:run",
        forget_arguments,
    ),
    Command(
        "retention",
        "delete what is older than STRANDLINE_RETENTION_DAYS; only counts without --execute",
        "retention:run",
        retention_arguments,
    ),
)
