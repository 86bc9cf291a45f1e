"""uvicorn's HTTP protocol with bounds.

On the bytes and seconds of a request's head, on the time in which a client has to read, and on
connections of one address.

A body has bounds of its own (`bodies`). Without these, a head that never ends would be parsed for
ever, and an address that opens connections and says nothing would leave none for others.
"""

import asyncio
from asyncio.events import TimerHandle
from collections import Counter
from ipaddress import ip_address
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from strandline.settings import Settings

HEAD_BYTES = 64 << 10
READ_SECONDS = 20  # without that a client reads what waits for it
_ANSWER = (
    b"HTTP/1.1 %s\r\ncontent-type: text/plain\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
TOO_LARGE = _ANSWER % b"431 Request Header Fields Too Large"
TOO_SLOW = _ANSWER % b"408 Request Timeout"
TOO_MANY = _ANSWER % b"429 Too Many Requests"


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `head_seconds`, `most_connections` and `proxies` are set by `bounded`."""

    head_seconds: float = 10
    most_connections: int = 0  # of one address; 0: any
    proxies: tuple[Any, ...] = ()
    open_connections: Counter[str]

    _head_bytes = 0
    _in_head = True  # until the first request's head is whole
    _late: TimerHandle | None = None
    _unread: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and wait for a head from now on."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self.open_connections[address] += 1
        is_full = 0 < self.most_connections < self.open_connections[address]
        if is_full and not self._is_of_proxy(address):
            self._refuse(TOO_MANY)
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no more."""
        self._head_is_whole()
        self._client_reads()
        address = self.client[0] if self.client else ""
        self.open_connections[address] -= 1
        if self.open_connections[address] <= 0:
            del self.open_connections[address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless the head is too large already."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._refuse(TOO_LARGE)

    def on_message_begin(self) -> None:
        """Wait anew for a head, after the first request."""
        super().on_message_begin()
        if not self._in_head:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Stop waiting for the head, which is whole."""
        self._head_is_whole()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Let the client read before more is sent; cut it off if it does not."""
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._client_reads()
        super().resume_writing()

    def _client_reads(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _is_of_proxy(self, address: str) -> bool:
        """Return whether a trusted proxy connects, which does so for all its clients."""
        return any(ip_address(address) in network for network in self.proxies)

    def _await_head(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._late = self.loop.call_later(self.head_seconds, self._refuse, TOO_SLOW)

    def _head_is_whole(self) -> None:
        self._in_head = False
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()


def bounded(settings: Settings) -> type[BoundedProtocol]:
    """Return the protocol with the bounds of the settings; its connections are counted together."""
    protocol = type(
        "Protocol",
        (BoundedProtocol,),
        {
            "head_seconds": settings.head_seconds,
            "most_connections": settings.max_connections_per_address,
            "proxies": settings.trusted_proxies,
            "open_connections": Counter(),
        },
    )
    return cast("type[BoundedProtocol]", cast("Any", protocol))
