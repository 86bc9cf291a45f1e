"""Recordings of the stock Spark listener in a store.

What they are asked, in the words of their truth.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, Engine

import recordings
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.errors import NotFoundError
from strandline.store.lineage.lookup import Node, node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.lineage.table_snapshots import snapshot_answer, snapshots_of
from worlds.builders import store

Truth = dict[str, Any]
ORDERS = [
    pytest.param("sent", marks=pytest.mark.slow),
    pytest.param("shuffled", marks=pytest.mark.slow),
    "repeated",  # is shuffled too
]


class Recorded(NamedTuple):
    """A collector's database that has taken a recording, and what is true of it."""

    name: str
    engine: Engine
    truth: Truth


def in_order(events: Sequence[bytes], order: str) -> list[bytes]:
    """The events in one of the orders."""
    chance = random.Random(17)
    again = (
        [*events, *chance.sample(events, len(events) // 2)] if order == "repeated" else list(events)
    )
    if order != "sent":
        chance.shuffle(again)
    return again


def recorded(name: str, order: str, engine: Engine) -> Recorded:
    """Take a recording into a database."""
    events = in_order(recordings.events_of(name), order)
    store(engine, events, size=len(events) if order == "sent" else 7)
    return Recorded(name, engine, recordings.truth_of(name))


def now() -> View:
    """Return the view of now."""
    return View(micros_of(datetime.now(UTC)))


def called(node: Mapping[str, Any]) -> str:
    """A dataset as the truth calls it: database.table, or the end of a path."""
    return (
        f"{node['database']}.{node['table']}"
        if node["database"]
        else node["name"].removeprefix("/data/")
    )


def listed(connection: Connection, table: Node) -> list[dict[str, Any]]:
    """The snapshots of a table as the API lists them, the oldest first."""
    return [snapshot_answer(row) for row in snapshots_of(connection, table, 100, None).rows][::-1]


def made_from(connection: Connection, truth: Truth, table: str, number: int) -> set[str]:
    """Return the answered sources of a snapshot, in the form of the truth's `made`.

    Nothing where it is not known at all.
    """
    node, snapshot = node_called(connection, table), truth["snapshots"][table][number]["id"]
    try:
        answer = snapshot_lineage_of(connection, node, snapshot, now(), Direction.UPSTREAM, 1)
    except NotFoundError:
        return set()
    return {numbered(truth, called(one), one) for one in answer["nodes"] if one["distance"]}


def numbered(truth: Truth, table: str, node: Mapping[str, Any]) -> str:
    """A snapshot as table@number; an id of which only a double is known by that."""
    snapshots = truth["snapshots"][table]
    id_, rounded = node["snapshotId"], node.get("approximateSnapshotId", "~nan")
    fits = [
        n
        for n, one in enumerate(snapshots)
        if one["id"] == id_ or float(one["id"]) == float(rounded[1:])
    ]
    return f"{table}@{fits[0] if fits else id_}"
