"""Attribution of Paimon snapshots: exact only if no other statement can have made them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from fixtures.spark_lake import needs
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.formats.done import ENDED
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.paimon.datasets import FORMAT
from strandline_spark.jvm.client import known

pytestmark = pytest.mark.spark
paimon = needs("paimon")


@pytest.fixture
def reader(lake: Any) -> Iterator[PlanReader]:
    """Of an application that has the empty table `paimon.whose.t`."""
    lake.sql("CREATE DATABASE IF NOT EXISTS paimon.whose")
    lake.sql("CREATE TABLE paimon.whose.t (k bigint, v string) USING paimon")
    yield PlanReader(lake)
    lake.sql("DROP TABLE paimon.whose.t")


def ran(spark: Any, statement: str = "INSERT INTO paimon.whose.t VALUES (1, 'a')") -> Any:
    """The execution of a statement that has run, with the time of its end."""
    execution = spark.sql(statement)._jdf.queryExecution()
    return ended(execution)


def ended(execution: Any) -> Any:
    return known(execution, **{ENDED: time.time() * 1000})


def told(reader: PlanReader, execution: Any) -> str:
    """The snapshot that a statement is told of; with a question mark, if it is only observed."""
    (one,) = reader.at_end(execution).outputs[0].dataset.snapshots
    return one.snapshot_id + ("?" if one.observed else "")


@paimon
def test_sequential_statements_have_exact_snapshots_even_if_read_late(
    lake: Any, reader: PlanReader
) -> None:
    first, second = ran(lake), ran(lake)

    assert [told(reader, first), told(reader, second)] == ["1", "2"]


@paimon
def test_concurrent_write_makes_a_snapshot_observed(lake: Any, reader: PlanReader) -> None:
    first, second = ran(lake), ran(lake)
    for execution in (first, second):
        reader.at_start(execution)

    assert [told(reader, first), told(reader, second)] == ["1?", "2"]


@paimon
def test_snapshot_is_exact_for_one_statement_only(lake: Any, reader: PlanReader) -> None:
    nothing = lake.sql(
        "INSERT INTO paimon.whose.t SELECT 1L, 'a' WHERE false"
    )._jdf.queryExecution()
    something = ran(lake)
    ended(nothing)

    assert [told(reader, something), told(reader, nothing)] == ["1", "1?"]


@paimon
def test_statement_without_a_known_end_has_an_observed_snapshot(
    lake: Any, reader: PlanReader
) -> None:
    execution = lake.sql("INSERT INTO paimon.whose.t VALUES (1, 'a')")._jdf.queryExecution()

    assert told(reader, execution) == "1?"


@paimon
def test_a_read_after_a_compaction_has_the_snapshot_before(lake: Any, reader: PlanReader) -> None:
    keyed = "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')"
    lake.sql(f"CREATE TABLE paimon.whose.compacted (k bigint, v string) USING paimon {keyed}")
    lake.sql("INSERT INTO paimon.whose.compacted VALUES (1, 'a')")
    lake.sql("INSERT INTO paimon.whose.compacted VALUES (1, 'b')")
    lake.sql("CALL paimon.sys.compact(table => 'whose.compacted')")
    query = lake.table("paimon.whose.compacted")
    query.collect()

    (read,) = reader.at_end(query._jdf.queryExecution()).inputs

    lake.sql("DROP TABLE paimon.whose.compacted")
    (snapshot,) = read.snapshots
    assert (snapshot.snapshot_id, snapshot.operation) == ("3", "compact")
    assert [(one.snapshot_id, one.operation) for one in snapshot.same_rows_as] == [("2", "append")]


def range_of(start: str | None, end: str) -> tuple[str | None, str]:
    """Return the range that a micro-batch read: after which snapshot, up to which."""
    read = FORMAT.streamed(Mention(()), start, end, jvm=None)  # type: ignore[arg-type]  # nothing is asked of it
    assert read is not None
    return read.from_snapshot_id, read.snapshot_id


def test_query_reads_a_whole_snapshot_first_and_then_increments() -> None:
    before_all = '{"snapshotId":2,"index":-1,"scanSnapshot":true}'
    after_it = '{"snapshotId":2,"index":0,"scanSnapshot":true}'
    later = '{"snapshotId":5,"index":0,"scanSnapshot":false}'

    assert range_of(before_all, after_it) == (None, "2")
    assert range_of(before_all, later) == (None, "5")
    assert range_of(None, later) == (None, "5")
    assert range_of(after_it, later) == ("2", "5")


def test_query_may_begin_with_the_increment_of_a_snapshot() -> None:
    before = '{"snapshotId":4,"index":-1,"scanSnapshot":false}'

    assert range_of(before, '{"snapshotId":5,"index":0,"scanSnapshot":false}') == ("3", "5")
