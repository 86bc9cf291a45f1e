"""Rows from a local checkpoint or in foreachBatch keep the lineage of their statement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake.analysis import column_origins, deciding_columns, input_names
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Statement

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders and people."""
    path = tmp_path_factory.mktemp("checkpoints")
    lake.range(3).selectExpr("id", "id * 2 AS amount").write.parquet(f"{path}/orders")
    lake.range(3).selectExpr("id", "'ann' AS name").write.parquet(f"{path}/people")
    return path


def described(statement: Statement) -> tuple[list[str], list[str], list[str], tuple[str, ...]]:
    """Return the inputs, the columns, what decides the rows, and what is opaque."""
    return (
        sorted(input_names(statement)),
        column_origins(statement),
        deciding_columns(statement),
        statement.opaque,
    )


Query = Callable[[Any, Any], Any]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            lambda orders, people: orders.join(people, "id").select("amount"),
            (["orders", "people"], ["amount <- amount IDENTITY"], ["JOIN id", "JOIN id"], ()),
            id="a join that only chooses",
        ),
        pytest.param(
            lambda orders, people: orders.groupBy().count(),
            (["orders"], [], [], ()),
            id="a count of all rows",
        ),
        pytest.param(
            lambda orders, people: orders.where("amount > 1").selectExpr("1 AS one"),
            (["orders"], [], ["FILTER amount"], ()),
            id="a literal",
        ),
    ],
)
def test_the_inputs_of_a_checkpoint_are_read(
    lake: Any, folder: Path, query: Query, expected: Any
) -> None:
    frame = query(*(lake.read.parquet(f"{folder}/{name}") for name in ("orders", "people")))
    reader = PlanReader(lake)
    reader.at_start(frame._jdf.queryExecution())
    rows = frame.localCheckpoint()

    assert described(reader.at_start(rows._jdf.queryExecution())) == expected
    assert (
        described(reader.at_start(rows.where("1 = 1").localCheckpoint()._jdf.queryExecution()))
        == expected
    )


def test_checkpoint_of_columns_from_mixed_statements_is_opaque(lake: Any, folder: Path) -> None:
    """The column ids are known, but not which statement produced the rows."""
    orders, people = (lake.read.parquet(f"{folder}/{name}") for name in ("orders", "people"))
    reader = PlanReader(lake)
    reader.at_start(orders._jdf.queryExecution())
    rows = orders.join(people, "id").select("amount").localCheckpoint(eager=False)

    assert described(reader.at_start(rows._jdf.queryExecution())) == (
        ["orders"],
        ["amount <- amount IDENTITY"],
        [],
        ("LogicalRDD",),
    )


def test_rows_in_foreach_batch_come_from_their_query(
    lake: Any, folder: Path, tmp_path: Path
) -> None:
    orders = lake.readStream.schema("id long, amount long").parquet(f"{folder}/orders")
    joined = orders.join(lake.read.parquet(f"{folder}/people"), "id").select("amount")
    seen = []

    def keep(rows: Any, batch: int) -> None:
        seen.append(rows._jdf.queryExecution())

    writer = joined.writeStream.foreachBatch(keep).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    query.awaitTermination(240)
    reader = PlanReader(lake)
    reader.at_start(query._jsq.streamingQuery().lastExecution())

    inputs, columns, _, opaque = described(reader.at_start(seen[0]))

    assert (inputs, columns, opaque) == (["orders", "people"], ["amount <- amount IDENTITY"], ())
