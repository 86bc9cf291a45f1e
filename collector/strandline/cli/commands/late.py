"""`strandline late TABLE`: how far a table is behind its base tables, and which job delays it."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Engine

from strandline.cli.answers import name_argument, tell
from strandline.cli.collector import Ask, add_collector_arguments, answering
from strandline.cli.command import Command
from strandline.core.access.granted import EVERYTHING
from strandline.core.versions.strong_weak import ago
from strandline.errors import NotFoundError
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.lineage.lookup import node_called
from strandline.store.versions.delay_answer import delay_answer
from strandline.store.versions.lookup import table_of

Json = dict[str, Any]


def arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "table", type=name_argument, help="a table: bank.balance, or dataset:NAMESPACE:NAME"
    )
    parser.add_argument(
        "--barrier", type=int, help="the barrier whose delay is shown (default: the last one)"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    add_collector_arguments(parser)


def run(options: Namespace, settings: Settings) -> int:
    """Print staleness and delay."""
    with answering(options, settings, _of_database) as ask:
        table = ask("/lineage", {"node": options.table, "depth": 0})["nodes"][0]
        if table["type"] != "dataset":
            raise NotFoundError(f"{options.table}: is a job, not a table")
        named = {"namespace": table["namespace"], "name": table["name"]}
        answer = ask("/delays", named | {"barrier": options.barrier})
    tell(options.json, answer, lambda: _lines(answer))
    return 0


def _of_database(engine: Engine) -> Ask:
    follower = Follower(engine)

    def ask(path: str, asked: Mapping[str, Any]) -> Json:
        with follower.question(EVERYTHING) as (connection, model):
            if path == "/lineage":
                node = node_called(connection, asked["node"])
                found = {"type": node.kind, "namespace": node.namespace, "name": node.name}
                return {"nodes": [found]}
            table = table_of(connection, model, asked["namespace"], asked["name"])
            answer = delay_answer(connection, model, table, asked["barrier"], time.time())
        plain: Json = orjson.loads(orjson.dumps(answer))
        return plain

    return ask


def _lines(answer: Json) -> list[str]:
    writer = answer["writer"]
    owner = f"written by job {writer['name']}" if writer else "a base table"
    lines = [f"{answer['label']}, {owner}: {_behind(answer['staleness'])}"]
    reasons = dict.fromkeys(blocker["reason"] for blocker in answer["blockedBy"])
    lines += [f"  the version of all tables together is blocked by {reason}" for reason in reasons]
    delay = answer["delay"]
    if delay is None:
        return [*lines, "  no barrier is completed yet"]
    lines.append(
        f"  barrier {delay['barrier']} took {delay['seconds']:.1f} s from its base table to this table:"
    )
    for part in delay["parts"]:
        job = part["job"]["name"] if part["job"] else "cut"
        mark = "  <- the largest part" if part == delay["bottleneck"] else ""
        lines.append(
            f"    {part['seconds']:8.1f} s  {part['kind']:4}  {job} -> {part['table']['label']}{mark}"
        )
    return lines


def _behind(staleness: Json) -> str:
    if staleness["barrier"] is None:
        return "not late, it has the newest barrier"
    return f"{ago(staleness['seconds'])} behind, barrier {staleness['barrier']} is missing"


LATE = Command("late", run, arguments)
