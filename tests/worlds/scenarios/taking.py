"""Filling a store with a scenario, and looking at it as a reader does."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine

from strandline.core.openlineage.times import micros_of
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.sql.engine import reading


def fill(engine: Engine, records: Sequence[Record]) -> None:
    """Take all records in one transaction."""
    caches = Caches()
    with engine.begin() as connection:
        outcomes = take(connection, records, caches)
    assert {outcome.kind for outcome in outcomes} <= {"stored", "duplicate"}


def reader(engine: Engine) -> AbstractContextManager[Connection]:
    """A connection that reads."""
    return reading(engine).connect()


def view(at: str, **how: Any) -> View:
    """Relations at a moment."""
    return View(micros_of(datetime.fromisoformat(at)), **how)


NOW = view("2026-11-20T13:00:00Z")


def lineage(engine: Engine, node: str, seen: View = NOW, **how: Any) -> dict[str, Any]:
    """The lineage of a table or job, an hour after noon unless the view says otherwise."""
    with reader(engine) as connection:
        return lineage_of(connection, Question(node_called(connection, node), seen, **how))


def ids(answer: dict[str, Any]) -> list[str]:
    """The nodes of an answer, in its order."""
    return [node["id"] for node in answer["nodes"]]


def arrows(answer: dict[str, Any]) -> list[str]:
    """The edges of an answer as `source -> target`."""
    return [f"{edge['source']} -> {edge['target']}" for edge in answer["edges"]]
