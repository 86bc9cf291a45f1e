"""Reading the changes of a table reads the table between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import formats, needs
from fixtures.spark_lake.analysis import column_origins, reports_in
from strandline_spark.extraction.datasets_of_plan import parts_of
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.client import Jvm
from strandline_spark.jvm.event_queue import EventQueue
from strandline_spark.jvm.iceberg_snapshot import Commit, Scan
from strandline_spark.model.statement import Dataset

pytestmark = pytest.mark.spark
OWN = ["id", "amount"]


def read_by(spark: Any, data: Any) -> Dataset:
    """The one dataset that a query has read."""
    data.collect()
    (read,) = PlanReader(spark).at_end(data._jdf.queryExecution()).inputs
    assert [one.name for one in read.schema] == OWN
    return read


@pytest.fixture
def fed(lake: Any, tmp_path: Path) -> Iterator[str]:
    """The folder of the Delta table `fed`, which has versions 0 to 3."""
    if "delta" not in formats():
        pytest.skip("Delta has no runtime for this Spark")
    place = f"{tmp_path}/fed"
    lake.sql(
        f"CREATE TABLE fed (id BIGINT, amount BIGINT) USING delta LOCATION '{place}' "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    for number in range(3):
        lake.sql(f"INSERT INTO fed VALUES ({number}, 10)")
    yield place
    lake.sql("DROP TABLE fed")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("2, 2", ("2", "1", False)), ("1", ("3", "0", True)), ("0, 1", ("1", None, False))],
    ids=["one version", "to the newest", "from the beginning"],
)
def test_delta_change_feed_reads_its_table(
    lake: Any, fed: str, asked: str, expected: tuple[str, str | None, bool]
) -> None:
    read = read_by(lake, lake.sql(f"SELECT id, amount FROM table_changes('fed', {asked})"))

    (snapshot,) = read.snapshots
    assert read.name == fed
    assert (snapshot.snapshot_id, snapshot.from_snapshot_id, snapshot.observed) == expected


def test_kind_of_a_change_comes_from_no_column(lake: Any, fed: str) -> None:
    changes = lake.sql("SELECT id, _change_type AS how FROM table_changes('fed', 1)")

    statement = PlanReader(lake).at_start(changes._jdf.queryExecution())
    assert column_origins(statement) == ["id <- id IDENTITY"]


@needs("iceberg")
def test_iceberg_changes_read_their_table(lake: Any, queue: EventQueue) -> None:
    lake.sql("CREATE TABLE lake.db.moved (id BIGINT, amount BIGINT) USING iceberg")
    for number in range(2):
        lake.sql(f"INSERT INTO lake.db.moved VALUES ({number}, 10)")
    rows = lake.sql(
        "SELECT snapshot_id FROM lake.db.moved.snapshots ORDER BY committed_at"
    ).collect()
    first, second = (str(row[0]) for row in rows)

    between = lake.read.option("start-snapshot-id", first).option("end-snapshot-id", second)
    read = read_by(lake, between.table("lake.db.moved.changes"))

    assert read.table == "lake.db.moved"
    assert [(one.snapshot_id, one.from_snapshot_id) for one in read.snapshots] == [(second, first)]

    lake.table("lake.db.moved.changes").collect()
    lake.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    scans = reports_in(queue)
    assert [scan for scan in scans if isinstance(scan, Scan)] == [
        Scan("lake.db.moved", second, first),
        Scan("lake.db.moved", second, first_snapshot_id=first),
    ]
    assert changes_read(lake, "lake.db.moved", scans) == [(second, None, False)] * 2


@needs("iceberg")
def test_iceberg_changes_after_an_expired_snapshot_are_not_all(
    lake: Any, queue: EventQueue
) -> None:
    lake.sql("CREATE TABLE lake.db.expired (id BIGINT, amount BIGINT) USING iceberg")
    for number in range(3):
        lake.sql(f"INSERT INTO lake.db.expired VALUES ({number}, 10)")
    rows = lake.sql(
        "SELECT snapshot_id FROM lake.db.expired.snapshots ORDER BY committed_at"
    ).collect()
    first, second, third = (str(row[0]) for row in rows)
    lake.sql(
        f"CALL lake.system.expire_snapshots(table => 'db.expired', snapshot_ids => array({first}))"
    )
    lake.table("lake.db.expired.changes").collect()
    lake.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    scans = reports_in(queue)

    assert Scan("lake.db.expired", third, first_snapshot_id=second) in scans
    assert changes_read(lake, "lake.db.expired", scans) == [(third, first, False)] * 2


def changes_read(
    spark: Any, table: str, scans: Sequence[Scan | Commit]
) -> list[tuple[str, str | None, bool]]:
    """Return what a query of all changes read: by its own plan, and by the scans that came."""
    newest = next(one for one in reversed(scans) if isinstance(one, Scan))
    until = spark.read.option("end-snapshot-id", newest.snapshot_id)
    changes = until.table(f"{table}.changes")
    (own,) = read_by(spark, changes).snapshots
    jvm = Jvm(spark._jvm, spark._jsparkSession)
    (read,) = parts_of(changes._jdf.queryExecution().analyzed(), jvm).reads
    came = read.format.read(read.mention, newest, jvm)
    assert came is not None
    return [(one.snapshot_id, one.from_snapshot_id, one.observed) for one in (own, came)]
