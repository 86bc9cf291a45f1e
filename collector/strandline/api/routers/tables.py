"""GET /api/v2/tables/{table}: the proposals' tables, row by row, as JSON or CSV."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Annotated

import orjson
from fastapi import APIRouter, Path
from fastapi import Query as InQuery
from starlette.responses import Response, StreamingResponse

from strandline.api.http.answers import JSON
from strandline.api.http.route import Route, refused
from strandline.api.http.session import ReadSession, Session
from strandline.questions.catalog import TABLE_ABOUT, TableQuery
from strandline.questions.parameters import Text
from strandline.store.catalog.proposal_tables import columns_of, rows_of, table_called

router = APIRouter(prefix="/api/v2", tags=["catalog"], route_class=Route)

PIECE = 64 * 1024


@router.get("/tables/{table:name}", response_model=list[JSON], responses=refused(404))
def get_table(
    table: Annotated[Text, Path(description=TABLE_ABOUT)],
    query: Annotated[TableQuery, InQuery()],
    session: ReadSession,
) -> Response:
    """Return a lineage table of the lakehouse proposals (PIP-5, FLIP-276), with its columns."""
    name = table_called(table)
    as_csv, history = query.format == "csv", query.state == "history"
    rows = _csv if as_csv else _json
    lines = rows(session, name, history=history)
    media = "text/csv; charset=utf-8" if as_csv else "application/json"
    return StreamingResponse(_pieces(lines, next(lines)), media_type=media)


def _json(session: Session, name: str, *, history: bool) -> Iterator[bytes]:
    with session.connected() as connection:
        begin = b"["
        for row in rows_of(connection, name, history=history):
            yield begin + orjson.dumps(row)
            begin = b",\n"
        yield b"[]" if begin == b"[" else b"]"


def _csv(session: Session, name: str, *, history: bool) -> Iterator[bytes]:
    with session.connected() as connection:
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
