"""Replacement of a whole table by a commit, from its plan and the commit itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fixtures.spark_lake import formats
from fixtures.spark_lake.analysis import iceberg_queue, reports_in
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Snapshot

pytestmark = pytest.mark.spark
PLACES = {"iceberg": "lake.replaced", "delta": "replaced"}
DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


class World:
    """Tables of one format, and a reader of what is done to them."""

    def __init__(self, lake: Any, kind: str) -> None:
        self.lake, self.kind, self.place = lake, kind, PLACES[kind]
        self.queue = iceberg_queue(lake)

    def done(self, statement: str) -> tuple[bool | None, int | None]:
        """Run a statement; return whether it replaced its table, and the number of its rows."""
        snapshot = self.made(statement)
        return snapshot.replaces_table, snapshot.number_of_rows

    def made(self, statement: str) -> Snapshot:
        """Run a statement and return its snapshot."""
        reports_in(self.queue)
        execution = self.lake.sql(statement.replace("@", self.place))._jdf.queryExecution()
        return (
            PlanReader(self.lake)
            .at_end(execution, reports_in(self.queue))
            .outputs[0]
            .dataset.snapshots[0]
        )

    def dynamic(self, statement: str) -> tuple[bool | None, int | None]:
        """Run it where an overwrite replaces the partitions only that have new rows."""
        self.lake.conf.set(DYNAMIC, "dynamic")
        try:
            return self.done(statement)
        finally:
            self.lake.conf.unset(DYNAMIC)


@pytest.fixture(params=sorted(PLACES))
def world(request: pytest.FixtureRequest, lake: Any) -> Iterator[World]:
    if request.param not in formats():
        pytest.skip("no runtime for this Spark")
    world = World(lake, request.param)
    lake.sql(f"CREATE NAMESPACE {world.place}")
    yield world
    for row in lake.sql(f"SHOW TABLES IN {world.place}").collect():
        if not row["isTemporary"]:  # temporary views of other tests are listed, too
            lake.sql(f"DROP TABLE {world.place}.{row['tableName']}")
    lake.sql(f"DROP NAMESPACE {world.place}")


def test_a_table_that_is_created_or_replaced_is_replaced_as_a_whole(world: World) -> None:
    created = f"TABLE @.t USING {world.kind} AS SELECT"

    assert world.done(f"CREATE {created} 1 AS id") == (True, 1)
    assert world.done(f"CREATE OR REPLACE {created} id FROM range(2)") == (True, 2)
    assert world.done("INSERT INTO @.t VALUES (5)") == (False, 1)
    assert world.done("INSERT OVERWRITE @.t SELECT id FROM range(3)") == (True, 3)


def test_an_emptied_table_has_no_rows_and_is_replaced(world: World) -> None:
    world.done(f"CREATE TABLE @.t USING {world.kind} AS SELECT 1 AS id")

    assert world.done("INSERT OVERWRITE @.t SELECT id FROM @.t WHERE id > 7") == (True, 0)
    world.done("INSERT INTO @.t VALUES (5)")
    assert world.done("TRUNCATE TABLE @.t") == (True, 0)


def test_a_commit_says_whether_its_table_had_no_rows(world: World) -> None:
    """Also where a property was set since, which makes a version of Delta."""
    insert = "INSERT INTO @.t VALUES (5)"
    merge = "MERGE INTO @.t USING @.s ON @.t.id = @.s.id WHEN NOT MATCHED THEN INSERT *"
    world.lake.sql(f"CREATE TABLE {world.place}.t (id INT) USING {world.kind}")
    world.lake.sql(f"ALTER TABLE {world.place}.t SET TBLPROPERTIES ('a' = 'b')")
    first, second = world.made(insert), world.made(insert)
    world.lake.sql(f"TRUNCATE TABLE {world.place}.t")
    emptied = world.made(insert)
    none = f"SELECT * FROM {world.place}.t WHERE false"
    world.lake.sql(f"CREATE OR REPLACE TABLE {world.place}.t USING {world.kind} AS {none}")
    world.lake.sql(f"CREATE TABLE {world.place}.s USING {world.kind} AS SELECT 1 AS id")
    merged = world.made(merge)

    assert [one.was_empty for one in (first, second, emptied)] == [True, False, True]
    assert merged.was_empty
    assert not world.made(insert.replace("@.t", "@.s")).was_empty
    assert not world.made("UPDATE @.s SET id = 3 WHERE true").was_empty


def test_delete_update_and_merge_never_replace_a_table(world: World) -> None:
    world.done(f"CREATE TABLE @.t USING {world.kind} AS SELECT id FROM range(3)")

    assert world.done("UPDATE @.t SET id = id + 1 WHERE true")[0] is False
    merge = "MERGE INTO @.t USING @.t AS s ON @.t.id = s.id WHEN MATCHED THEN UPDATE SET id = 9"
    assert world.done(merge)[0] is False
    assert world.done("DELETE FROM @.t")[0] is False


def test_an_overwrite_in_part_never_replaces_a_table(world: World) -> None:
    columns = f"TABLE @.t (id INT, p STRING) USING {world.kind} PARTITIONED BY (p)"
    world.lake.sql(f"CREATE {columns}".replace("@", world.place))

    assert world.dynamic("INSERT OVERWRITE @.t SELECT 1, 'a'") == (False, 1)
    assert world.dynamic("INSERT OVERWRITE @.t SELECT 2, 'a'") == (False, 1)
    assert world.done("INSERT OVERWRITE @.t PARTITION (p = 'a') SELECT 3") == (False, 1)
    if world.kind == "delta":
        assert world.done("INSERT INTO @.t REPLACE WHERE p = 'a' SELECT 4, 'a'") == (False, 1)
    assert world.done("INSERT OVERWRITE @.t SELECT 5, 'b'") == (True, 1)


def test_a_dynamic_overwrite_of_an_iceberg_table_without_partitions_replaces_it(
    world: World,
) -> None:
    world.done(f"CREATE TABLE @.t USING {world.kind} AS SELECT 1 AS id")

    replaced = world.dynamic("INSERT OVERWRITE @.t SELECT id FROM range(2)")
    assert replaced == (world.kind == "iceberg", 2)
