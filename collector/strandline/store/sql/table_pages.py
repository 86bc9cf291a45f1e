"""Reading a whole table in pages, in the order of a key."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, tuple_

Item = TypeVar("Item")
PAGE = 500


def pages_of(
    connection: Connection, query: Select[Any], *key: ColumnElement[Any]
) -> Iterator[Sequence[Row[Any]]]:
    """Yield the rows of a query in pages, in the order of a unique key.

    The caller may change or delete the rows of a page before it asks for the next one.
    """
    page = page_after(connection, query, key, None)
    while page:
        yield page
        if len(page) < PAGE:
            return
        page = page_after(connection, query, key, key_of_row(page[-1], key))


def page_after(
    connection: Connection,
    query: Select[Any],
    key: Sequence[ColumnElement[Any]],
    after: tuple[Any, ...] | None,
) -> Sequence[Row[Any]]:
    """Return the page of rows whose key is greater than `after`; without it the first page."""
    if after is not None:
        query = query.where(tuple_(*key) > after if len(key) > 1 else key[0] > after[0])
    return connection.execute(query.order_by(*key).limit(PAGE)).all()


def key_of_row(row: Row[Any], key: Sequence[ColumnElement[Any]]) -> tuple[Any, ...]:
    """Return the values of the key's columns in a row."""
    return tuple(row._mapping[column] for column in key)


def pages(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield a sequence in pages of the same size.

    >>> [len(page) for page in pages(range(1001))]
    [500, 500, 1]
    """
    for start in range(0, len(items), PAGE):
        yield items[start : start + PAGE]
