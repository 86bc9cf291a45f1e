"""Recordings: past lists equal those of a collector at that moment.

What later events hide is left out (`updatedAt`, `droppedAt`, `owners`, `latestSnapshot`), or cannot
be told from what was not so: that a run that goes on had not yet reported RUNNING, and that a
dataset had been named by edges alone. Streams are not here, as in test_recorded_past.
"""

import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection

from store.recordings.conftest import Heard, events_of
from store.recordings.test_recorded_past import NAMES, OTHER_NAMES
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import datasets_page, jobs_page
from strandline.store.catalog.runs import runs_page
from strandline.store.lineage.lookup import node_text
from worlds.builders import Json

MOST = 10_000
MORE = ["failing", "recreated"]
SLOW_NAMES = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in (*OTHER_NAMES, "nested_ctas", "retried", "two_inserts")
]
STATES: dict[str, frozenset[str]] = {
    "any": frozenset(),
    "failed": frozenset({"FAIL"}),
    "running": frozenset({"START", "RUNNING"}),
    "done": frozenset({"COMPLETE"}),
}


def lists(connection: Connection, moment: int, asked: Filter) -> dict[str, Json]:
    """All items of the three lists by what they are."""
    jobs = jobs_page(connection, asked, moment, MOST, None)["items"]
    datasets = datasets_page(connection, asked, moment, MOST, None)["items"]
    runs = runs_page(connection, None, asked, moment, MOST, None)["items"]
    found = {one["id"]: one for one in [*jobs, *datasets]} | {one["runId"]: one for one in runs}
    return {name: plain(one) for name, one in found.items()}


def plain(item: Json) -> Json:
    """The item, where a run that has begun is the same as one that is running."""
    running = {"state": "RUNNING"} if item.get("state") == "START" else {}
    inner = {key: plain(item[key]) for key in ("latestRun", "latestWrite") if item.get(key)}
    return item | running | inner


def expected(
    then: dict[str, Json], found: dict[str, Json], owned_later: set[str]
) -> dict[str, Json]:
    """Return the list of then, without things that are hidden now."""
    kept = {
        name: one for name, one in then.items() if name in found or one.get("createdAt") is not None
    }
    return {name: shown(one, found.get(name, one), owned_later) for name, one in kept.items()}


def shown(then: Json, found: Json, owned_later: set[str]) -> Json:
    """The item of then with the keys that the other shows.

    Of what was not dropped lists of the past say so. Owners that were stated again later are None:
    those of the item itself, or of the parent whose owners it has.
    """
    if "owners" in found and found["owners"] is None:
        parent = then.get("parent")
        above = {node_text("job", parent["namespace"], parent["name"])} if parent else set()
        assert {then["id"], *above} & owned_later, then["id"]
        then = then | {"owners": None}
    hidden = {"updatedAt", "droppedAt", "owners", "latestSnapshot"} - found.keys()
    kept = {key: value for key, value in then.items() if key not in hidden}
    return {"droppedAt": None} | kept if "droppedAt" in found else kept


def owned_after(name: str, moment: datetime) -> set[str]:
    """Return the jobs and datasets whose owners an event after the moment states."""
    nodes = set()
    for at, line in events_of(name):
        event = json.loads(line)
        named = {"job": [event["job"]], "dataset": [*event["inputs"], *event["outputs"]]}
        for kind, entities in named.items():
            nodes |= {
                node_text(kind, one["namespace"], one["name"])
                for one in entities
                if at > moment and "ownership" in one.get("facets", {})
            }
    return nodes


@pytest.mark.parametrize("name", [*NAMES, *MORE, *SLOW_NAMES])
def test_past_lists_equal_the_lists_of_that_moment(heard: Heard, name: str) -> None:
    now = micros_of(datetime.now(UTC))
    for moment, then, whole in heard(name):
        owned_later = owned_after(name, moment)
        with then.connect() as before, whole.connect() as after:
            for states in STATES.values():
                was = lists(before, micros_of(moment), Filter(states=states))
                found = lists(after, now, Filter(states=states, as_of=micros_of(moment)))

                assert found == expected(was, found, owned_later)
            assert found != lists(after, now, Filter(states=states))
