"""Lists that are answered a page at a time.

A cursor is the sort key of the last row, so every page costs the same. Rows that arrive meanwhile
neither repeat nor hide others, as they would with an offset.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, tuple_

CHUNK = 200  # rows that are read at once for a list that shows only some of them
MOST_CHUNKS = 250

Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of a page, and the cursor of the next one (None: this was the last)."""

    rows: Sequence[Row[*tuple[Any, ...]]]
    next_cursor: str | None

    def of(self, items: Sequence[Any]) -> dict[str, Any]:
        """Return the answer for the items that were made of the page's rows."""
        return {"items": items, "nextCursor": self.next_cursor}


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a list: columns that together are unique, all ascending or all descending."""

    columns: tuple[ColumnElement[Any], ...]
    descending: bool = False

    def page(
        self, connection: Connection, query: Select[Any], limit: int, after: Key | None
    ) -> Page:
        """Return the first `limit` rows after the key."""
        labelled = query.add_columns(
            *(column.label(f"key_{place}") for place, column in enumerate(self.columns))
        )
        if after is not None:
            labelled = labelled.where(self._after(after))
        ordered = labelled.order_by(
            *(column.desc() if self.descending else column for column in self.columns)
        )
        rows = connection.execute(ordered.limit(limit + 1)).all()
        return Page(rows[:limit], self._cursor(rows[limit - 1]) if len(rows) > limit else None)

    def filtered(
        self,
        connection: Connection,
        query: Select[Any],
        limit: int,
        after: Key | None,
        items: Callable[[Sequence[Row[*tuple[Any, ...]]]], Iterable[Any]],
        *,
        few: bool = True,
    ) -> dict[str, Any]:
        """Return a page of the items that `items` makes of rows, without those that are None.

        few: most items are None. The page may then be short though it is not the last, because one
        page reads a limited number of rows.
        """
        shown: list[Any] = []
        last: list[Any] = []
        for _ in range(MOST_CHUNKS):
            page = self.page(connection, query, max(limit, CHUNK) if few else limit, after)
            for row, item in zip(page.rows, items(page.rows), strict=True):
                if item is not None and len(shown) == limit:
                    return {"items": shown, "nextCursor": encode_cursor(last)}
                if item is not None:
                    shown.append(item)
                last = self._key(row)
            if page.next_cursor is None or len(shown) == limit:
                break
            after = tuple(last)
        return {"items": shown, "nextCursor": page.next_cursor}

    def _after(self, key: Key) -> ColumnElement[bool]:
        here, there = tuple_(*self.columns), tuple_(*key)
        return here < there if self.descending else here > there

    def _cursor(self, row: Row[*tuple[Any, ...]]) -> str:
        return encode_cursor(self._key(row))

    def _key(self, row: Row[*tuple[Any, ...]]) -> list[Any]:
        return [row._mapping[f"key_{place}"] for place in range(len(self.columns))]


def encode_cursor(key: Sequence[str | int]) -> str:
    """Return a key as text that a URL can hold."""
    return base64.urlsafe_b64encode(orjson.dumps(key)).rstrip(b"=").decode()


def decode_cursor(text: str, types: Sequence[type]) -> Key:
    """Return the key in a cursor; raise ValueError if it is not for keys of these types.

    >>> decode_cursor(encode_cursor(["bank", 7]), (str, int))
    ('bank', 7)
    """
    try:
        key = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        key = None
    if (
        not isinstance(key, list)
        or [type(part) for part in key] != list(types)
        or not all(map(_storable, key))
    ):
        raise ValueError("is not a cursor of this list")
    return tuple(key)


def _storable(part: str | int) -> bool:
    return "\0" not in part if isinstance(part, str) else -(2**63) <= part < 2**63
