"""Rows as one array a column, which PostgreSQL unpacks.

The fastest way to write thousands of rows in one statement.

Arrays are packed here, in PostgreSQL's own binary form. psycopg looks at every value twice before
it packs a list, which took a third of a writer's time at the database.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain
from struct import Struct
from typing import Any

from sqlalchemy import Table

SHOWN = 2000  # bytes of an array in a log
NULL = b"\xff\xff\xff\xff"
_HEAD = Struct(
    ">iiIii"
)  # dimensions, whether there are NULLs, type of the elements, length, first index
_LENGTH = Struct(">i")
_OIDS = {
    "BIGINT": 20,
    "SMALLINT": 21,
    "INTEGER": 23,
    "DOUBLE PRECISION": 701,
    "TEXT": 25,
    "BYTEA": 17,
}
_NUMBERS = {
    "BIGINT": (8, "iq"),
    "SMALLINT": (2, "ih"),
    "INTEGER": (4, "ii"),
    "DOUBLE PRECISION": (8, "id"),
}
TOGETHER = 64  # numbers that are packed by one call


class Packed:
    """An array as PostgreSQL receives it."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body

    def __repr__(self) -> str:
        # who reads of a failed statement looks for with what
        return f"Packed({len(self.body)} bytes, {self.body[:SHOWN]!r})"


def unnested(table: Table, columns: Sequence[str]) -> str:
    """The rows of arrays, one a column, as a query."""
    return f"SELECT * FROM unnest({', '.join(f'%b::{type_}[]' for type_ in types_of(table, tuple(columns)))})"


def packed(
    table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> tuple[Packed, ...]:
    """The arrays of such a query."""
    types = types_of(table, tuple(columns))
    return tuple(
        pack(type_, values) for type_, values in zip(types, zip(*rows, strict=True), strict=True)
    )


@cache
def types_of(table: Table, columns: tuple[str, ...]) -> list[str]:
    """PostgreSQL's names of the columns' types."""
    from sqlalchemy.dialects import postgresql  # with SQLite nobody needs it

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return [table.c[name].type.compile(dialect=dialect) for name in columns]


def pack(type_: str, values: Sequence[Any]) -> Packed:
    """An array of values, None among them.

    >>> pack("SMALLINT", [7]).body.hex(" ", -4)
    '00000001 00000000 00000015 00000001 00000001 00000002 0007'
    """
    nulls = None in values
    elements = (
        _numbers(*_NUMBERS[type_], values, nulls)
        if type_ in _NUMBERS
        else _strings(type_, values, nulls)
    )
    return Packed(b"".join((_HEAD.pack(1, nulls, _OIDS[type_], len(values), 1), *elements)))


def _numbers(size: int, form: str, values: Sequence[Any], nulls: bool) -> Iterable[bytes]:
    if nulls:
        one = _packer(form, 1)
        return [NULL if value is None else one(size, value) for value in values]
    with_sizes: list[Any] = [size] * (2 * len(values))
    with_sizes[1::2] = values
    starts = range(0, len(with_sizes), 2 * TOGETHER)
    pieces = [with_sizes[start : start + 2 * TOGETHER] for start in starts]
    return [_packer(form, len(piece) // 2)(*piece) for piece in pieces]


@cache
def _packer(form: str, count: int) -> Callable[..., bytes]:
    """Packs so many numbers, each after its size."""
    return Struct(f">{form * count}").pack


def _strings(type_: str, values: Sequence[Any], nulls: bool) -> Iterable[bytes]:
    if nulls:
        not_null = iter(_strings(type_, [value for value in values if value is not None], False))
        return chain.from_iterable(
            (NULL,) if value is None else (next(not_null), next(not_null)) for value in values
        )
    encoded = [value.encode() for value in values] if type_ == "TEXT" else values
    with_sizes = [b""] * (2 * len(encoded))
    with_sizes[::2] = map(_LENGTH.pack, map(len, encoded))
    with_sizes[1::2] = encoded
    return with_sizes
