"""GET /api/v2/tables/{table}: the proposals' tables, row by row, as JSON or CSV."""

import csv
import io
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Annotated

import orjson
from anyio import CancelScope
from fastapi import APIRouter, Path
from fastapi import Query as InQuery
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from strandline.api.http.answers import JSON
from strandline.api.http.problems import problem_of
from strandline.api.http.route import Route, refused
from strandline.api.http.sending import PIECE, AnswerRoom
from strandline.api.http.session import ReadSession, Session, client_of
from strandline.errors import OverloadError
from strandline.questions.catalog import TABLE_ABOUT, TableQuery
from strandline.questions.parameters import Text
from strandline.store.catalog.proposal_tables import columns_of, rows_of, table_called

router = APIRouter(prefix="/api/v2", tags=["catalog"], route_class=Route)

Lines = Generator[bytes, None, None]
TABLES_AT_ONCE = 4  # of all clients, half of them of one: each holds a connection


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
    return TableResponse(session, _pieces(lines, next(lines)), media_type=media)


class TableResponse(StreamingResponse):
    """A table that is read while it is sent, so that its size does not matter.

    It holds a connection to the database meanwhile. So few are sent at once, and the connection is
    given back as soon as the client has gone.
    """

    def __init__(self, session: Session, pieces: Lines, media_type: str) -> None:
        super().__init__(pieces, media_type=media_type)
        self._room: AnswerRoom = session.state.table_room
        self._client = client_of(session.request)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the table, or a refusal if too many are being sent."""
        try:
            with self._room.taken(self._client, 1):
                await super().__call__(scope, receive, send)
        except OverloadError as error:
            await problem_of(error)(scope, receive, send)
        finally:
            with CancelScope(shield=True):
                await run_in_threadpool(self._pieces.close)


def _json(session: Session, name: str, *, history: bool) -> Lines:
    with session.connected() as connection:
        begin = b"["
        for row in rows_of(connection, name, history=history):
            yield begin + orjson.dumps(row)
            begin = b",\n"
        yield b"[]" if begin == b"[" else b"]"


def _csv(session: Session, name: str, *, history: bool) -> Lines:
    with session.connected() as connection:
        columns = columns_of(connection, name, history=history)
        yield _line(columns)
        for row in rows_of(connection, name, history=history):
            yield _line([row[column] for column in columns])


def _line(values: Sequence[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(values)
    return text.getvalue().encode()


def _pieces(lines: Lines, first: bytes) -> Lines:
    """Lines in pieces worth sending.

    The first was read before the answer began, so that a fault still has a status.
    """
    piece = bytearray(first)
    with closing(lines):
        for line in lines:
            piece += line
            if len(piece) >= PIECE:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)
