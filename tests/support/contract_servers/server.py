"""An HTTP server that keeps what it was sent, and misbehaves when it is told to: dead, slow, errors, half answers, redirects."""

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

Json = dict[str, Any]


class Asked(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Fault(NamedTuple):
    """How a request is answered instead of as the contract has it. `taken`: it takes effect all the same."""

    status: int = 0
    headers: dict[str, str] = {}  # noqa: RUF012
    half: bool = False
    hang: threading.Event | None = None
    body: bytes = b"{}"
    taken: bool = False


class ContractServer:
    """Answers each request by `answer`, unless `fault` has something else for it."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.fault: Callable[[Asked], Fault | None] = lambda _: None
        self._lock = threading.Lock()
        outer = self

        class Taker(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._take(self)

            def do_POST(self) -> None:
                outer._take(self)

            def do_DELETE(self) -> None:
                outer._take(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Status and body by the contract."""
        return 200, {}

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        content = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        path = handler.path if "?" in handler.path else unquote(handler.path)
        asked = Asked(handler.command, path, dict(handler.headers), json.loads(content) if content else None)
        fault = self.fault(asked)
        with self._lock:
            self.asked.append(asked)
            if fault is not None and fault.taken:
                self.answer(asked)
        if fault is not None:
            self._misbehave(handler, fault)
            return
        with self._lock:
            status, answer = self.answer(asked)
        self._reply(handler, status, json.dumps(answer).encode(), {})

    def _misbehave(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        if fault.hang is not None:
            fault.hang.wait(60)
        if fault.half:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
        elif not fault.status:
            handler.connection.close()
            handler.close_connection = True
        else:
            self._reply(handler, fault.status, fault.body, fault.headers)

    def _reply(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        handler.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def path_of(asked: Asked) -> str:
    """The path without its parameters."""
    return urlsplit(asked.path).path
