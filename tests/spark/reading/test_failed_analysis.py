"""A statement that cannot be analysed fails as usual and is logged once."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException

from strandline_spark import consistent_sql
from strandline_spark.consistency.collector import ConsistencyError
from strandline_spark.consistency.reading.plain import plain_sql

pytestmark = pytest.mark.spark
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
BROKEN = [
    "SELECT nothing FROM {credits}",
    "SELECT * FROM {credits}_not_there",
    "SELECT * FROM (SELECT 1 AS one) AS t JOIN {credits} ON t.two = account",
    "INSERT INTO {credits} SELECT nothing FROM {credits}",
    "SELECT FROM WHERE",
]


class Records(logging.Handler):
    """PySpark's log of failed statements."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the first line."""
        self.messages.append(record.getMessage().partition("\n")[0])


def first_line(error: Exception) -> str:
    """An error's message without the plan, which numbers its columns anew each time."""
    return str(error).partition("\n")[0]


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The first lines of what PySpark logs."""
    pytest.importorskip("pyspark.logger")
    from pyspark.logger import PySparkLogger

    records = Records()
    for name in LOGGERS:
        PySparkLogger.getLogger(name).addHandler(records)
    yield records.messages
    for name in LOGGERS:
        PySparkLogger.getLogger(name).removeHandler(records)


@pytest.mark.parametrize("statement", BROKEN)
def test_a_failed_analysis_is_logged_as_often_as_without_the_conf(
    strong_session: Any, statement: str, logged: list[str]
) -> None:
    sql = statement.format(credits=strong_session.name("credits"))
    with pytest.raises(PySparkException) as strong:
        strong_session.spark.sql(sql)
    seen = list(logged)
    logged.clear()
    with pytest.raises(PySparkException) as plain:
        plain_sql(strong_session.spark, sql)

    assert first_line(strong.value) == first_line(plain.value)
    assert seen == logged


@pytest.mark.parametrize("statement", BROKEN)
def test_a_consistent_read_that_fails_is_logged_once_at_most(
    known_bank: Any, statement: str, logged: list[str]
) -> None:
    with pytest.raises((PySparkException, ConsistencyError)):
        consistent_sql(known_bank.spark, statement.format(credits=known_bank.name("credits")))

    assert len(logged) <= 1
