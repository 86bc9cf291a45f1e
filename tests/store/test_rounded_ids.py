"""Snapshot ids that came as doubles are matched to exact ones by the key of `snapshots`, and a barrier's facet is stored once."""

from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.changes.extract import beside_columns
from strandline.store.sql.compression import expand
from worlds.builders import batch, dataset, event, rows, snapshot, store

USES = "SELECT direction, snapshot_id, approximate_id FROM snapshot_lineage"
NEAR = 4358109269898191360  # a double: the ids from 256 below to 256 above it are rounded to it
WHOLE_FACET = b'{"engine": "spark", "queryId": "q", "sources": [{"description": "iceberg"}]}'


def scan(snapshot_id: int) -> Any:
    """Return an event of a run that reports the double of an id that it read."""
    report = {"icebergScanReport": {"snapshotId": float(snapshot_id)}}
    return event("COMPLETE", 99, "reader", 70, inputs=[dataset("bank.a", own=report)])


@pytest.mark.parametrize(
    "id_",
    [
        NEAR - 256,  # halfway to the next double
        NEAR + 256,
        2**63 - 2048 - 512,  # the greatest distance
        2**63 - 2048 + 512,
        2**63 - 513,
        10**18 - 64,  # has a digit less than its double
        10**18 + 64,
        2**53 + 3,
        -NEAR - 1,
    ],
)
def test_the_ids_of_a_double_are_found_without_an_index_on_it(engine: Engine, id_: int) -> None:
    names = (str(id_), str(id_ + 4096), str(id_ - 4096), "", "7", str(id_) + "x", "a" * 19)
    store(
        engine,
        [
            event(
                "COMPLETE", 1, "w", outputs=[dataset("bank.a", own=snapshot(one)) for one in names]
            )
        ],
    )
    store(engine, [scan(id_)])

    assert rows(engine, f"{USES} WHERE direction = 0") == [(0, str(id_), None)]


@pytest.mark.postgres
def test_the_ids_of_a_double_are_found_by_the_key(postgres_engine: Engine) -> None:
    """In a table of many snapshots the planner uses the range of ids, not the commit times."""
    commits = [
        event(
            *("COMPLETE", number, "w"),
            outputs=[dataset("bank.a", own=snapshot(str(NEAR + 10**6 * number)))],
        )
        for number in range(1, 300)
    ]
    store(postgres_engine, [*commits, scan(NEAR)])
    with postgres_engine.begin() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
        plan = "\n".join(
            line for (line,) in connection.exec_driver_sql("EXPLAIN SELECT * FROM snapshot_lineage")
        )

    (found,) = [
        line
        for line in plan.splitlines()
        if "known.snapshot_id >=" in line or "(snapshot_id >=" in line
    ]
    assert "Index Cond" in found
    assert "pk_snapshots" in plan


def test_a_barrier_keeps_of_its_facet_what_no_column_holds(engine: Engine) -> None:
    described = {"sources": [{"description": "s1"}], "checkpointLocation": "s3a://lake/_cp/stream"}
    store(engine, [batch(1, barrier_facet=described), batch(2)])

    stored = [expand(bytes(facet)) for (facet,) in rows(engine, "SELECT facet FROM job_barriers")]

    assert sorted(stored) == [b'{"sources":[{"description": "s1"}]}', b"{}"]
    assert beside_columns(WHOLE_FACET) == b'{"sources":[{"description": "iceberg"}]}'
