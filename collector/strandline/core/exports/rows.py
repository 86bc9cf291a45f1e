"""Lists as comma-separated values (RFC 4180).

One line an item, nested objects as columns such as `latestRun.state`.

A text that a spreadsheet would take for a formula has an apostrophe before it: names are whatever a
producer sends.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

Item = Mapping[str, Any]

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a text begins that a spreadsheet computes


def csv_of(items: Sequence[Item], columns: Sequence[str] = (), *, others: bool = True) -> str:
    r"""Return the items as CSV; `columns` come first, and are there even where no item has them.

    others: true if the other members of items follow.

    >>> csv_of([{"id": "a", "run": {"state": "FAIL"}}, {"id": "b", "run": None}], ["id"])
    'id,run.state\r\na,FAIL\r\nb,\r\n'
    >>> rows = [{"id": "=1", "run": {"state": "FAIL"}}]
    >>> print(csv_of(rows, ["id", "run"], others=False).splitlines()[1])
    '=1,"{""state"":""FAIL""}"
    """
    rows = [dict(_cells(item, frozenset() if others else frozenset(columns))) for item in items]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    head = _head(rows, columns) if others else list(columns)
    writer.writerow(head)
    writer.writerows([row.get(column, "") for column in head] for row in rows)
    return text.getvalue()


def _head(rows: Iterable[Mapping[str, str]], columns: Sequence[str]) -> list[str]:
    """Return the names of all columns.

    One that is an object in other rows (`run` beside `run.state`) is left out.
    """
    head = dict.fromkeys([*columns, *(column for row in rows for column in row)])
    objects = {name.rpartition(".")[0] for name in head if "." in name}
    return [name for name in head if name not in objects]


def _cells(item: Item, whole: frozenset[str], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the columns of an item. whole: objects that are one column."""
    for name, value in item.items():
        column = f"{above}{name}"
        is_object = isinstance(value, Mapping) and bool(value)
        if not is_object or column in whole:
            yield column, _safe_cell(value)
        if is_object:
            yield from _cells(value, whole, f"{column}.")


def _safe_cell(value: Any) -> str:
    """Return a value as one cell of a file that spreadsheets open.

    >>> _safe_cell("=cmd()"), _safe_cell(-5), _safe_cell("a-b")
    ("'=cmd()", '-5', 'a-b')
    """
    text = cell(value)
    return f"'{text}" if isinstance(value, str | list) and text.startswith(FORMULA) else text


def cell(value: Any) -> str:
    """Return a cell: texts as they are, lists of texts with semicolons, else JSON.

    >>> cell("a"), cell(None), cell(True), cell(["a", "b"]), cell([{"name": "x"}])
    ('a', '', 'true', 'a;b', '[{"name":"x"}]')
    """
    if value is None or value == {}:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(element, str) for element in value):
        return ";".join(value)
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
