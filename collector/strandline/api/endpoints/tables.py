"""GET /api/v2/tables/{table}: the proposals' tables, row by row, as JSON or CSV."""

import csv
import io
from collections.abc import Iterator, Sequence

import orjson
from starlette.responses import Response, StreamingResponse

from strandline.api.http.operations import Ask, Choice, Operation, Parameter
from strandline.api.http.paging import connected
from strandline.store.catalog.proposal_tables import TABLES, columns_of, rows_of, table_called

TABLE = Parameter("table", f"One of {', '.join(TABLES)}")
FORMAT = Parameter(
    "format",
    "An array of objects, or comma-separated values",
    Choice(("json", "csv")),
    default="json",
)
STATE = Parameter(
    "state",
    "What runs now, or what ran, with valid_from and valid_to",
    Choice(("running", "history")),
    default="running",
)
PIECE = 64 * 1024


def table(ask: Ask) -> Response:
    """All rows, sent as they are read."""
    name = table_called(ask.given["table"])
    as_csv = ask.given["format"] == "csv"
    lines = _csv(ask, name) if as_csv else _json(ask, name)
    media = "text/csv; charset=utf-8" if as_csv else "application/json"
    return StreamingResponse(_pieces(lines, next(lines)), media_type=media)


def _json(ask: Ask, name: str) -> Iterator[bytes]:
    with connected(ask) as connection:
        begin = b"["
        for row in rows_of(connection, name, history=ask.given["state"] == "history"):
            yield begin + orjson.dumps(row)
            begin = b",\n"
        yield b"[]" if begin == b"[" else b"]"


def _csv(ask: Ask, name: str) -> Iterator[bytes]:
    history = ask.given["state"] == "history"
    with connected(ask) as connection:
        columns = columns_of(connection, name, history=history)
        yield _line(columns)
        for row in rows_of(connection, name, history=history):
            yield _line([row[column] for column in columns])


def _line(values: Sequence[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(values)
    return text.getvalue().encode()


def _pieces(lines: Iterator[bytes], first: bytes) -> Iterator[bytes]:
    """Lines in pieces worth sending.

    The first was read before the answer began, so that a fault still has a status.
    """
    piece = bytearray(first)
    for line in lines:
        piece += line
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


ROWS = {"type": "array", "items": {"type": "object"}}
OPERATIONS = (
    Operation(
        "GET",
        "/api/v2/tables/{table}",
        "The lineage tables of the lakehouse proposals (PIP-5, FLIP-276), with their columns",
        table,
        (TABLE, FORMAT, STATE),
        answer=ROWS,
        refusals=(404,),
        scope="read",
    ),
)
