"""The commands that ask: lineage, lists, versions, names."""

import argparse
from argparse import ArgumentParser, ArgumentTypeError

from strandline.cli.command import Command
from strandline.cli.options import (
    DIRECTIONS,
    MOST_ITEMS,
    add_as_of,
    add_collector_arguments,
    add_list_output,
    add_output,
    add_selection,
    add_state,
    add_view,
    name_argument,
    node_count,
    number,
    time_argument,
)
from strandline.core.limits import MOST_OF_DATABASE
from strandline.core.openlineage.moments import EXAMPLES
from strandline.core.openlineage.run_states import STATES
from strandline.core.versions.promises import PROMISES


def _limits(parser: ArgumentParser) -> None:
    parser.add_argument("--depth", type=node_count, help="jobs on a path at most (default: all)")
    parser.add_argument(
        "--limit",
        type=number(1, MOST_OF_DATABASE),
        default=5_000,
        help="nodes at most (default: 5000)",
    )


def lineage_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "node",
        nargs="+",
        help="dataset:NAMESPACE:NAME, job:NAMESPACE:NAME, or a short name like bank.balance; "
        "or run:ID alone: the runs upstream of it",
    )
    parser.add_argument("--direction", choices=DIRECTIONS, default="both")
    parser.add_argument("--depth", type=node_count, help="jobs on a path at most (default: all)")
    parser.add_argument(
        "--limit",
        type=number(1, MOST_OF_DATABASE),
        help="nodes at most (default: 1000; with --nodes all)",
    )
    parser.add_argument("--granularity", choices=("table", "column"), default="table")
    parser.add_argument("--column", metavar="NAME", help="lineage of this column only")
    parser.add_argument(
        "--dependency",
        action="append",
        choices=("direct", "indirect", "opaque"),
        help="with --granularity column: only edges that carry a value, only filters and joins, "
        "or only those without column lineage",
    )
    add_view(parser)
    add_selection(parser)
    parser.add_argument(
        "--collapse",
        choices=("none", "parent", "root"),
        default="none",
        help="show parents for jobs",
    )
    parser.add_argument(
        "--nodes",
        action="store_true",
        help="only tables and jobs, nearest first, with their distances: for large graphs",
    )
    parser.add_argument(
        "--snapshots", action="store_true", help="also the newest snapshot's lineage"
    )
    parser.add_argument("--snapshot", metavar="ID", help="also the lineage of this snapshot")
    add_output(parser, "graph")


def impact_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "node", metavar="TABLE[.COLUMN]", help="a table, a column of one, or job:NAMESPACE:NAME"
    )
    parser.add_argument(
        "--column", metavar="NAME", help="the column, where its name has dots or colons"
    )
    _limits(parser)
    add_view(parser)
    add_selection(parser)
    add_output(parser, "list")


def paths_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("from_", metavar="FROM", help="a table or job")
    parser.add_argument("to", metavar="TO", help="a table or job")
    parser.add_argument("--from-column", metavar="NAME", help="only from this column")
    parser.add_argument("--to-column", metavar="NAME", help="only to this column")
    parser.add_argument("--granularity", choices=("table", "column"), default="table")
    _limits(parser)
    add_view(parser)
    add_selection(parser)
    add_output(parser, "graph")


def changes_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "node", nargs="*", help="only around these tables or jobs (default: the newest datasets)"
    )
    parser.add_argument(
        "--since",
        type=time_argument,
        required=True,
        metavar="TIME",
        help=f"the earlier moment: {EXAMPLES}",
    )
    parser.add_argument(
        "--until", type=time_argument, metavar="TIME", help="the later moment (default: now)"
    )
    parser.add_argument("--direction", choices=DIRECTIONS, default="both")
    parser.add_argument(
        "--granularity",
        choices=("table", "column"),
        default="table",
        help="column: also columns that were added, removed or changed type, and their edges",
    )
    _limits(parser)
    add_state(parser)
    add_selection(parser)
    add_output(parser, "list")


def namespaces_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--limit",
        type=number(1, MOST_OF_DATABASE),
        default=1_000,
        help="namespaces at most (default: 1000)",
    )
    add_as_of(parser)
    add_output(parser, "graph")


def search_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "text",
        type=name_argument,
        help="a part of a name, a tag, a column or an SQL text, in any case; the beginning of a "
        "run's id; the id of a Spark application or of a snapshot",
    )
    _output_arguments(parser)


def lists_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that all lists have."""
    parser.add_argument("--namespace", help="only of this namespace")
    parser.add_argument(
        "--state",
        type=_states,
        metavar="STATE",
        help=f"{', '.join(STATES)}, or several with commas",
    )
    parser.add_argument("--failed", action="store_true", help="the same as --state FAIL")
    parser.add_argument(
        "--since", type=time_argument, metavar="TIME", help=f"from then on, in UTC: {EXAMPLES}"
    )
    parser.add_argument("--until", type=time_argument, metavar="TIME", help="before then")
    parser.add_argument(
        "--as-of",
        type=time_argument,
        metavar="TIME",
        help="the list at that moment",
    )
    _output_arguments(parser)


def node_lists_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of a list of datasets or jobs."""
    for name in ("tag", "owner"):
        parser.add_argument(
            f"--{name}",
            action="append",
            default=[],
            help=f"only with this {name}; * stands for anything",
        )
    lists_arguments(parser)


