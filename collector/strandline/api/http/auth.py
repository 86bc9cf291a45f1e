"""Lets requests with a valid API key pass where settings ask for one; probes need none.

A key that was valid is believed for a minute, so that a busy sender costs one look-up a minute and a revoked key is out
after one.
"""

import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from strandline.api.http.problems import on_error
from strandline.errors import UnauthorizedError
from strandline.web.pages import is_open, key_in_cookie

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
BELIEVED_SECONDS = 60
REMEMBERED = 10_000


class RequireKey:
    """ASGI middleware: `is_valid` says whether a key is one of ours."""

    def __init__(self, app: ASGIApp, is_valid: Callable[[str], bool]) -> None:
        self._app = app
        self._is_valid = is_valid
        self._believed: dict[str, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or pass the request on."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or is_open(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            if not await self._may_pass(scope):
                raise UnauthorizedError("send `Authorization: Bearer KEY`; `strandline keys add` makes one")
        except (UnauthorizedError, SQLAlchemyError) as error:
            refused = await on_error(Request(scope), error)
            await refused(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _may_pass(self, scope: Scope) -> bool:
        key = _key_of(scope) or key_in_cookie(scope["method"], scope["headers"])
        if not key:
            return False
        if self._believed.get(key, 0) > time.monotonic():
            return True
        if not await run_in_threadpool(self._is_valid, key):
            self._believed.pop(key, None)
            return False
        if len(self._believed) >= REMEMBERED:
            self._believed.clear()
        self._believed[key] = time.monotonic() + BELIEVED_SECONDS
        return True


def _key_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, key = value.decode("latin-1").partition(" ")
            return key.strip() if scheme.lower() == "bearer" else ""
    return ""
