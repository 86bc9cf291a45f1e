"""Counts of refused events, stored once a second by a thread of their own.

Refused events are mistakes or attacks, so nothing grows with their number: neither memory, nor the
table, nor the number of transactions.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Engine
from starlette.requests import Request

from strandline.core.openlineage.names import complaint
from strandline.core.openlineage.times import micros_of
from strandline.core.redaction.json import redact_bytes
from strandline.core.rejection_kinds import kind_of
from strandline.errors import BodyError, InvalidEventError, StrandlineError
from strandline.runtime.periodic import Turns
from strandline.store.ingest.refused import Refused, add_refused

FLUSH_SECONDS = 1.0
MOST_PENDING = 500  # pairs of producer and reason; more are counted together
TOO_MANY = "of too many kinds to be told apart"
SHOWN = 4096  # of a body: enough to see what it is
LONGEST = 300  # characters of a producer and of a reason


class _Producer(msgspec.Struct):
    producer: Any = None


class Refusals:
    """The refusals since the last second, and the thread that stores them."""

    def __init__(
        self,
        engine: Engine,
        complain: Callable[[str], None],
        on_refused: Callable[[str], None] = lambda code: None,
    ) -> None:
        self._on_refused = on_refused
        self._engine = engine
        self._complain = complain
        self._pending: dict[tuple[str, str], Refused] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._turns = Turns("refusals", self.flush, FLUSH_SECONDS, complain)

    def start(self) -> None:
        """Start the thread."""
        self._turns.start()

    def stop(self) -> None:
        """End the thread, and store the remaining counts."""
        self._turns.stop()
        try:
            self.flush()
        except Exception as error:  # noqa: BLE001 - the server ends, whatever the database says
            self._complain(f"{type(error).__name__}: {error}".partition("\n")[0])

    def add(self, body: bytes, agent: str, error: Exception, at: datetime) -> None:
        """Count a refused body; `agent`, the sender, stands in for an unreadable producer."""
        self._on_refused(error.code if isinstance(error, StrandlineError) else "other")
        producer = _cut(complaint(_producer_of(body) or agent))
        reason = _cut(kind_of(complaint(str(error))))
        self._count(Refused(producer, reason, 1, micros_of(at), micros_of(at), body[:SHOWN]))

    def add_all(self, faults: Iterable[tuple[bytes, Exception]], agent: str, at: datetime) -> None:
        """Count the refused elements of an array."""
        for body, error in faults:
            self.add(body, agent, error, at)

    def _count(self, refused: Refused) -> None:
        key = (refused.producer, refused.reason)
        with self._lock:
            if key not in self._pending and len(self._pending) >= MOST_PENDING:
                key = ("", TOO_MANY)
                refused = replace(refused, producer=key[0], reason=key[1])
            before = self._pending.get(key)
            self._pending[key] = refused if before is None else before.joined(refused)

    def flush(self) -> None:
        """Store all counts; those that cannot be stored stay counted."""
        with self._writing:
            with self._lock:
                pending, self._pending = self._pending, {}
            if not pending:
                return
            try:
                with self._engine.begin() as connection:
                    add_refused(
                        connection,
                        [replace(one, body=redact_bytes(one.body)) for one in pending.values()],
                    )
            except BaseException:
                for refused in pending.values():
                    self._count(refused)
                raise

    @contextmanager
    def noting(self, agent: str, at: datetime) -> Iterator[list[bytes]]:
        """Count a refusal raised inside; the caller appends the body once it is read."""
        read: list[bytes] = []
        try:
            yield read
        except (BodyError, InvalidEventError) as error:
            self.add(read[0] if read else b"", agent, error, at)
            raise


def agent_of(request: Request) -> str:
    """Return the User-Agent of a request."""
    return request.headers.get("user-agent", "")


def _producer_of(body: bytes) -> str:
    try:
        producer = msgspec.json.decode(body, type=_Producer).producer
    except (ValueError, RecursionError):
        return ""
    return producer if isinstance(producer, str) else ""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
