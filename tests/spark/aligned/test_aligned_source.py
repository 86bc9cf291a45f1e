"""`strandline_aligned`: each micro-batch ends at one barrier of all tables, on real Spark and Iceberg."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from deploy import jars
from fixtures.emitter.drivers import SparkProgram, emitting
from fixtures.spark_lake import settings as lake_settings
from fixtures.spark_lake.truth import of_iceberg
from fixtures.versions_server.server import running
from strandline.core.versions.strong_weak import strong
from strandline.store.sql.engine import make_engine
from strandline_spark import aligned_source
from strandline_spark.consistency.table_history import TableAtError
from strandline_spark.sources.aligned_source import AlignedReader, options_of
from strandline_spark.sources.lake_catalogs import catalogs_in

pytestmark = pytest.mark.spark


class Bank:
    """Two tables whose barriers are compared with what the stream gives."""

    def __init__(self, lake: Any) -> None:
        self.lake = lake
        self.tables = [lake.table(name) for name in ("credits", "debits")]
        self.out = lake.name("out")
        self.commits = {name: defaultdict[int, list[tuple[int, int]]](list) for name in self.tables}

    def commit(self, name: str, barrier: int, *rows: tuple[int, int], **more: Any) -> str:
        self.commits[self.lake.name(name)][barrier] += rows
        made: str = self.lake.commit(name, barrier, *rows, **more)
        return made

    def stream(self, **options: str) -> Any:
        reader = aligned_source(self.lake.spark).option("tables", ", ".join(self.tables))
        return reader.options(**options).load()

    def reader(self, **options: str) -> AlignedReader:
        """Return the reader that Spark asks for offsets, in this process."""
        keys = ("", ".type", ".uri", ".warehouse")
        conf = {
            f"spark.sql.catalog.lake{key}": self.lake.spark.conf.get(f"spark.sql.catalog.lake{key}")
            for key in keys
        }
        return AlignedReader(
            options_of({"tables": ",".join(self.tables), **options}, catalogs_in(conf)),
            StructType(),
        )

    def run(self, **options: str) -> None:
        """The stream into a table, until nothing is new; the checkpoint stays."""
        writer = self.stream(**options).writeStream.trigger(processingTime="100 milliseconds")
        query = writer.option("checkpointLocation", str(self.lake.folder / "ck")).toTable(self.out)
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def run_until_it_fails(self, **options: str) -> None:
        """The stream, for as long as it runs by itself."""
        writer = self.stream(**options).writeStream.trigger(processingTime="100 milliseconds")
        query = writer.option("checkpointLocation", str(self.lake.folder / "ck")).toTable(self.out)
        try:
            query.awaitTermination(600)
        finally:
            query.stop()

    def taken(self) -> list[dict[tuple[str, int], list[tuple[int, int]]]]:
        """Return the rows of each micro-batch that had any, by table and barrier."""
        found = []
        before: str | None = None
        for point in self.lake.points("out"):
            rows = self.lake.history("out").between(before, point.snapshot_id) if before else None
            rows = self.lake.history("out").at(point.snapshot_id) if rows is None else rows
            batch = defaultdict[tuple[str, int], list[tuple[int, int]]](list)
            for row in rows.collect():
                batch[row.strandline_table, row.strandline_barrier].append(
                    (row.account, row.amount)
                )
            if batch:
                found.append({key: sorted(batch[key]) for key in sorted(batch)})
            before = point.snapshot_id
        return found

    def changes(
        self, barrier: int, *with_those_of: int
    ) -> dict[tuple[str, int], list[tuple[int, int]]]:
        """Return the rows of a barrier, and of those that were given up before it."""
        rows = {
            name: sorted(
                row for one in (*with_those_of, barrier) for row in self.commits[name][one]
            )
            for name in self.tables
        }
        return {(name, barrier): found for name, found in rows.items() if found}


@pytest.fixture
def both(bank: Any) -> Bank:
    """The two tables, empty."""
    return Bank(bank)


def test_each_micro_batch_ends_at_one_barrier(both: Bank) -> None:
    for barrier in (1, 2, 3):
        both.commit("credits", barrier, (barrier, 10), (barrier, 11))
        both.commit("debits", barrier, (barrier, -10))
    both.commit("credits", 4, (4, 40))
    both.run()
    assert both.taken() == [both.changes(1), both.changes(2), both.changes(3)]

    both.commit("debits", 4, (4, -40))
    both.commit("credits", 5, (5, 50))
    both.commit("debits", 5, (5, -50))
    both.run()  # from its checkpoint folder, by a new reader
    assert both.taken() == [both.changes(barrier) for barrier in (1, 2, 3, 4, 5)]


@pytest.mark.slow
def test_barrier_skipped_by_a_table_is_skipped(both: Bank) -> None:
    both.commit("credits", 1, (1, 1))
    both.commit("credits", 2, (2, 2))
    both.commit("debits", 2, (2, -2))

    both.run()

    assert both.taken() == [both.changes(2, 1)]


@pytest.mark.slow
def test_stream_respects_its_start_and_batch_limits(both: Bank) -> None:
    made = {}
    for barrier in (1, 2, 3):
        made[barrier] = [both.commit(name, barrier, (barrier, 1)) for name in ("credits", "debits")]

    def offset(barrier: int) -> dict[str, Any]:
        return {"barrier": barrier, "snapshots": dict(zip(both.tables, made[barrier], strict=True))}

    assert both.reader().initialOffset() == {"barrier": 0, "snapshots": {}}
    assert both.reader(start="latest").initialOffset() == offset(3)
    assert both.reader(maxBehind="2").latestOffset() == offset(3)
    reader = both.reader()
    assert [reader.latestOffset() for _ in range(4)] == [offset(1), offset(2), offset(3), offset(3)]
    again = both.reader()
    assert (
        again.partitions(offset(2), offset(2)) == []
    )  # so Spark says where a stream that starts again is
    assert again.latestOffset() == offset(3)
    assert both.reader().latestOffset(offset(1)) == offset(
        2
    )  # where who asks says where the stream is


@pytest.mark.slow
def test_state_rows_show_each_barrier(both: Bank) -> None:
    both.commit("credits", 1, (1, 1))
    both.commit("debits", 1, (1, -1))
    both.lake.spark.sql(f"DELETE FROM {both.tables[0]} WHERE account = 1")
    both.commit("credits", 2, (2, 2))
    both.commit("debits", 2, (2, -2))
    both.run(rows="state")

    credits, debits = both.tables
    assert both.taken() == [
        {(credits, 1): [(1, 1)], (debits, 1): [(1, -1)]},
        {(credits, 2): [(2, 2)], (debits, 2): [(1, -1), (2, -2)]},
    ]


@pytest.mark.slow
def test_rolled_back_table_ends_the_stream(both: Bank) -> None:
    before = both.commit("credits", 1, (1, 1))
    both.commit("debits", 1, (1, -1))
    both.commit("credits", 2, (2, 2))
    both.commit("debits", 2, (2, -2))
    at = both.reader(start="latest").initialOffset()
    catalog, _, table = both.tables[0].partition(".")
    both.lake.spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{table}', {before})")

    assert fault_of(both.reader(), at) == (
        f"{both.tables[0]}: was rolled back behind snapshot {at['snapshots'][both.tables[0]]} (barrier 2), which this stream "
        "has read: begin anew with an empty checkpoint folder"
    )


@pytest.mark.slow
def test_barriers_that_cannot_be_compared_are_an_error(both: Bank) -> None:
    both.lake.table("raw")
    both.lake.commit("raw", None, (7, 7))
    both.commit("credits", 1, (1, 1), group="bank")
    both.lake.stream("raw", "debits")
    assert fault_of(both.reader()) == (
        f"{both.tables[1]}: the snapshots state no barrier (strandline.barrier), and the number of a micro-batch means nothing "
        "beside another table's barriers: aligned_stream asks the collector for them"
    )

    both.commit("debits", 1, (1, -1), group="shop")
    assert fault_of(both.reader()) == (
        f"barriers of two groups are never compared ({both.tables[0]}: bank, {both.tables[1]}: shop)"
    )


def fault_of(reader: AlignedReader, *start: Any) -> str:
    with pytest.raises(TableAtError) as error:
        reader.latestOffset(*start)
    return str(error.value)


@pytest.mark.slow
def test_columns_missing_from_one_table_are_null(both: Bank) -> None:
    both.lake.spark.sql(f"ALTER TABLE {both.tables[1]} ADD COLUMN reason STRING")
    both.commit("credits", 1, (1, 1))
    both.lake.spark.sql(f"INSERT INTO {both.tables[1]} VALUES (0, 0, 'opened')")
    both.lake.commit("debits", 1, (1, -1))
    both.run()

    rows = (
        both.lake.spark.table(both.out)
        .orderBy("amount")
        .select("amount", "reason", "strandline_barrier")
        .collect()
    )
    assert [tuple(row) for row in rows] == [(-1, None, 1), (0, "opened", 1), (1, None, 1)]


def test_column_of_two_types_is_rejected(both: Bank) -> None:
    both.lake.spark.sql(f"ALTER TABLE {both.tables[0]} ADD COLUMN reason STRING")
    both.lake.spark.sql(f"ALTER TABLE {both.tables[1]} ADD COLUMN reason INT")
    with pytest.raises(PySparkException) as error:
        both.stream()

    assert f"reason: StringType() in {both.tables[0]} and IntegerType() in {both.tables[1]}" in str(
        error.value
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tables": ""}, "which tables? Give the option tables"),
        ({"tables": "lake.a.b,lake.a.b"}, "tables: one of lake.a.b, lake.a.b stands there twice"),
        ({"tables": "a", "rows": "all"}, "rows: 'all' is neither 'changes' nor 'state'"),
        ({"tables": "a", "start": "now"}, "start: 'now' is neither 'earliest' nor 'latest'"),
        ({"tables": "a", "maxBehind": "0"}, "maxBehind: '0' is no number above 0"),
        ({"tables": "a", "timeout": "soon"}, "timeout: 'soon' is no number of seconds above 0"),
        ({"tables": "a", "timeout": "0"}, "timeout: '0' is no number of seconds above 0"),
        ({"tables": "a", "timeout": "nan"}, "timeout: 'nan' is no number of seconds above 0"),
    ],
)
def test_invalid_option_is_rejected(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        options_of(options, {})


def test_unavailable_table_is_rejected(both: Bank) -> None:
    for tables, reason in (
        ("b", "tables: 'b' is not catalog.database.table"),
        ("lake.no.where", "lake.no.where: catalog lake cannot load the table: "),
    ):
        with pytest.raises(PySparkException) as error:
            both.stream(tables=tables)
        assert reason in str(error.value)


@pytest.mark.slow
def test_query_waiting_for_a_table_without_barriers_fails_with_its_name(both: Bank) -> None:
    both.commit("credits", 1, (1, 1))

    with pytest.raises(PySparkException) as error:
        both.run_until_it_fails(timeout="1")

    assert f"none of the snapshots of {both.tables[1]} states a barrier" in str(error.value)
    assert "(option timeout: 1 s)" in str(error.value)


@pytest.mark.slow
def test_batch_read_is_rejected(both: Bank) -> None:
    aligned_source(both.lake.spark)
    with pytest.raises(PySparkException) as error:
        both.lake.spark.read.format("strandline_aligned").option(
            "tables", both.tables[0]
        ).load().collect()

    assert "read_consistent(spark, tables)" in str(error.value)


PIPELINE = """
import time
from pyspark.sql import SparkSession
from strandline_spark import aligned_source, aligned_stream

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE lake.p")
spark.sql("CREATE TABLE lake.p.raw (v bigint) USING iceberg")
spark.sql("CREATE TABLE lake.p.joined (v bigint, strandline_table string, strandline_barrier bigint) USING iceberg")
ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).option("numPartitions", 1).load()
raw = ticks.selectExpr("value AS v").writeStream.queryName("raw").option("checkpointLocation", "ck/raw")
raw = raw.trigger(processingTime="1 second").toTable("lake.p.raw")
while raw.lastProgress is None or raw.lastProgress["batchId"] < 3:
    time.sleep(0.05)
