"""PostgreSQL reads the lists that rows are written with: every type, its extremes, and NULL."""

from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DataError

from strandline.store.sql.db_errors import is_of_records

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("BIGINT", [0, -1, 2**63 - 1, -(2**63)]),
        ("SMALLINT", [7, -(2**15)]),
        ("INTEGER", [0, -1, 2**31 - 1]),
        ("DOUBLE PRECISION", [0.0, -1.5, 1e300]),
        ("TEXT", ["", "plain", 'a "quoted", {braced} \\ text', "übergröße \U0001f600"]),
        ("BYTEA", [b"", b"\x00\xff", b"NULL"]),
    ],
)
def test_lists_survive_a_round_trip(engine: Engine, type_: str, values: list[Any]) -> None:
    assert read(engine, type_, values) == values
    assert read(engine, type_, [None, *values, None]) == [None, *values, None]
    assert read(engine, type_, [None]) == [None]


def test_number_out_of_range_is_an_error_of_the_record(engine: Engine) -> None:
    with pytest.raises(DataError) as refused:
        read(engine, "SMALLINT", [2**15])

    assert is_of_records(refused.value)


@pytest.fixture
def engine(postgres_engine: Engine) -> Engine:
    return postgres_engine


def read(engine: Engine, type_: str, values: list[Any]) -> list[Any]:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(f"SELECT * FROM unnest(%b::{type_}[])", (values,))
        return [bytes(row[0]) if isinstance(row[0], memoryview) else row[0] for row in rows]
