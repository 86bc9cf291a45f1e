"""`strandline lineage NODE...`.

What tables, jobs or snapshots are made from, and what is made from them.

Asked of the database, or with --url of a running collector. `report` is the same for other
commands.
"""

import json
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from strandline.cli.answers import show, show_table
from strandline.cli.collector import Source, source_of
from strandline.cli.lineage_text import (
    Json,
    column_text,
    cut_lines,
    lineage_text,
    run_text,
    snapshot_text,
)
from strandline.cli.questions import (
    asked_of,
    print_export,
)
from strandline.core.limits import MOST_OF_DATABASE
from strandline.errors import NotFoundError, QuestionError
from strandline.escaping import escaped_answer
from strandline.settings import Settings

SHOWN = 1_000  # nodes of a graph, if nobody says how many


RUN = "run:"
NAMES = (
    "node", "direction", "depth", "limit", "granularity", "column", "dependency", "state",
    "collapse", "namespace", "kind", "tag", "facet",
)  # fmt: skip


def run(options: Namespace, settings: Settings) -> int:
    """Print the lineage."""
    options.limit = options.limit or (MOST_OF_DATABASE if options.nodes else SHOWN)
    if options.column is not None:
        options.granularity = "column"
    parameters = asked_of(options, NAMES)
    if fault := _fault(options):
        raise QuestionError(fault)
    if _is_run(options):
        return _of_run(options, settings, parameters)
    if options.nodes:
        return _of_nodes(options, settings, parameters)
    snapshots = options.snapshots or options.snapshot is not None
    with source_of(options, settings) as source:
        if options.format not in (None, "json"):
            return print_export(_lineage(source, parameters)[0], "/lineage", options.format)
        text = (_json if options.json else _as_text)(
            source, parameters, snapshots=snapshots, snapshot=options.snapshot
        )
    if options.json:
        print(text)
    else:
        show(text.split("\n"))
    return 0


def _of_nodes(options: Namespace, settings: Settings, parameters: Mapping[str, Any]) -> int:
    """Print which nodes lineage leads to."""
    names = (
        "node",
        "direction",
        "depth",
        "limit",
        "state",
        "asOf",
        "namespace",
        "kind",
        "tag",
        "facet",
    )
    with source_of(options, settings) as source:
        answer = source.ask("/lineage/nodes", {name: parameters[name] for name in names})
    if options.format not in (None, "json"):
        return print_export(answer, "/lineage/nodes", options.format)
    if options.json:
        print(json.dumps(answer, indent=2))
    else:
        rows = [(str(item["distance"]), item["id"]) for item in answer["items"]]
        show_table(("STEPS", "NODE"), rows, cut_lines(answer))
    return 0


def _is_run(options: Namespace) -> bool:
    return any(node.startswith(RUN) for node in options.node)


def _of_run(options: Namespace, settings: Settings, parameters: Mapping[str, Any]) -> int:
    """Print the runs that a run stands on."""
    (node,) = options.node
    wanted = {
        "runId": node.removeprefix(RUN),
        "depth": parameters["depth"],
        "asOf": parameters["asOf"],
    }
    with source_of(options, settings) as source:
        answer = source.ask("/runs/lineage", wanted)
    if options.format not in (None, "json"):
        return print_export(answer, "/runs/lineage", options.format)
    if options.json:
        print(json.dumps(answer, indent=2))
    else:
        show(run_text(escaped_answer(answer)).split("\n"))
    return 0


def _fault(options: Namespace) -> str | None:
    if _is_run(options):
        return _fault_of_run(options)
    by_column = options.granularity == "column"
    if options.dependency and not by_column:
        return "--dependency needs --granularity column"
    if options.collapse != "none" and by_column:
        return "--collapse needs --granularity table"
    return _fault_of_nodes(options) if options.nodes else None


