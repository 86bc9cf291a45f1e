"""Analysed reads: tables read at a version, with parameters and on Delta."""

from typing import Any

import pytest

from strandline_spark.consistency.reading.analysed_reads import TableRead, reads_of

pytestmark = pytest.mark.spark


def test_parameters_are_substituted(known_bank: Any) -> None:
    credits, debits = known_bank.name("credits"), known_bank.name("debits")
    named = f"DELETE FROM {credits} WHERE amount = :what AND amount IN (SELECT amount FROM IDENTIFIER(:table))"

    assert reads_of(known_bank.spark, named, {"what": 1, "table": debits}) == [
        TableRead(debits, at_version=False)
    ]
    assert reads_of(known_bank.spark, f"SELECT * FROM {debits} WHERE amount = ?", [1]) == [
        TableRead(debits, at_version=False)
    ]


def test_delta_tables_are_read_at_the_version_in_the_text(lake: Any) -> None:
    lake.sql("CREATE DATABASE IF NOT EXISTS analysed")
    for table in ("t", "s"):
        lake.sql(f"CREATE OR REPLACE TABLE analysed.{table} (id bigint) USING delta")
    merge = "MERGE INTO analysed.t USING {} AS s ON t.id = s.id WHEN MATCHED THEN DELETE"

    assert reads_of(lake, merge.format("analysed.s")) == [
        TableRead("spark_catalog.analysed.s", at_version=False)
    ]
    assert reads_of(lake, merge.format("(SELECT * FROM analysed.s VERSION AS OF 0)")) == [
        TableRead("spark_catalog.analysed.s", at_version=True)
    ]
    assert reads_of(lake, "UPDATE analysed.t SET id = 1") == []
