"""`strandline lineage NODE`: what a table, job or snapshot is made from, and what is made from it.

Asked of the database, or with --url of a running collector. `report` is the same for other commands.
"""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import Connection, Engine

from strandline.cli.answers import show
from strandline.cli.collector import Ask, add_collector_arguments, answering
from strandline.cli.command import Command
from strandline.cli.lineage_text import Json, column_text, lineage_text, snapshot_text
from strandline.core.openlineage.moments import exact_moment
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.errors import NotFoundError
from strandline.settings import Settings
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import dataset_of, node_called
from strandline.store.lineage.relations import View
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.lineage.table_lineage import Question, lineage_of
from strandline.store.sql.engine import reading

MOST = 50_000  # nodes, or jobs on the way


def report(engine: Engine, node: str, *, direction: str = "both") -> str:
    """Job lineage of a node, and snapshot lineage of its newest snapshot if it is a table that has any, as text."""
    return _told(_of_database(engine), {"node": node, "direction": direction}, snapshots=True, snapshot=None)


def add_arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("node", help="dataset:NAMESPACE:NAME, job:NAMESPACE:NAME, or a short name like bank.balance")
    parser.add_argument("--direction", choices=[str(way) for way in Direction], default="both")
    parser.add_argument("--depth", type=_number, help="how many jobs on the way (default: all)")
    parser.add_argument("--limit", type=_number, default=1_000, help="how many nodes at most (default: 1000)")
    parser.add_argument("--granularity", choices=("table", "column"), default="table")
    parser.add_argument("--column", metavar="NAME", help="with --granularity column: only this one")
    parser.add_argument("--as-of", type=_moment, metavar="TIME", help="as it was then, e.g. 2026-11-20T12:00:00Z")
    parser.add_argument(
        "--state",
        choices=("known", "newest", "live"),
        default="known",
        help="known: by each job's last runs (default); newest: by its newest run alone; live: only what runs now",
    )
    parser.add_argument("--collapse", choices=("none", "parent", "root"), default="none", help="show parents for jobs")
    parser.add_argument("--snapshots", action="store_true", help="also the newest snapshot's lineage")
    parser.add_argument("--snapshot", metavar="ID", help="also the lineage of this snapshot")
    parser.add_argument("--json", action="store_true", help="the answers as JSON")
    add_collector_arguments(parser)


def _number(text: str) -> int:
    if not text.isdecimal() or not int(text) <= MOST:
        raise ArgumentTypeError(f"{text} is not a whole number from 0 to {MOST}")
    return int(text)


def _moment(text: str) -> str:
    try:
        return exact_moment(text).isoformat()
    except ValueError as error:
        raise ArgumentTypeError(f"{text} {error}") from None


def run(options: Namespace, settings: Settings) -> int:
    """Print the lineage."""
    names = ("node", "direction", "depth", "limit", "granularity", "column", "state", "collapse")
    asked = {name: vars(options)[name] for name in names} | {"asOf": options.as_of}
    if fault := _fault(options):
        print(f"strandline lineage: {fault}", file=sys.stderr)
        return 2
    snapshots = options.snapshots or options.snapshot is not None
    with answering(options, settings, _of_database) as ask:
        text = (_json if options.json else _told)(ask, asked, snapshots=snapshots, snapshot=options.snapshot)
    if options.json:
        print(text)
    else:
        show([text])
    return 0


def _fault(options: Namespace) -> str | None:
    by_column = options.granularity == "column"
    if options.column is not None and not by_column:
        return "--column needs --granularity column"
    return "--collapse needs --granularity table" if options.collapse != "none" and by_column else None


def _told(ask: Ask, asked: Mapping[str, Any], *, snapshots: bool, snapshot: str | None) -> str:
    answer, direction = ask("/lineage", asked), str(asked["direction"])
    if asked.get("granularity") == "column":
        parts = [column_text(answer, direction)]
    else:
        parts = [lineage_text(answer, answer["nodes"][0]["id"], direction)]
    if snapshots and (found := _snapshots(ask, asked, answer, snapshot)) is not None:
        parts.append(snapshot_text(found, direction))
    return "\n\n".join(parts)


def _json(ask: Ask, asked: Mapping[str, Any], *, snapshots: bool, snapshot: str | None) -> str:
    answer = ask("/lineage", asked)
    found = _snapshots(ask, asked, answer, snapshot) if snapshots else None
    return json.dumps(answer if not snapshots else {"lineage": answer, "snapshots": found}, indent=2)


def _snapshots(ask: Ask, asked: Mapping[str, Any], answer: Json, snapshot: str | None) -> Json | None:
    """Lineage of a snapshot of the node; None if none was asked for by its id and none is known."""
    start = answer["nodes"][0]
    if start["type"] == "job":
        return None
    wanted = {name: asked.get(name) for name in ("direction", "depth", "limit")}
    named = {"namespace": start["namespace"], "name": start["name"], "snapshotId": snapshot}
    try:
        return ask("/snapshots/lineage", named | wanted)
    except NotFoundError:
        if snapshot is None:
            return None
        raise


def _of_database(engine: Engine) -> Ask:
    def ask(path: str, asked: Mapping[str, Any]) -> Json:
        with reading(engine).connect() as connection:
            answer = (_snapshot_answer if path == "/snapshots/lineage" else _answer)(connection, asked)
        known: Json = orjson.loads(orjson.dumps(answer))
        return known

    return ask


def _answer(connection: Connection, asked: Mapping[str, Any]) -> Json:
    question = Question(
        node_called(connection, asked["node"]),
        _view(asked),
        Direction(asked["direction"]),
        asked.get("depth"),
        asked.get("limit") or 1_000,
        asked.get("collapse") or "none",
    )
    if asked.get("granularity") == "column":
        return column_lineage_of(connection, question, asked.get("column"))
    return lineage_of(connection, question)


def _view(asked: Mapping[str, Any]) -> View:
    now = datetime.now(UTC)
    then = datetime.fromisoformat(asked["asOf"]) if asked.get("asOf") else now
    state = asked.get("state")
    return View(micros_of(min(then, now)), live=state == "live", past=then < now, newest=state == "newest")


def _snapshot_answer(connection: Connection, asked: Mapping[str, Any]) -> Json:
    dataset = dataset_of(connection, asked["namespace"], asked["name"])
    now = View(micros_of(datetime.now(UTC)))
    direction, most = Direction(asked["direction"]), asked["limit"] or 1_000
    return snapshot_lineage_of(connection, dataset, asked["snapshotId"], now, direction, asked["depth"], most)


COMMAND = Command("lineage", run, add_arguments)
