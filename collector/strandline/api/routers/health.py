"""Routes for operators: alive, ready, metrics, and the documentation of the API.

Ready means that an event sent now would be stored: it turns false while there still is memory to
say so.
"""

import sqlite3
from collections.abc import Callable, Mapping
from typing import NotRequired

import orjson
from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from typing_extensions import TypedDict

from strandline import __version__
from strandline.api.http.answers import JSON
from strandline.api.http.document import docs_headers, docs_page
from strandline.api.http.route import Route
from strandline.api.http.session import OpenSession, ReadSession, Session, WholeSession
from strandline.runtime.heap import bytes_in_use
from strandline.store.sql.engine import locked, read_from, unwritable

router = APIRouter(tags=["operation"], route_class=Route)
Check = Callable[[], str | None]
FULL = 0.9  # of a limit: there must be room left for what is under way


class Status(TypedDict):
    """A word, and what stands against a better one."""

    status: str
    version: NotRequired[str]
    label: NotRequired[str]  # STRANDLINE_LABEL; the recorded demo has one
    faults: NotRequired[dict[str, str]]


@router.get("/healthz", response_model=Status)
def get_health(session: OpenSession) -> dict[str, str]:
    """Return the version of the process, and its label if it has one."""
    label = {} if session.settings.label is None else {"label": session.settings.label}
    return {"status": "ok", "version": __version__} | label


@router.get("/readyz", response_model=Status)
def get_readiness(session: OpenSession) -> Response:
    """Return whether an event sent now would be stored, and every reason if not."""
    state = session.state
    checks: Mapping[str, Check] = {
        "database": lambda: _database(session),
        "memory": lambda: _memory(session),
        "requests": lambda: _full(
            "requests wait", state.writer.waiting, session.settings.max_waiting
        ),
        "bodies": lambda: _full(
            "bytes of requests wait", state.room.used, session.settings.max_waiting_bytes
        ),
        **state.checks,
    }
    faults = {name: fault for name, check in checks.items() if (fault := check())}
    content = {"status": "unready" if faults else "ready", "faults": faults}
    return Response(orjson.dumps(content), 503 if faults else 200, media_type="application/json")


@router.get(
    "/metrics", response_class=PlainTextResponse, responses={200: {"content": {"text/plain": {}}}}
)
async def get_metrics(session: WholeSession) -> Response:
    """Metrics for Prometheus."""
    text = await run_in_threadpool(session.state.metrics.exposition)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


@router.get("/openapi.json", response_model=JSON)
async def get_document(session: ReadSession) -> Response:
    """Return this documentation as OpenAPI."""
    return await run_in_threadpool(_document, session)


def _document(session: Session) -> Response:
    content = orjson.dumps(session.request.app.openapi())
    return Response(content, media_type="application/json")


@router.get("/docs", response_class=HTMLResponse)
async def get_docs(session: ReadSession) -> Response:
    """Return this documentation as a page."""
    return await run_in_threadpool(_docs, session)


def _docs(session: Session) -> Response:
    return HTMLResponse(docs_page(session.request.app.openapi()), headers=docs_headers())


def _database(session: Session) -> str | None:
    try:
        with read_from(session.engine) as connection:
            connection.execute(text("SELECT 1 FROM offsets LIMIT 1"))
            fault = unwritable(connection)
        return fault or locked(session.engine)
    except (SQLAlchemyError, sqlite3.Error) as error:
        return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]


def _memory(session: Session) -> str | None:
    """Return that too much is held; what was only kept free is given back first."""
    limit, memory = session.settings.memory_bytes, session.state.metrics.memory
    return _full("bytes of memory are used", bytes_in_use(memory.total, FULL * limit), limit)


def _full(what: str, used: int, limit: int) -> str | None:
    return f"{used} {what}, the limit is {limit}" if used > FULL * limit else None
