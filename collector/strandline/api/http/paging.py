"""What the lists and graphs of this package have in common.

Parameters, the shape of a page, a connection that reads.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from strandline.api.http.filters import When
from strandline.api.http.operations import LIMIT, Ask, Choice, Parameter, Text, Whole
from strandline.core.openlineage.moments import EXAMPLES
from strandline.core.openlineage.times import micros_of
from strandline.store.lineage.relations import View
from strandline.store.questions.asked import ANSWERS, MOST_OF_DATABASE
from strandline.store.sql.engine import read_from
from strandline.store.sql.pages import Key, decode_cursor

NAMESPACE = Parameter("namespace", "The namespace", Text(), required=True, example="file")
NAME = Parameter("name", "The name in it", Text(), required=True, example="/lake/bank/balance")
WITHIN = Parameter("namespace", "Only of this namespace; `*` stands for anything", Text())
DIRECTION = Parameter(
    "direction", "What it was made from, what was made from it, or both", Choice(("upstream", "downstream", "both")),
    default="both",
)  # fmt: skip
DEPTH = Parameter(
    "depth", "How many jobs on the way; without it to the ends of the graph", Whole(0, 1_000_000)
)
STATE = Parameter(
    "state",
    "recent: all edges of each job's last runs; latest: those of its latest run alone; running: only what runs now",
    Choice(("recent", "latest", "running")),
    default="recent",
)
AS_OF = Parameter(
    "asOf", f"As it was at this time: {EXAMPLES}", When(), example="2026-11-20T12:00:00Z"
)
MOST = Parameter("limit", "How many nodes at most", Whole(1, MOST_OF_DATABASE), default=5_000)


@dataclass(frozen=True)
class Cursor:
    """`nextCursor` of a page before, of a list whose keys have these types."""

    types: tuple[type, ...]

    def parse(self, text: str) -> Key:
        """The key of the last row that was seen."""
        return decode_cursor(text, self.types)

    def schema(self) -> Mapping[str, Any]:
        """A string, to be handed back as it came."""
        return {"type": "string", "minLength": 1}


def paged(*types: type) -> tuple[Parameter, Parameter]:
    """The parameters of a list whose keys have these types."""
    return LIMIT, Parameter("cursor", "`nextCursor` of the page before", Cursor(types))


def page_of(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a page of items."""
    cursor = {"type": ["string", "null"], "description": "Null: this was the last page"}
    properties = {"items": {"type": "array", "items": item}, "nextCursor": cursor}
    return {"type": "object", "required": ["items", "nextCursor"], "properties": properties}


HIDDEN = {
    "type": "object",
    "description": "What is not shown: nodes that a depth or limit cut off (behind those was not looked), edges that were "
    "reported and are not among the state that is asked for, nodes (of changes: lines) that were filtered, edges of other dependencies, what is "
    "in namespaces that the key does not see, datasets whose schema at one of two moments no event that is kept tells",
    "properties": {
        name: {"type": "integer"}
        for name in ("nodes", "edges", "filtered", "dependencies", "access", "schemas")
    },
}


def graph_of(node: Mapping[str, Any], edge: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a graph."""
    properties = {
        "nodes": {"type": "array", "items": node},
        "edges": {"type": "array", "items": edge},
        "complete": {"type": "boolean"},
        "truncatedBy": {
            "type": ["string", "null"],
            "enum": ["depth", "nodes", "edges", "access", None],
        },
        "asOf": {"type": "string", "format": "date-time"},
        "hidden": HIDDEN,
    }
    return {"type": "object", "required": list(properties), "properties": properties}


def listed(item: Mapping[str, Any], **more: str) -> Mapping[str, Any]:
    """The schema of a list that says how much of it is there."""
    properties: dict[str, Any] = {name: {"type": kind.split("|")} for name, kind in more.items()}
    properties |= {
        "items": {"type": "array", "items": item},
        "complete": {"type": "boolean"},
        "hidden": HIDDEN,
    }
    return {"type": "object", "required": list(properties), "properties": properties}


def shape(*required: str, **properties: str) -> Mapping[str, Any]:
    """The schema of an object: names with their types, the required ones strings."""
    kinds = dict.fromkeys(required, "string") | properties
    typed = {
        name: {"type": kind.split("|") if "|" in kind else kind} for name, kind in kinds.items()
    }
    return {"type": "object", "required": list(required), "properties": typed}


@contextmanager
def connected(ask: Ask) -> Iterator[Connection]:
    """A connection that only reads: on no database does it keep a writer waiting."""
    with read_from(ask.engine) as connection:
        yield connection


def view_of(ask: Ask) -> View:
    """Which edges are asked for, and of when."""
    given = ask.given.get("asOf") or ask.given.get("until")
    at = micros_of(min(given or ask.now, ask.now))
    state = ask.given.get("state")
    return View(
        at,
        live=state == "running",
        past=given is not None and given < ask.now,
        newest=state == "latest",
    )


def answer_to(ask: Ask, path: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The answer to a question of store.questions, with the parameters of the request or others."""
    with connected(ask) as connection:
        return ANSWERS[path](connection, ask.given if given is None else given, view_of(ask))
