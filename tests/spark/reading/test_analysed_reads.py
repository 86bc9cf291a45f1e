"""Analysed reads: tables read at a version, with parameters and on Delta."""

from typing import Any

import pytest

from strandline_spark.consistency.reading.analysed_reads import (
    AnalysedStatement,
    TableRead,
    analyse_statement,
)

pytestmark = pytest.mark.spark


def test_parameters_are_substituted(known_bank: Any) -> None:
    credits, debits = known_bank.name("credits"), known_bank.name("debits")
    named = f"DELETE FROM {credits} WHERE amount = :what AND amount IN (SELECT amount FROM IDENTIFIER(:table))"

    assert analyse_statement(known_bank.spark, named, {"what": 1, "table": debits}).reads == (
        TableRead(debits, at_version=False),
    )
    assert analyse_statement(
        known_bank.spark, f"SELECT * FROM {debits} WHERE amount = ?", [1]
    ).reads == (TableRead(debits, at_version=False),)


def test_delta_tables_are_read_at_the_version_in_the_text(lake: Any) -> None:
    lake.sql("CREATE DATABASE IF NOT EXISTS analysed")
    for table in ("t", "s"):
        lake.sql(f"CREATE OR REPLACE TABLE analysed.{table} (id bigint) USING delta")
    merge = "MERGE INTO analysed.t USING {} AS s ON t.id = s.id WHEN MATCHED THEN DELETE"

    assert analyse_statement(lake, merge.format("analysed.s")).reads == (
        TableRead("spark_catalog.analysed.s", at_version=False),
    )
    assert analyse_statement(
        lake, merge.format("(SELECT * FROM analysed.s VERSION AS OF 0)")
    ).reads == (TableRead("spark_catalog.analysed.s", at_version=True),)
    update = analyse_statement(lake, "UPDATE analysed.t SET id = 1")
    assert update == AnalysedStatement((), frozenset({"spark_catalog.analysed.t"}))
