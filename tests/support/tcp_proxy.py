"""A TCP proxy on loopback that breaks connections by a seed: it cuts, half-closes, delays and throttles, and changes no byte.

A fault strikes after a number of bytes, not after a time, so a seed means the same on a slow machine. `heal` ends all faults.
"""

from __future__ import annotations

import contextlib
import math
import random
import selectors
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = ("cut", "half-closed", "delayed", "throttled")
AT_ONCE, DRIP, DRIP_SECONDS = 65_536, 512, 0.002
Target = tuple[str, int] | str  # host and port, or the path of a Unix socket


@dataclass
class Fault:
    """What happens to one connection, after so many bytes of one direction."""

    kind: str
    outward: bool  # counted is what the client sends; otherwise what the server answers
    after: int


class Faults:
    """The faults of one connection, one after the other, by a seed of its own."""

    def __init__(self, seed: int, mean_bytes: int) -> None:
        self._chance, self._mean = random.Random(seed), mean_bytes
        self.next = self._draw()

    def struck(self, outward: bool, size: int) -> Fault | None:
        """The fault that these bytes meet, if any; another one follows it."""
        found = self.next
        if found.outward is not outward:
            return None
        if size <= found.after:
            found.after -= size
            return None
        self.next = self._draw()
        return found

    def _draw(self) -> Fault:
        after = round(self._chance.expovariate(1 / self._mean))
        return Fault(self._chance.choice(KINDS), self._chance.random() < 0.5, after)


class Proxy:
    """One port before one server. Each connection has a seed of its own, by the order in which they are opened."""

    def __init__(self, target: Target, seed: int, mean_bytes: int, seconds: float = 0.5) -> None:
        self._target, self._seed, self._mean, self._seconds = target, seed, mean_bytes, seconds
        self.struck: Counter[str] = Counter()
        self._opened = 0
        self._stalled: float = 0  # so many of the connections, the oldest, pass nothing on
        self._healed, self._over = threading.Event(), threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._listening.settimeout(0.1)
        self.port: int = self._listening.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def stall(self, *, new: bool = False) -> None:
        """Take what the connections that are open now send, and those opened later if `new`, and pass nothing on, for ever."""
        self._stalled = math.inf if new else self._opened

    def resume(self) -> None:
        """Pass on what connections send that are opened from now on."""
        self._stalled = self._opened

    def heal(self) -> None:
        """Break nothing from now on; connections that a fault waits for are cut once more."""
        self._healed.set()

    def close(self) -> None:
        """End it, and every connection through it."""
        self._healed.set()
        self._over.set()
        self._accepting.join()
        self._listening.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listening.accept()
            except TimeoutError:
                continue
            number, self._opened = self._opened, self._opened + 1
            faults = None if self._healed.is_set() else Faults(1_000_003 * self._seed + number, self._mean)
            threading.Thread(target=self._serve, args=(number, client, faults), daemon=True).start()

    def _serve(self, number: int, client: socket.socket, faults: Faults | None) -> None:
        with contextlib.suppress(OSError), client:
            client.settimeout(None)
            with _connected(self._target) as server:
                try:
                    self._pass_on(number, client, server, faults)
                finally:
                    for one in (client, server):  # closing it sends a reset, which loses what was not yet read
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _pass_on(self, number: int, client: socket.socket, server: socket.socket, faults: Faults | None) -> None:
        """Copy both directions until both have ended, or the connection is cut."""
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, (client, server, True))
            selector.register(server, selectors.EVENT_READ, (server, client, False))
            while selector.get_map():
                for key, _ in selector.select(0.1):
                    source, target, outward = key.data
                    data = source.recv(AT_ONCE)
                    if number < self._stalled and data:
                        continue
                    fault = faults.struck(outward, len(data)) if faults is not None else None
                    self._send(target, data, fault)
                    if fault is not None and fault.kind == "cut":
                        return
                    if not data or (fault is not None and fault.kind == "half-closed"):
                        selector.unregister(source)
                        target.shutdown(socket.SHUT_WR)
                if self._over.is_set() or (faults is not None and self._healed.is_set()):
                    return

    def _send(self, target: socket.socket, data: bytes, fault: Fault | None) -> None:
        """Pass bytes on: all, those before the end, after a while, or in small pieces with a pause after each."""
        kind = "" if fault is None else fault.kind
        self.struck.update([kind] if kind else [])
        if fault is not None and kind in ("cut", "half-closed"):
            data = data[: fault.after]
        if kind == "delayed":
            self._healed.wait(self._seconds)
        size = DRIP if kind == "throttled" else AT_ONCE
        for start in range(0, len(data), size):
            target.sendall(data[start : start + size])
            if kind == "throttled":
                self._healed.wait(DRIP_SECONDS)


def _connected(target: Target) -> socket.socket:
    if isinstance(target, tuple):
        return socket.create_connection(target)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(target)
    return connection


@contextlib.contextmanager
def proxy(target: Target, seed: int, mean_bytes: int, seconds: float = 0.5) -> Iterator[Proxy]:
    """A proxy that goes with the test."""
    running = Proxy(target, seed, mean_bytes, seconds)
    try:
        yield running
    finally:
        running.close()


def postgres_target(url: object) -> Target:
    """Where the PostgreSQL of an SQLAlchemy URL listens: a Unix socket's path, or host and port."""
    from sqlalchemy.engine import make_url

    where = make_url(str(url))
    host = str(where.query.get("host") or where.host or "127.0.0.1")
    return f"{host}/.s.PGSQL.{where.port or 5432}" if host.startswith("/") else (host, where.port or 5432)
