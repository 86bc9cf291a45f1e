"""Rows that went through an RDD come from the tables and files that the RDD was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import needs
from fixtures.spark_lake.analysis import input_names
from strandline_spark.extraction.reader import PlanReader

pytestmark = pytest.mark.spark


@needs("iceberg")
def test_iceberg_table_below_an_rdd_is_an_opaque_input(bank: Any) -> None:
    table = bank.table("credits")
    bank.commit("credits", 1, (1, 10))
    frame = bank.spark.createDataFrame(bank.spark.table(table).rdd.map(tuple), "a INT, b INT")
    statement = PlanReader(bank.spark).at_start(frame._jdf.queryExecution())

    assert [dataset.table for dataset in statement.inputs] == [table]
    assert statement.opaque == ("LogicalRDD",)


def test_folder_and_text_below_an_rdd_are_opaque_inputs(lake: Any, tmp_path: Path) -> None:
    lake.range(3).write.parquet(f"{tmp_path}/numbers")
    (tmp_path / "words.txt").write_text("1\n2\n")
    rows = lake.read.parquet(f"{tmp_path}/numbers").rdd.map(lambda row: (row.id,))
    words = lake.sparkContext.textFile(f"{tmp_path}/words.txt").map(lambda word: (int(word),))
    frame = lake.createDataFrame(rows.union(words), "id LONG")
    statement = PlanReader(lake).at_start(frame._jdf.queryExecution())

    assert sorted(input_names(statement)) == ["numbers", "words.txt"]
    assert statement.opaque == ("LogicalRDD",)


def test_rows_of_the_driver_have_no_source(lake: Any) -> None:
    frame = lake.createDataFrame(lake.sparkContext.parallelize([(1,)]), "id LONG")
    statement = PlanReader(lake).at_start(frame._jdf.queryExecution())

    assert statement.inputs == ()
