"""A TCP port that misbehaves in a chosen way until it is healed, and then passes bytes on to a real server."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

ANSWERS = {
    "500": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
    "503": b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    "redirect": b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "authentication refused": b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
    "garbage": bytes(range(256)) * 4,
}
FAULTS = (
    "absent",
    "name unresolved",
    "black hole",
    "reset",
    "slow",
    "half-closed",
    "500",
    "503",
    "garbage",
    "redirect",
    "TLS wrong",
    "authentication refused",
)


class Relay:
    """One port in front of one server."""

    def __init__(self, fault: str, target: tuple[str, int]) -> None:
        self._fault: str | None = fault
        self._target = target
        self._over = threading.Event()
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listening = socket.socket()
        self._listening.bind(("127.0.0.1", 0))  # bound and not listening, it refuses connections and keeps its port
        self.port = self._listening.getsockname()[1]
        if fault != "absent":
            self._serve()

    def heal(self) -> None:
        """From now on it passes bytes on; connections that it still holds are closed."""
        was, self._fault = self._fault, None
        if was == "absent":
            self._serve()
        self._drop()

    def close(self) -> None:
        """Ends it."""
        self._over.set()
        with contextlib.suppress(OSError):
            self._listening.close()
        self._drop()

    def _serve(self) -> None:
        self._listening.listen(100)
        self._listening.settimeout(0.05)
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        while not self._over.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            connection.settimeout(None)
            self._hold(connection)
            threading.Thread(target=self._treat, args=(connection,), daemon=True).start()

    def _treat(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._fault is None:
                self._pass_on(connection)
            elif self._fault == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
            elif self._fault == "half-closed":
                connection.shutdown(socket.SHUT_WR)
                connection.recv(65_536)
            elif self._fault == "slow":
                self._drip(connection)
            elif self._fault in ANSWERS:
                connection.recv(65_536)
                connection.sendall(ANSWERS[self._fault])
            # a black hole, and a server without TLS where TLS is spoken: it says nothing

    def _drip(self, connection: socket.socket) -> None:
        for byte in b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nX-Slow: " + b"x" * 1000:
            connection.sendall(bytes([byte]))
            if self._over.wait(0.2) or self._fault is None:
                return

    def _pass_on(self, connection: socket.socket) -> None:
        server = socket.create_connection(self._target, timeout=5)
        server.settimeout(None)
        self._hold(server)
        threading.Thread(target=_copy, args=(server, connection), daemon=True).start()
        _copy(connection, server)

    def _hold(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.append(connection)

    def _drop(self) -> None:
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()
            self._open.clear()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relay(fault: str, target: tuple[str, int]) -> Iterator[Relay]:
    """A relay that goes with the test."""
    made = Relay(fault, target)
    try:
        yield made
    finally:
        made.close()