def runs_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of a list, and the job."""
    parser.add_argument(
        "job",
        nargs="?",
        type=name_argument,
        help="only of this job: its name, or job:NAMESPACE:NAME",
    )
    lists_arguments(parser)


def _output_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=number(1, MOST_ITEMS), default=100, help="items at most (default: 100)"
    )
    add_list_output(parser)
    add_collector_arguments(parser)


def _states(text: str) -> frozenset[str]:
    from strandline.store.catalog.filters import states_called  # the help needs no store

    try:
        return states_called(text.split(","))
    except ValueError as error:
        raise ArgumentTypeError(f"{text} {error}") from None


def events_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--job", type=name_argument, help="of this job: its name, or job:NAMESPACE:NAME"
    )
    parser.add_argument("--run", type=name_argument, help="of the run with this id")
    parser.add_argument(
        "--dataset",
        type=name_argument,
        help="that name this dataset: bank.balance, or dataset:NAMESPACE:NAME",
    )
    parser.add_argument(
        "--since",
        type=time_argument,
        metavar="TIME",
        help=f"received from then on, in UTC: {EXAMPLES}",
    )
    parser.add_argument("--until", type=time_argument, metavar="TIME", help="received before then")
    parser.add_argument(
        "--limit", type=number(1, 10_000), default=20, help="events at most (default: 20)"
    )
    add_list_output(parser, "the events whole, as JSON")
    add_collector_arguments(parser)


def rejected_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--limit", type=number(1, 1_000), default=50, help="kinds at most (default: 50)"
    )
    add_list_output(parser, "the answer as JSON, with the beginning of an example of each kind")
    add_collector_arguments(parser)


def snapshots_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "table", type=name_argument, help="a table: bank.balance, or dataset:NAMESPACE:NAME"
    )
    parser.add_argument(
        "--limit", type=number(1, MOST_ITEMS), default=100, help="items at most (default: 100)"
    )
    add_list_output(parser)
    add_collector_arguments(parser)


def versions_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("table", nargs="+", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    kinds = parser.add_mutually_exclusive_group()
    for name, promise in PROMISES.items():
        kinds.add_argument(
            f"--{name}", dest="consistency", action="store_const", const=name, help=promise
        )
    parser.set_defaults(consistency="auto")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    add_collector_arguments(parser)


def late_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("table", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    parser.add_argument(
        "--barrier", type=int, help="the barrier whose delay is shown (default: the last one)"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    add_collector_arguments(parser)


def names_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--limit",
        type=number(1, 10_000),
        default=100,
        help="datasets at most (default: 100)",
    )
    add_list_output(parser)
    kinds = parser.add_subparsers(
        dest="kind", metavar="strip|join|jobs", help="without an action: the names that are joined"
    )
    strip = kinds.add_parser(
        "strip", help="remove what these regular expressions match from names that are paths"
    )
    strip.add_argument(
        "patterns", nargs="+", metavar="PATTERN", help=r"such as '(/[^/=]+=[^/]*)+$' for partitions"
    )
    join = kinds.add_parser("join", help="join two names of one dataset")
    for name in ("namespace", "name", "other_namespace", "other_name"):
        join.add_argument(name)
    kinds.add_parser("jobs", help="list jobs whose names differ only in a date, an id or a number")
    for one in (strip, join):
        one.add_argument(
            "--apply", action="store_true", help="apply the change; otherwise only print it"
        )
        one.add_argument(
            "--json",
            action="store_const",
            dest="format",
            const="json",
            default=argparse.SUPPRESS,
            help="the answer as JSON",
        )


COMMANDS = (
    Command(
        "lineage",
        "show the tables and jobs upstream and downstream of a table or job",
        "lineage:run",
        lineage_arguments,
    ),
    Command(
        "impact",
        "show what depends on a table or column; exit code 1 if anything does",
        "questions:run_impact",
        impact_arguments,
    ),
    Command(
        "paths",
        "show the paths from one table or job to another",
        "questions:run_paths",
        paths_arguments,
    ),
    Command(
        "changes",
        "show what was added to or removed from the graph between two moments",
        "questions:run_changes",
        changes_arguments,
    ),
    Command(
        "namespaces",
        "list namespaces, and count the jobs that feed one from another",
        "questions:run_namespaces",
        namespaces_arguments,
    ),
    Command(
        "search",
        "find datasets, jobs and runs by part of a name, tag, column or SQL text, or by id",
        "lists:run_search",
        search_arguments,
    ),
    Command(
        "jobs",
        "list jobs with their latest runs; by state, time and namespace",
        "lists:run_jobs",
        node_lists_arguments,
    ),
    Command(
        "datasets",
        "list datasets with their latest writes; by state, time and namespace",
        "lists:run_datasets",
        node_lists_arguments,
    ),
    Command(
        "runs",
        "list runs, with the errors of failed ones; by job, state, time and namespace",
        "lists:run_runs",
        runs_arguments,
    ),
    Command(
        "events",
        "list events as received; by job, run, dataset and time",
        "events:run",
        events_arguments,
    ),
    Command(
        "rejected",
        "list rejected events by producer and reason",
        "rejected:run",
        rejected_arguments,
    ),
    Command(
        "snapshots",
        "list the known snapshots of a table, newest first",
        "snapshots:run",
        snapshots_arguments,
    ),
    Command(
        "versions",
        "show which snapshots of several tables agree",
        "versions:run",
        versions_arguments,
    ),
    Command(
        "late", "show the lag of a table, and the job that causes it", "late:run", late_arguments
    ),
    Command(
        "names",
        "list, strip or join names of one dataset; changes nothing without --apply",
        "names:run",
        names_arguments,
    ),
)
