"""The commands that run a collector and look after its store."""

from argparse import ArgumentParser

from strandline.cli.command import Command
from strandline.cli.options import add_collector_arguments, add_list_output, path_argument


def demo_arguments(parser: ArgumentParser) -> None:
    """Add the demo's own arguments."""
    parser.add_argument(
        "--keep", action="store_true", help="stay up, with the streams running, until Ctrl-C"
    )
    parser.add_argument("--http", action="store_true", help="send events by HTTP, without a broker")
    parser.add_argument(
        "--together", action="store_true", help="all streams in one application: 1 GB instead of 3"
    )
    parser.add_argument(
        "--plain", action="store_true", help="without the second act: the bank, aligned"
    )
    parser.add_argument(
        "--replay",
        action="store_true",
        help="ten recorded minutes of the bank instead: in seconds, no Java",
    )
    parser.add_argument(
        "--rounds", type=int, default=10, help="micro-batches of the ingest job (10)"
    )
    parser.add_argument(
        "--dir", type=path_argument, default=".demo", help="folder of the demo, made anew (.demo)"
    )


def keys_arguments(parser: ArgumentParser) -> None:
    """Add `add NAME`, `revoke NAME` and `list`."""
    from strandline.core.access.granted import SCOPES

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add a key; it is printed once")
    add.add_argument("name", help="the name of its user")
    add.add_argument(
        "--scope",
        action="append",
        default=[],
        choices=SCOPES,
        help="ingest: events and registrations, read: queries and leases, admin: "
        "everything; may be repeated",
    )
    add.add_argument(
        "--namespace",
        action="append",
        default=[],
        metavar="PATTERN",
        help="namespaces of jobs and datasets, * for any text; may be repeated",
    )
    add.add_argument("--days", type=int, help="days until it expires; without it never")
    revoke = actions.add_parser("revoke", help="revoke a key, within five seconds on every server")
    revoke.add_argument("name", help="its name or its id")
    listing = actions.add_parser("list", help="all keys, with their scopes, namespaces and times")
    add_list_output(listing, "for programs")
    for action in (add, revoke):
        action.add_argument("--json", action="store_true", help="for programs")
    for action in (add, revoke, listing):
        add_collector_arguments(action)


def check_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--json", action="store_true", help="checks and faults as JSON")
    parser.add_argument(
        "--data", action="store_true", help="read all stored data and report what is damaged"
    )


def migrate_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")


def copy_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of both commands."""
    parser.add_argument("file", type=path_argument, metavar="FILE", help="the copy")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def replay_arguments(parser: ArgumentParser) -> None:
    """Files, or `--dead-letters`."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="one event a line, gzip or not; - is standard input; or the folder of an archive in "
        "Parquet",
    )
    parser.add_argument(
        "--dead-letters", action="store_true", help="records that an older version could not read"
    )
    parser.add_argument("--json", action="store_true", help="for programs")


COMMANDS = (
    Command(
        "serve",
        "serve the API and the page and, if Kafka is configured, consume its topic",
        "serve:serve",
        shows=(
            "database_url",
            "host",
            "port",
            "auth",
            "admin_key_file",
            "database_wait_seconds",
            "kafka_bootstrap_servers",
            "kafka_topic",
            "kafka_group",
            "metrics_port",
            "access_log",
            "log_format",
        ),
    ),
    Command(
        "consume",
        "consume the Kafka topic only; run up to one for each partition",
        "serve:consume",
        shows=(
            "database_url",
            "kafka_bootstrap_servers",
            "kafka_topic",
            "kafka_group",
            "metrics_port",
            "log_format",
        ),
    ),
    Command(
        "demo",
        "run five Spark jobs, Kafka and a collector on this machine, and print what was seen",
        "demo:run",
        demo_arguments,
        shows=("port",),
    ),
    Command("keys", "add, list and revoke API keys", "keys:run", keys_arguments),
    Command(
        "check",
        "report faults of settings, database and topic",
        "check:run",
        check_arguments,
        shows=None,
        bears_faults=True,
    ),
    Command(
        "migrate",
        "migrate the database to the schema of this version",
        "migrate:run",
        migrate_arguments,
    ),
    Command(
        "backup",
        "make a verified copy of the store, while servers write",
        "backup:backup",
        copy_arguments,
    ),
    Command("restore", "make a new store from a copy", "backup:restore", copy_arguments),
    Command(
        "replay",
        "store events from files, archives or dead letters again",
        "replay:run",
        replay_arguments,
    ),
)
