"""Lists as comma-separated values (RFC 4180): one line an item, nested objects as columns such as `newestRun.state`."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

Item = Mapping[str, Any]


def csv_of(items: Sequence[Item], columns: Sequence[str] = ()) -> str:
    """The items as CSV; `columns` come first, and are there even where no item has them.

    >>> csv_of([{"id": "a", "run": {"state": "FAIL"}}, {"id": "b", "run": None}], ["id"])
    'id,run.state\\r\\na,FAIL\\r\\nb,\\r\\n'
    """
    rows = [dict(_cells(item)) for item in items]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    head = _head(rows, columns)
    writer.writerow(head)
    writer.writerows([row.get(column, "") for column in head] for row in rows)
    return text.getvalue()


def _head(rows: Iterable[Mapping[str, str]], columns: Sequence[str]) -> list[str]:
    """The names of all columns. One that is an object in other rows (`run` beside `run.state`) is left out."""
    found = dict.fromkeys([*columns, *(column for row in rows for column in row)])
    objects = {name.rpartition(".")[0] for name in found if "." in name}
    return [name for name in found if name not in objects]


def _cells(item: Item, above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in item.items():
        if isinstance(value, Mapping) and value:
            yield from _cells(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", cell(value)


def cell(value: Any) -> str:
    """A value as one cell: texts as they are, lists of texts with semicolons, all else as JSON.

    >>> cell("a"), cell(None), cell(True), cell(["a", "b"]), cell([{"name": "x"}])
    ('a', '', 'true', 'a;b', '[{"name":"x"}]')
    """
    if value is None or value == {}:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ";".join(value)
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
