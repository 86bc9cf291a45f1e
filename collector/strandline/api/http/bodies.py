"""Reads a request's body under limits that hold while it arrives.

Bytes sent, bytes unpacked, their ratio, time.

gzip is recognised by its first two bytes, because some clients forget to say Content-Encoding.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from prometheus_client import Gauge
from starlette.requests import ClientDisconnect, Request

from strandline.errors import BodyError, OverloadError, TooLargeError
from strandline.settings import Settings

RATIO = 200  # a logical plan of 23 MB packs 1:40, a bomb 1:1000
RATIO_FREE = 4 * 1024 * 1024  # small bodies may pack as they like
# a body is read to twice its limit before the connection closes, so that its sender sees the answer
DRAIN = 2
DRAIN_SECONDS = 2
GZIP = b"\x1f\x8b"


class Room:
    """The memory that all bodies share while they are read and wait for their commit."""

    def __init__(self, size: int, gauge: Gauge) -> None:
        self.size = size
        self.used = 0
        gauge.set_function(lambda: self.used)

    def take(self, amount: int) -> None:
        """Take `amount` bytes (negative: give them back), or raise an OverloadError."""
        if amount > 0 and self.used + amount > self.size:
            raise OverloadError(f"{self.used} bytes of requests wait already")
        self.used += amount


class Unpacking:
    """A body that may be gzip, unpacked piece by piece."""

    def __init__(self, limit: int, encoding: str, room: Room) -> None:
        self._limit = limit
        self._room = room
        self.taken = 0
        self._gzip: bool | None = {"gzip": True, "x-gzip": True, "identity": None, "": None}.get(
            encoding, False
        )
        if self._gzip is False:
            raise BodyError(f"Content-Encoding {encoding!r} is not gzip")
        self._inflating: Any = None
        self._parts: list[bytes] = []
        self._packed = self._unpacked = 0
        self._head = b""

    def add(self, chunk: bytes) -> None:
        """Take what arrived; TooLargeError as soon as a limit is passed."""
        self._packed += len(chunk)
        if self._gzip is None:
            chunk, self._head = self._head + chunk, b""
            if len(chunk) < 2:
                self._head = chunk
                return
            self._gzip = chunk.startswith(GZIP)
        if self._gzip:
            self._unpack(chunk)
        else:
            self._keep(chunk)

    def whole(self) -> bytes:
        """Return the body, once everything arrived."""
        if self._gzip and not (self._inflating and self._inflating.eof):
            raise BodyError("the gzip stream ends early")
        self._keep(self._head)
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def _unpack(self, chunk: bytes) -> None:
        try:
            while chunk:
                if (
                    self._inflating is None or self._inflating.eof
                ):  # again where gzip files are joined
                    self._inflating = zlib.decompressobj(31)
                self._keep(self._inflating.decompress(chunk, self._limit + 1 - self._unpacked))
                chunk = self._inflating.unconsumed_tail or self._inflating.unused_data
        except zlib.error as error:
            raise BodyError(f"not gzip: {error}") from None
        if self._unpacked > max(RATIO_FREE, RATIO * self._packed):
            raise TooLargeError(f"unpacks to more than {RATIO} times its size")

    def _keep(self, part: bytes) -> None:
        self._unpacked += len(part)
        if self._unpacked > self._limit:
            raise TooLargeError(f"the body has more than {self._limit} bytes")
        if part:
            self._room.take(len(part))
            self.taken += len(part)
            self._parts.append(part)


@asynccontextmanager
async def body_of(request: Request, settings: Settings, room: Room) -> AsyncIterator[bytes]:
    """Give the unpacked body, or raise a BodyError.

    Nothing larger than the limit is ever held, and its room is given back.
    """
    limit = settings.max_body_bytes
    unpacking = Unpacking(limit, request.headers.get("content-encoding", "").strip().lower(), room)
    try:
        yield await _read(request, limit, settings.body_seconds, unpacking)
    finally:
        room.take(-unpacking.taken)


async def _read(request: Request, limit: int, seconds: int, unpacking: Unpacking) -> bytes:
    chunks = request.stream()
    try:
        async with asyncio.timeout(seconds):
            _check_length(request.headers.get("content-length", ""), limit)
            async for chunk in chunks:
                if chunk:  # the last one of a stream is none
                    unpacking.add(chunk)
    except TooLargeError:
        await _drain(chunks, limit)
        raise
    except TimeoutError:
        raise BodyError(f"the body did not arrive within {seconds} seconds") from None
    except ClientDisconnect:
        raise BodyError("the connection closed before the body ended") from None
    return unpacking.whole()


def _check_length(announced: str, limit: int) -> None:
    if announced.isdigit() and int(announced) > limit:
        raise TooLargeError(f"the body has {announced} bytes, more than {limit}")


async def _drain(chunks: AsyncIterator[bytes], limit: int) -> None:
    left = DRAIN * limit
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return