raw.stop()


def doubled(inputs, barrier):
    return inputs["raw"].selectExpr("v * 2 AS v")


def minus(inputs, barrier):
    return inputs["raw"].selectExpr("-v AS v")


for name, made in (("doubled", doubled), ("minus", minus)):
    query = aligned_stream(
        spark, ["lake.p.raw"], f"lake.p.{name}", made, group="bank", changes=["raw"], mode="append", checkpoint=f"ck/{name}",
        available_now=True, max_behind=None,
    )
    query.awaitTermination()
for again in range(2):
    rows = aligned_source(spark).option("tables", "lake.p.doubled,lake.p.minus").load()
    query = rows.writeStream.queryName("joined").option("checkpointLocation", "ck/joined").trigger(processingTime="1 second")
    query = query.toTable("lake.p.joined")
    query.processAllAvailable()
    query.stop()
"""


@pytest.mark.slow
def test_reads_are_reported_and_the_output_carries_the_barriers(
    tmp_path: Path, sqlite_url: str
) -> None:
    settings = emitting(tmp_path) | lake_settings(tmp_path, ["iceberg"])
    driver = SparkProgram(
        tmp_path,
        PIPELINE,
        {
            **settings,
            "spark.strandline.group": "bank",
            "spark.jars": jars.comma_list(["iceberg-4.1"]),
        },
    )
    ran = driver.run()
    assert ran.code == 0, ran.err[-2000:]
    truth = of_iceberg(tmp_path, "p")
    with running(make_engine(sqlite_url)) as server:
        server.post(*driver.events())
        with server.follower.model() as model:
            done = {table[1].rpartition("/")[2]: history for table, history in model.done.items()}
            answer = strong(model, list(model.done))

    assert done.keys() == {"raw", "doubled", "minus", "joined"}
    assert {one.barrier for one in answer} == {4}
    assert len(done["joined"].of) > 1
    for barrier, one in done["joined"].of.items():
        values = sorted(row["v"] for row in truth.rows("joined", one.snapshot))
        assert values == sorted(value for v in range(2 * barrier) for value in (2 * v, -v))