def _fault_of_nodes(options: Namespace) -> str | None:
    """Return the other requested parts, which a list of nodes does not have."""
    plain = {"granularity": "table", "collapse": "none", "snapshots": False, "snapshot": None}
    plain_options = [name for name, value in plain.items() if getattr(options, name) != value]
    if options.format not in (None, "json", "csv"):
        return f"--nodes is a list: --format {options.format} is for graphs"
    return f"--{plain_options[0]} cannot be combined with --nodes" if plain_options else None


def _fault_of_run(options: Namespace) -> str | None:
    """Return the error for an option that does not apply to a run."""
    if len(options.node) > 1:
        return "run:ID must be the only name"
    plain = {"direction": "both", "granularity": "table", "state": "recent", "collapse": "none"}
    others = (
        "column",
        "dependency",
        "namespace",
        "kind",
        "tag",
        "facet",
        "nodes",
        "snapshots",
        "snapshot",
    )
    plain_options = [name for name, value in plain.items() if getattr(options, name) != value]
    plain_options = [
        name for name in plain_options if (name, options.direction) != ("direction", "upstream")
    ]
    plain_options += [name for name in others if getattr(options, name)]
    return (
        f"--{plain_options[0]} does not apply to a run: the answer is its upstream runs"
        if plain_options
        else None
    )


def _lineage(source: Source, parameters: Mapping[str, Any]) -> tuple[Json, str]:
    """Return the lineage and its granularity: of TABLE.COLUMN that of the column."""
    granularity = str(parameters.get("granularity") or "table")
    try:
        return source.ask("/lineage", parameters), granularity
    except NotFoundError:
        only_tables = parameters.get("kind") or parameters.get("collapse", "none") != "none"
        if granularity == "column" or len(parameters["node"]) > 1 or only_tables:
            raise
        return source.ask("/lineage", {**parameters, "granularity": "column"}), "column"


def _as_text(
    source: Source, parameters: Mapping[str, Any], *, snapshots: bool, snapshot: str | None
) -> str:
    lineage, granularity = _lineage(source, parameters)
    answer, direction = escaped_answer(lineage), str(parameters["direction"])
    if granularity == "column":
        parts = [column_text(answer, direction)]
    else:
        parts = [lineage_text(answer, _starts(answer, len(parameters["node"])), direction)]
    if snapshots and (found := _snapshots(source, parameters, answer, snapshot)) is not None:
        parts.append(snapshot_text(escaped_answer(found), direction))
    return "\n\n".join(parts)


def _starts(answer: Json, requested: int) -> list[str]:
    """Return the roots of the trees.

    A job may have been asked for by a name under which another job reported itself (stock Spark's
    micro-batches do); then that other job is the root.
    """
    starts = [node["id"] for node in answer["nodes"] if node["distance"] == 0]
    if requested > 1:
        return starts
    ends = {edge[end] for edge in answer["edges"] for end in ("source", "target")}
    return [start for start in starts if start in ends] or starts[:1]


def _json(
    source: Source, parameters: Mapping[str, Any], *, snapshots: bool, snapshot: str | None
) -> str:
    answer, _ = _lineage(source, parameters)
    snapshot_lineage = _snapshots(source, parameters, answer, snapshot) if snapshots else None
    return json.dumps(
        answer if not snapshots else {"lineage": answer, "snapshots": snapshot_lineage}, indent=2
    )


def _snapshots(
    source: Source, parameters: Mapping[str, Any], answer: Json, snapshot: str | None
) -> Json | None:
    """Lineage of a snapshot of the node; None if none was asked for by its id and none is known."""
    start = answer["nodes"][0]
    if start["type"] == "job":
        return None
    wanted = {name: parameters.get(name) for name in ("direction", "depth", "limit", "asOf")}
    named = {"namespace": start["namespace"], "name": start["name"], "snapshotId": snapshot}
    try:
        return source.ask("/snapshots/lineage", named | wanted)
    except NotFoundError:
        if snapshot is None:
            return None
        raise
