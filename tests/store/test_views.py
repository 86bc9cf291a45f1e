"""A view has no barriers, and asks none of what is made by reading it: the tables below it do."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.versions_server.events import (
    LAKE,
    barrier_facet,
    committed,
    dataset,
    event,
    facet,
    started,
)
from strandline.core.versions.strong_weak import strong, weak
from strandline.runtime.follower import Follower
from strandline.store.ingest.take import Caches, Record, take
from worlds.builders import encode

A, C, VIEW = (LAKE, "db.a"), (LAKE, "db.c"), (LAKE, "lake.db.v")
OF_GROUP = {"strandline_barrier": facet({"group": "d", "engine": "spark"})}
BATCH = {"jobType": facet({"processingType": "BATCH", "integration": "SPARK"})}


def view(direction: str) -> dict[str, Any]:
    """Return the view as a statement names it that reads or makes it."""
    one = dataset(VIEW[1], direction)
    return one | {"facets": {"datasetType": facet({"datasetType": "VIEW"})}}


def create_view(kind: str, at: float) -> dict[str, Any]:
    """An event of CREATE VIEW in an application of the group."""
    made = view("output")
    made["facets"]["lifecycleStateChange"] = facet({"lifecycleStateChange": "CREATE"})
    one = event(
        kind, "v", at, run_facets=OF_GROUP, inputs=[dataset("db.a", "input")], outputs=[made]
    )
    return one | {"job": one["job"] | {"facets": BATCH}}


def micro_batch(number: int, *, stated: bool, through: bool) -> dict[str, Any]:
    """A micro-batch that reads a snapshot of the table below the view, and says that it reads both.

    through: also that it reads the table through the view.
    """
    carried = {"barrierId": number} if stated else {}
    since = {"fromSnapshotId": f"a{number - 1}"} if number > 1 else {}
    parent = {"parentSnapshotId": f"c{number - 1}"} if number > 1 else {}
    read: dict[str, Any] = {"format": "iceberg", "snapshotId": f"a{number}", **since, **carried}
    if through:
        read["through"] = [{"namespace": LAKE, "name": VIEW[1]}]
    made = {"format": "iceberg", "snapshotId": f"c{number}", "operation": "append"}
    at = 10.0 * number + 5
    return event(
        "RUNNING",
        "to_c",
        at,
        run_facets=barrier_facet("d", number, at - 1, at),
        inputs=[dataset("db.a", "input", read), view("input")],
        outputs=[dataset("db.c", "output", made | parent | carried)],
    )


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("stated", [False, True])
def test_view_among_the_inputs_of_a_stream_keeps_no_barrier_back(
    engine: Engine, stated: bool, through: bool
) -> None:
    begins = started("to_c", 13, ["db.a"], ["db.c"], group="d")
    events = [
        started("to_a", 0, [], ["db.a"], group="d"),
        committed("to_a", 10, 1, {}, {"db.a": "a1"}, group="d"),
        create_view("START", 11),
        create_view("COMPLETE", 12),
        begins | {"inputs": [*begins["inputs"], view("input")]},
        micro_batch(1, stated=stated, through=through),
        committed("to_a", 20, 2, {}, {"db.a": "a2"}, group="d"),
        micro_batch(2, stated=stated, through=through),
        committed("to_a", 30, 3, {}, {"db.a": "a3"}, group="d", parents={"db.a": "a2"}),
        micro_batch(3, stated=stated, through=through),
    ]
    follower, caches = Follower(engine), Caches()
    for one in events:
        with engine.begin() as connection:
            take(connection, [Record(encode(one), datetime.now(UTC))], caches)
            follower.take_news(connection)
        caches.commit()

    with follower.model() as model:
        assert model.done[C].order == [1, 2, 3]
        assert [reading.barrier for reading in strong(model, [A, C])] == [3, 3]
        assert [reading.snapshot for reading in weak(model, [C])] == ["c3"]
        assert VIEW not in model.group_of
