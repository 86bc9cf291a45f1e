"""The observation of every request.

Its id, how it was answered, how long that took, and a line in the log if asked for.

A request keeps the id that its sender gave it (X-Request-ID), so that one line here and one there
can be put together.
"""

import os
import re
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strandline.api.http.route import route_of
from strandline.metrics import Metrics
from strandline.settings import Settings

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})  # asked every few seconds by programs
LONGEST_PATH = 300

_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")


class ObserveRequests:
    """ASGI middleware: counts and times answers, and gives each its id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, add the id to the answer, and note how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, began, status = _request_id(scope), time.monotonic(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            _note(scope, request_id, status, time.monotonic() - began)


def _note(scope: Scope, request_id: bytes, status: int, seconds: float) -> None:
    state = scope["app"].state
    metrics: Metrics = state.metrics
    method, route = scope["method"] if scope["method"] in METHODS else "other", route_of(scope)
    metrics.answered(method, route, status, seconds)
    if _is_logged(state.settings, scope["path"], status):
        state.log.info("request", **_line(scope, request_id, status, seconds))


def _line(scope: Scope, request_id: bytes, status: int, seconds: float) -> dict[str, Any]:
    """Return a line of the access log.

    No query, which may hold what was searched for, and status 0 if nobody waited.
    """
    return {
        "method": scope["method"][:20],
        "path": (scope.get("raw_path") or scope["path"].encode())
        .partition(b"?")[0][:LONGEST_PATH]
        .decode("latin-1"),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "client": (scope.get("client") or ("",))[0],
        "request_id": request_id.decode(),
    }


def _is_logged(settings: Settings, path: str, status: int) -> bool:
    if settings.access_log == "off":
        return False
    failed = status == 0 or status >= 400
    return failed or (settings.access_log == "all" and path not in PROBES)


def _request_id(scope: Scope) -> bytes:
    """Return the id that the sender gave it, if that is one; otherwise a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _ID.fullmatch(value):
            request_id: bytes = value
            return request_id
    return os.urandom(8).hex().encode()
