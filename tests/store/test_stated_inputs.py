"""Snapshots of runs with several statements: each output has its stated inputs."""

from typing import Any

from sqlalchemy import Engine

from strandline.core.walk import Direction
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.versions.answers import cut_of
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import dataset, run
from worlds.scenarios.taking import arrows, fill, reader, view

NOW = view("2026-11-20T13:00:00Z")


def asked(engine: Engine, table: str, snapshot: str, way: Direction) -> dict[str, Any]:
    with reader(engine) as connection:
        return snapshot_lineage_of(connection, node_called(connection, table), snapshot, NOW, way)


def test_two_outputs_of_one_run_keep_their_stated_inputs(engine: Engine) -> None:
    """A micro-batch, or an INSERT into two tables, is one run of several statements."""
    facets = {
        name: {"strandline_snapshot": FACET | {"snapshotId": id_}}
        for name, id_ in zip("abxyz", "12789", strict=True)
    }
    reads = [dataset(name) | {"inputFacets": facets[name]} for name in "ab"]
    of = {"x": "a", "y": "b", "z": ""}
    writes = [
        dataset(
            name,
            lineage=FACET | {"inputs": [dataset(one) | {"type": "DATASET"} for one in of[name]]},
        )
        | {"outputFacets": facets[name]}
        for name in "xyz"
    ]
    later = {"strandline_snapshot": FACET | {"snapshotId": "3"}}
    fill(
        engine,
        [
            run("COMPLETE", 1, "job", reads, writes),
            run("COMPLETE", 2, "more", [], [dataset("b") | {"outputFacets": later}]),
        ],
    )

    assert arrows(asked(engine, "x", "7", Direction.UPSTREAM)) == [
        "snapshot:db:a:1 -> snapshot:db:x:7"
    ]
    assert arrows(asked(engine, "b", "2", Direction.DOWNSTREAM)) == [
        "snapshot:db:b:2 -> snapshot:db:y:8"
    ]
    alone = asked(engine, "z", "9", Direction.UPSTREAM)
    assert (arrows(alone), alone["nodes"][0]["madeBy"]["job"]) == ([], "job:ns:job")
    with reader(engine) as connection:
        cut = cut_of(connection, [("db", "x"), ("db", "b")])
    assert {table: one.snapshot for table, one in cut.items()} == {
        ("db", "x"): "7",
        ("db", "b"): "3",
    }
