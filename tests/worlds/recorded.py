"""Recordings of other producers than Spark, in a store: what they are asked."""

import gzip
import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

import recordings
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from worlds.builders import store

HERE = recordings.FILES.parent / "others"
NOW = View(micros_of(datetime.now(UTC)))
ORDERS = [
    pytest.param(("sqlite", "shuffled"), id="sqlite-shuffled"),
    pytest.param(("postgres", "sent"), id="postgres-sent", marks=pytest.mark.postgres),
    pytest.param(("sqlite", "sent"), id="sqlite-sent", marks=pytest.mark.slow),
    pytest.param(
        ("postgres", "shuffled"),
        id="postgres-shuffled",
        marks=[pytest.mark.postgres, pytest.mark.slow],
    ),
]

Columns = dict[str, dict[str, list[str]]]


def truth_of(name: str) -> dict[str, Any]:
    """Return the real reads and writes beside a recording."""
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return found


def take(engine: Engine, name: str, order: str) -> None:
    """Have the store take a recording: as it was sent, in one batch; or shuffled, in small ones."""
    events = gzip.decompress((HERE / f"{name}.jsonl.gz").read_bytes()).splitlines()
    if order == "shuffled":
        random.Random(17).shuffle(events)
    store(engine, events, size=len(events) if order == "sent" else 4)


def question(
    connection: Connection, name: str, way: Direction = Direction.UPSTREAM, view: View = NOW
) -> Question:
    """Return the question for the sources or outputs of a table or job, one step away."""
    return Question(node_called(connection, name), view, way, 1)


def tables(answer: dict[str, Any]) -> list[str]:
    """The other tables of an answer, by their last names."""
    return sorted(
        one["table"] for one in answer["nodes"] if one["type"] == "dataset" and one["distance"]
    )


def columns_behind(connection: Connection, names: dict[str, str]) -> Columns:
    """Of tables, by what they are asked for as, the source columns of each column.

    Table, column, `table.column`.
    """
    found: Columns = {}
    for table, name in names.items():
        answer = column_lineage_of(connection, question(connection, name))
        nodes = {one["id"]: (one["table"], one["column"]) for one in answer["nodes"]}
        for edge in answer["edges"]:
            to, column = nodes[edge["target"]]
            assert to == table
            found.setdefault(to, {}).setdefault(column, []).append(".".join(nodes[edge["source"]]))
    return {
        table: {column: sorted(of) for column, of in one.items()} for table, one in found.items()
    }
