"""Gives every request its access.

All of it where no key is asked for, else what its API key or token grants.

What a key grants is remembered for four seconds. So a busy sender costs one look-up every four
seconds, and a revoked key is out on every node within five. Wrong keys of one address are answered
later and later, at the page's session too; a valid one never waits.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strandline.api.http.problems import on_error
from strandline.core.access.granted import EVERYTHING, NOTHING, Access
from strandline.errors import SettingsError, StrandlineError, UnauthorizedError
from strandline.settings import Settings
from strandline.store.api_keys import is_stale, key_of, note_use
from strandline.store.sql.engine import read_from
from strandline.web.pages import WRONG_KEY, Grant, is_open, key_in_cookie

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
BELIEVED_SECONDS = 4
REMEMBERED = 10_000
FREE_FAILURES = 5  # a key that was pasted wrongly a few times is not slowed
LONGEST_DELAY = 5.0
ACCESS = "strandline.access"  # where a request's scope has it
GRANTED_STILL = "strandline.granted_still"  # and a function that asks whether its key is valid
HOW_TO_GET_IN = (
    "send `Authorization: Bearer KEY`; `strandline keys add me --scope read --namespace "
    "'*'` makes one"
)

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


class RequireKey:
    """ASGI middleware: `grant` says what a key may do, None if it is none of ours.

    Without it everything is allowed.
    """

    def __init__(
        self,
        app: ASGIApp,
        grant: Grant | None,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        self._app = app
        self._grant = grant
        self._sleep = sleep
        self._clock = clock
        self._believed: dict[bytes, tuple[float, Access]] = {}
        self._failures: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or pass the request on with its access."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            scope[ACCESS] = await self._access(scope)
        except (StrandlineError, SQLAlchemyError) as error:
            refused = await on_error(Request(scope), error)
            await refused(scope, receive, send)
            return

        async def send_later(message: Message) -> None:
            if message["type"] == "http.response.start" and scope.get(WRONG_KEY):
                await self._slow_down(_address(scope))
            await send(message)

        await self._app(scope, receive, send_later if scope["path"].startswith("/ui/") else send)

    async def _access(self, scope: Scope) -> Access:
        if self._grant is None:
            return EVERYTHING
        if scope["path"] in OPEN_PATHS or is_open(scope["method"], scope["path"]):
            return NOTHING
        key = _key_of(scope) or key_in_cookie(scope["method"], scope["headers"])
        if not key:
            raise UnauthorizedError(HOW_TO_GET_IN)
        scope[GRANTED_STILL] = partial(self._is_granted, key)
        try:
            access = await self._granted(self._grant, key)
        except UnauthorizedError:
            await self._slow_down(_address(scope))
            raise
        self._failures.pop(_address(scope), None)
        return access

    async def _granted(self, grant: Grant, key: str) -> Access:
        name = hashlib.sha256(key.encode()).digest()  # a token may have kilobytes
        until, access = self._believed.get(name, (0.0, NOTHING))
        if until > self._clock():
            return access
        self._believed.pop(name, None)
        asked_at = self._clock()
        granted = await run_in_threadpool(grant, key)
        if granted is None:
            raise UnauthorizedError(HOW_TO_GET_IN)
        if len(self._believed) >= REMEMBERED:
            self._believed.clear()
        self._believed[name] = asked_at + BELIEVED_SECONDS, granted
        return granted

    async def _is_granted(self, key: str) -> bool:
        """Return whether a key that was granted something is still valid."""
        assert self._grant is not None
        try:
            await self._granted(self._grant, key)
        except UnauthorizedError:
            return False
        except (StrandlineError, SQLAlchemyError):
            return True  # nobody can say just now
        return True

    async def _slow_down(self, address: str) -> None:
        if len(self._failures) >= REMEMBERED:
            self._failures.clear()
        count = self._failures[address] = self._failures.get(address, 0) + 1
        if count > FREE_FAILURES:
            await self._sleep(min(LONGEST_DELAY, 0.1 * 2.0 ** min(count - FREE_FAILURES, 10)))


def granting(
    engine: Engine,
    settings: Settings,
    complain: Callable[[str], None],
    checks: MutableMapping[str, Callable[[], str | None]],
) -> Grant | None:
    """Return the rights of a key or of a token of the issuer.

    None where no key is required. An issuer whose keys cannot be read is among the `checks`.
    """
    if not settings.auth_required:
        return None
    by_key = granted_by_keys(engine)
    if settings.oidc_issuer is None:
        return by_key
    try:
        from strandline.api.http.tokens import (
            is_token,
            tokens_of,
        )  # an extra, which most do without
    except ImportError as error:
        raise SettingsError([no_library(error)]) from error
    tokens = tokens_of(settings, complain)
    checks["issuer"] = tokens.fault
    return lambda key: tokens.access(key) if is_token(key) else by_key(key)


def no_library(error: ImportError) -> str:
    """Return the message that the library for tokens is not installed."""
    return f"STRANDLINE_OIDC_ISSUER needs more packages: pip install 'strandline[oidc]' ({error})"


def granted_by_keys(engine: Engine) -> Grant:
    """Return the rights of a key of the store; its last use is written once a minute."""

    def grant(key: str) -> Access | None:
        now = datetime.now(UTC)
        with read_from(engine) as connection:
            stored_key = key_of(connection, key, now)
        if stored_key is None:
            return None
        if is_stale(stored_key, now):
            with engine.begin() as connection:
                note_use(connection, stored_key, now)
        return stored_key.access

    return grant


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _key_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, key = value.decode("latin-1").partition(" ")
            return key.strip() if scheme.lower() == "bearer" else ""
    return ""
