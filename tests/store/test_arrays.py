"""Packed arrays are read by PostgreSQL: every type, its extremes, and NULL."""

import struct
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.store.sql.pg_arrays import TOGETHER, pack

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("BIGINT", [0, -1, 2**63 - 1, -(2**63)]),
        ("BIGINT", [*range(-TOGETHER - 1, TOGETHER)]),
        ("SMALLINT", [*range(2 * TOGETHER)]),
        ("INTEGER", [0, -1, 2**31 - 1]),
        ("SMALLINT", [7, -(2**15)]),
        ("DOUBLE PRECISION", [0.0, -1.5, 1e300]),
        ("TEXT", ["", "plain", 'a "quoted", {braced} \\ text', "übergröße \U0001f600"]),
        ("BYTEA", [b"", b"\x00\xff", b"NULL"]),
    ],
)
def test_packed_arrays_survive_a_round_trip(
    postgres_engine: Engine, type_: str, values: list[Any]
) -> None:
    assert read(postgres_engine, type_, values) == values
    assert read(postgres_engine, type_, [None, *values, None]) == [None, *values, None]
    assert read(postgres_engine, type_, [None]) == [None]


def test_number_out_of_range_is_rejected_before_sending() -> None:
    with pytest.raises(struct.error):
        pack("SMALLINT", [2**15])


def read(engine: Engine, type_: str, values: list[Any]) -> list[Any]:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            f"SELECT * FROM unnest(%b::{type_}[])", (pack(type_, values),)
        )
        return [bytes(row[0]) if isinstance(row[0], memoryview) else row[0] for row in rows]
