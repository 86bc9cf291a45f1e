"""Stock Spark recordings with unusual reads and writes: parts, branches, increments."""

import json

import pytest
from sqlalchemy import Connection, func, select

from store.recordings.conftest import Take
from strandline.core.openlineage.facets import DATASET
from strandline.core.walk import Direction
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.questions.past_schemas import column_changes
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.compression import expand
from strandline.store.sql.facet_rows import facet_rows, one_of
from worlds.stock_recorded import ORDERS, Recorded, called, listed, now

OWN = ["id", "amount", "region"]


@pytest.fixture(params=ORDERS)
def taken(request: pytest.FixtureRequest, name: str, take_recording: Take) -> Recorded:
    """Give a store that has taken the recording of a test, in each order."""
    return take_recording(name, request.param)


def columns_of(connection: Connection, table: str) -> list[str]:
    """The columns that a table is said to have."""
    group = select(datasets.c.id).where(
        datasets.c.canonical_id == node_called(connection, table).id
    )
    held = facet_rows(one_of(connection.scalars(group).all()), (DATASET,), one_of(["schema"]))
    newest = connection.execute(
        select(held.c.content).order_by(held.c.at.desc(), held.c.hash.desc())
    ).first()
    assert newest is not None
    return [one["name"] for one in json.loads(expand(newest.content))["fields"]]


@pytest.mark.parametrize(
    ("name", "table"), [("reading_options", "bank.orders"), ("delta_feed", "shop.fed")]
)
def test_table_keeps_its_columns_when_snapshots_or_changes_are_read(
    taken: Recorded, table: str
) -> None:
    with taken.engine.connect() as connection:
        assert columns_of(connection, table) == OWN

        node = node_called(connection, table)
        since = connection.scalar(
            select(func.min(datasets.c.first_at)).where(datasets.c.canonical_id == node.id)
        )
        assert column_changes(connection, since, now().at, [node.id]) == ([], 0)


@pytest.mark.parametrize("name", ["reading_options"])
def test_parts_of_a_table_are_not_datasets(taken: Recorded) -> None:
    with taken.engine.connect() as connection:
        found = connection.execute(
            select(datasets.c.database_name, datasets.c.table_name).distinct()
        ).all()

    assert sorted(map(tuple, found)) == [
        ("bank", one) for one in ("audit", "changes", "increment", "old", "orders")
    ]


@pytest.mark.parametrize("name", ["reading_options"])
def test_end_snapshot_of_an_increment_is_only_observed(taken: Recorded) -> None:
    """The stock listener names the table's newest snapshot."""
    with taken.engine.connect() as connection:
        node = node_called(connection, "bank.increment")
        (snapshot,) = listed(connection, node)
        answer = snapshot_lineage_of(
            connection, node, snapshot["snapshotId"], now(), Direction.UPSTREAM, 1
        )

    assert [edge["observed"] for edge in answer["edges"]] == [True]


@pytest.mark.parametrize(
    "name", ["failing_stream", "fan_out", "foreach_batch", "killed_stream", "two_queries"]
)
def test_snapshot_names_sources_with_unknown_snapshots_too(taken: Recorded) -> None:
    """The stock listener reports a stream's source without its snapshot."""
    with taken.engine.connect() as connection:
        for table, sources in taken.truth["sources"].items():
            node = node_called(connection, table)
            for snapshot in listed(connection, node):
                view, way = now(), Direction.UPSTREAM
                first, *others = snapshot_lineage_of(
                    connection, node, snapshot["snapshotId"], view, way, 1
                )["nodes"]
                besides = first.get("inputsOfUnknownSnapshots", ())
                told = {called(one) for one in (*others, *besides)} - {table}
                assert told == set(sources), (table, snapshot)
