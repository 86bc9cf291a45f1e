"""The commands that ask: lineage, lists, versions, names."""

import argparse
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from strandline.cli.command import Command
from strandline.cli.options import (
    MOST_ITEMS,
    add_as_of,
    add_collector_arguments,
    add_list_output,
    add_output,
    add_parameter,
    add_selection,
    add_span,
    add_state,
    add_view,
    name_argument,
    number,
    time_argument,
)
from strandline.core.versions.promises import PROMISES
from strandline.core.walk import MOST_NODES
from strandline.questions import declared


def _limits(parser: ArgumentParser) -> None:
    add_parameter(parser, "--depth", declared.DEPTH)
    add_parameter(parser, "--limit", declared.MOST_NODES, default=MOST_NODES)


def lineage_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "node",
        nargs="+",
        help="dataset:NAMESPACE:NAME, job:NAMESPACE:NAME, or a short name like bank.balance; "
        "or run:ID alone: the runs upstream of it",
    )
    add_parameter(parser, "--direction", declared.DIRECTION, default="both")
    add_parameter(parser, "--depth", declared.DEPTH)
    parser.add_argument(
        "--limit",
        type=number(declared.MOST_NODES.low, declared.MOST_NODES.high),
        help=f"{declared.MOST_NODES.about} (default: 1000; with --nodes all)",
    )
    add_parameter(parser, "--granularity", declared.GRANULARITY, default="table")
    add_parameter(parser, "--column", declared.COLUMN, metavar="NAME")
    add_parameter(parser, "--dependency", declared.DEPENDENCY, action="append")
    add_view(parser)
    add_selection(parser)
    add_parameter(parser, "--collapse", declared.COLLAPSE, default="none")
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
    add_parameter(parser, "--column", declared.ONE_COLUMN, metavar="NAME")
    _limits(parser)
    add_view(parser)
    add_selection(parser)
    add_output(parser, "list")


def paths_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("from_", metavar="FROM", help="a table or job")
    parser.add_argument("to", metavar="TO", help="a table or job")
    add_parameter(parser, "--from-column", declared.FROM_COLUMN, metavar="NAME")
    add_parameter(parser, "--to-column", declared.TO_COLUMN, metavar="NAME")
    add_parameter(parser, "--granularity", declared.GRANULARITY, default="table")
    _limits(parser)
    add_view(parser)
    add_selection(parser)
    add_output(parser, "graph")


def changes_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "node", nargs="*", help="only around these tables or jobs (default: the newest datasets)"
    )
    moment: dict[str, Any] = {"type": time_argument, "metavar": "TIME"}
    add_parameter(parser, "--since", declared.EARLIER, required=True, **moment)
    add_parameter(parser, "--until", declared.LATER, **moment)
    add_parameter(parser, "--direction", declared.DIRECTION, default="both")
    add_parameter(parser, "--granularity", declared.GRANULARITY, default="table")
    _limits(parser)
    add_state(parser)
    add_selection(parser)
    add_output(parser, "list")


def namespaces_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_parameter(parser, "--limit", declared.MOST_NODES, default=MOST_NODES)
    add_as_of(parser)
    add_output(parser, "graph")


def search_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_parameter(parser, "text", declared.SEARCHED, type=name_argument)
    _output_arguments(parser)


def lists_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that all lists have."""
    add_parameter(parser, "--namespace", declared.NAMESPACE)
    add_parameter(parser, "--state", declared.RUN_STATE, type=_states, metavar="STATE")
    parser.add_argument("--failed", action="store_true", help="the same as --state FAIL")
    add_span(parser)
    add_parameter(parser, "--as-of", declared.AS_OF, type=time_argument, metavar="TIME")
    _output_arguments(parser)


def node_lists_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of a list of datasets or jobs."""
    add_parameter(parser, "--tag", declared.TAG, action="append", default=[])
    add_parameter(parser, "--owner", declared.OWNER, action="append", default=[])
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
        "--limit",
        type=number(1, MOST_ITEMS),
        default=100,
        help="show at most so many (default: 100)",
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
    add_parameter(parser, "--job", declared.EVENTS_OF_JOB, type=name_argument)
    add_parameter(parser, "--run", declared.EVENTS_OF_RUN, type=name_argument)
    add_parameter(parser, "--dataset", declared.EVENTS_OF_DATASET, type=name_argument)
    add_span(parser)
    parser.add_argument(
        "--limit",
        type=number(1, 10_000),
        default=20,
        help="show at most so many events (default: 20)",
    )
    add_list_output(parser, "the events whole, as JSON")
    add_collector_arguments(parser)


def rejected_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--limit",
        type=number(1, 1_000),
        default=50,
        help="show at most so many kinds (default: 50)",
    )
    add_list_output(parser, "the answer as JSON, with the beginning of an example of each kind")
    add_collector_arguments(parser)


def snapshots_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "table", type=name_argument, help="a table: bank.balance, or dataset:NAMESPACE:NAME"
    )
    parser.add_argument(
        "--limit",
        type=number(1, MOST_ITEMS),
        default=100,
        help="show at most so many (default: 100)",
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
    add_parameter(parser, "--barrier", declared.BARRIER, type=int)
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    add_collector_arguments(parser)


def names_arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "--limit",
        type=number(1, 10_000),
        default=100,
        help="show at most so many (default: 100)",
    )
    add_list_output(parser)
    add_collector_arguments(parser)
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
    jobs = kinds.add_parser(
        "jobs", help="list or join jobs whose names differ only in a date, an id or a number"
    )
    jobs.add_argument("namespace", nargs="?", help="the namespace of the jobs")
    jobs.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="join the jobs of these names, such as 'daily_{date}', also those to come",
    )
    for command in (strip, join, jobs):
        add_collector_arguments(command, argparse.SUPPRESS)
        command.add_argument(
            "--apply", action="store_true", help="apply the change; otherwise only print it"
        )
        command.add_argument(
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
        "list, strip or join names of one dataset or job; changes nothing without --apply",
        "names:run",
        names_arguments,
    ),
)
