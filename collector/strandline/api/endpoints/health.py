"""What operators ask: alive, ready, metrics, and the documentation of everything that can be asked.

Ready means that an event sent now would be stored: it turns false while there still is memory to
say so.
"""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import HTMLResponse, Response

from strandline import __version__
from strandline.api.http.openapi import docs_headers, docs_page, openapi
from strandline.api.http.operations import Ask, Operation
from strandline.store.sql.engine import locked, read_from, unwritable

Check = Callable[[], str | None]
FULL = 0.9  # of a limit: there must be room left for what is under way


def alive(ask: Ask) -> dict[str, str]:
    """Return that this process answers, its version, and its label if it has one."""
    label = {} if ask.settings.label is None else {"label": ask.settings.label}
    return {"status": "ok", "version": __version__} | label


def ready(ask: Ask) -> Response:
    """Whether an event sent now would be stored, and if not, everything that stands against it."""
    state = ask.request.app.state
    checks: Mapping[str, Check] = {
        "database": lambda: _database(ask),
        "memory": lambda: _memory(ask),
        "requests": lambda: _full("requests wait", state.writer.waiting, ask.settings.max_waiting),
        "bodies": lambda: _full(
            "bytes of requests wait", state.room.used, ask.settings.max_waiting_bytes
        ),
        **state.checks,
    }
    faults = {name: fault for name, check in checks.items() if (fault := check())}
    content = {"status": "unready" if faults else "ready", "faults": faults}
    return Response(orjson.dumps(content), 503 if faults else 200, media_type="application/json")


def metrics(ask: Ask) -> Response:
    """The text that Prometheus scrapes."""
    return Response(ask.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)


def document(ask: Ask) -> dict[str, Any]:
    """The OpenAPI document."""
    return openapi(ask.request.app.state.operations)


def docs(ask: Ask) -> Response:
    """The same for people."""
    return HTMLResponse(docs_page(ask.request.app.state.operations), headers=docs_headers())


def _database(ask: Ask) -> str | None:
    try:
        with read_from(ask.engine) as connection:
            connection.execute(text("SELECT 1 FROM offsets LIMIT 1"))
            fault = unwritable(connection)
        return fault or locked(ask.engine)
    except (SQLAlchemyError, sqlite3.Error) as error:
        return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]


def _memory(ask: Ask) -> str | None:
    return _full(
        "bytes of memory are used",
        sum(ask.metrics.memory.resident_bytes().values()),
        ask.settings.memory_bytes,
    )


def _full(what: str, used: int, limit: int) -> str | None:
    return f"{used} {what}, the limit is {limit}" if used > FULL * limit else None


STATUS_ANSWER = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"type": "string"},
        "version": {"type": "string"},
        "label": {"type": "string", "description": "STRANDLINE_LABEL; the recorded demo has one"},
    },
}
OPERATIONS = (
    Operation(
        "GET", "/healthz", "Whether the process answers", alive, answer=STATUS_ANSWER, scope="open"
    ),
    Operation(
        "GET",
        "/readyz",
        "Whether an event sent now would be stored",
        ready,
        answer=STATUS_ANSWER,
        scope="open",
    ),
    Operation(
        "GET",
        "/metrics",
        "Metrics for Prometheus",
        metrics,
        media="text/plain",
        scope="read",
        whole=True,
        asks_store=False,
    ),
    Operation(
        "GET",
        "/openapi.json",
        "This documentation for programs",
        document,
        answer={"type": "object"},
        scope="read",
        asks_store=False,
    ),
    Operation(
        "GET",
        "/docs",
        "This documentation for people",
        docs,
        media="text/html",
        scope="read",
        asks_store=False,
    ),
)
