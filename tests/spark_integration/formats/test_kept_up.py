"""A table that is compacted keeps its name and its lineage; one that is read at two snapshots is answered with both."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from collector.builders import store
from collector.stock_recorded import now
from spark_lake import formats
from spark_lake.running import Event, events_of
from strandline.core.walk import Direction
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of, snapshots_of
from strandline.store.sql.engine import make_engine, migrate

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("iceberg" not in formats(), reason="Iceberg has no runtime for this Spark"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """The application, run to its end."""
    return events_of("kept_up.py", tmp_path_factory.mktemp("kept_up"), "iceberg")


@pytest.fixture(scope="module")
def taken(told: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store that has taken its events."""
    engine = make_engine(f"sqlite:///{tmp_path_factory.mktemp('taken')}/strandline.db")
    migrate(engine)
    store(engine, [json.dumps(event).encode() for event in told])
    yield engine
    engine.dispose()


def test_a_compaction_is_no_lineage(told: list[Event]) -> None:
    links = [
        one["facets"]["symlinks"]["identifiers"] for event in told for one in (*event["inputs"], *event["outputs"])
    ]

    assert {link["name"] for one in links for link in one} == {"bank.orders", "bank.copied", "bank.compared"}


def test_a_snapshot_is_made_from_every_snapshot_that_its_statement_read(taken: Engine, told: list[Event]) -> None:
    written = [one["outputs"][0] for one in told if one["eventType"] == "COMPLETE" and one["outputs"]]
    ids = [
        one["outputFacets"]["strandline_snapshot"]["snapshotId"]
        for one in written
        if "strandline_snapshot" in one["outputFacets"]
    ]
    with taken.connect() as connection:
        found = {}
        for table in ("bank.copied", "bank.compared"):
            node = node_called(connection, table)
            (made,) = snapshots_of(connection, node, 100, None).rows
            answer = snapshot_lineage_of(connection, node, made.snapshot_id, now(), Direction.UPSTREAM, 1)
            found[table] = {one["snapshotId"] for one in answer["nodes"] if one["distance"]}

    (last,) = found["bank.copied"] - {ids[1]}  # the compaction's own, which has the rows of the second INSERT
    assert last not in ids
    assert found["bank.compared"] == {ids[0], ids[1], last}
