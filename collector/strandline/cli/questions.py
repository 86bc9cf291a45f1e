"""Shared parts of the commands that ask about lineage.

Their options, who answers, and the formats of what they print.
"""

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import Connection, Engine

from strandline.cli.answers import warn, write_text
from strandline.cli.collector import Ask
from strandline.cli.lineage_text import not_shown
from strandline.core.exports.graphs import WRITERS
from strandline.core.exports.lists import list_csv
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.store.lineage.lookup import dataset_of
from strandline.store.lineage.relations import View
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.questions.asked import ANSWERS
from strandline.store.questions.selection import facet_value
from strandline.store.sql.engine import reading

Json = dict[str, Any]


def asked_of(options: Namespace, names: Iterable[str]) -> Json:
    """Return the parameters of what the options ask for; --format json is --json."""
    options.json = options.json or options.format == "json"
    options_ = vars(options)
    parameters = {name: options_.get(name) for name in names}
    return parameters | ({"asOf": options.as_of} if "as_of" in options_ else {})


def of_database(engine: Engine) -> Ask:
    """Return who answers from the database, as the API would."""

    def ask(path: str, parameters: Mapping[str, Any]) -> Json:
        with reading(engine).connect() as connection:
            answer = (
                _snapshots(connection, parameters)
                if path == "/snapshots/lineage"
                else _answer(connection, path, parameters)
            )
        plain: Json = orjson.loads(orjson.dumps(answer))
        return plain

    return ask


def _answer(connection: Connection, path: str, parameters: Mapping[str, Any]) -> Json:
    parsed: Json = {"facet": [facet_value(text) for text in parameters.get("facet") or ()]}
    if parameters.get("since"):
        parsed["since"] = micros_of(datetime.fromisoformat(parameters["since"]))
    return ANSWERS[path](connection, {**parameters, **parsed}, _view(parameters))


def _view(parameters: Mapping[str, Any]) -> View:
    now = datetime.now(UTC)
    at = parameters.get("asOf") or parameters.get("until")
    then = datetime.fromisoformat(at) if at else now
    state = parameters.get("state")
    return View(
        micros_of(min(then, now)),
        live=state == "running",
        past=then < now,
        newest=state == "latest",
    )


def _snapshots(connection: Connection, parameters: Mapping[str, Any]) -> Json:
    dataset = dataset_of(connection, parameters["namespace"], parameters["name"])
    direction, most = Direction(parameters["direction"]), parameters["limit"] or 1_000
    return snapshot_lineage_of(
        connection,
        dataset,
        parameters["snapshotId"],
        _view(parameters),
        direction,
        parameters["depth"],
        most,
    )


def print_export(answer: Json, path: str, name: str) -> int:
    """Print the answer of a path in a format other than JSON; stderr names what it leaves out."""
    text = WRITERS[name][1](answer) if "edges" in answer else list_csv(path, answer["items"])
    write_text(text)
    if not answer["complete"]:
        print(
            f"strandline: the answer is cut by {answer['truncatedBy'] or '--limit'}",
            file=sys.stderr,
        )
    for line in not_shown(answer):
        warn(line.strip("()"))
    return 0
