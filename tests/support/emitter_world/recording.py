"""An HTTP server that records what is posted, and answers as it is told."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Recorder:
    """What was received: (path, headers, body) of each request, and the status of the next answers."""

    port: int
    status: int = 201
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def bodies(self) -> list[bytes]:
        """The bodies that were answered with 2xx."""
        with self.changed:
            return [body for _, _, body in self.requests]

    def documents(self) -> list[Any]:
        """The events as JSON: what else a collector is asked has no body, or another path."""
        with self.changed:
            return [json.loads(body) for path, _, body in self.requests if body and "/api/v2/" not in path]

    def wait_until(self, enough: Callable[[], bool], seconds: float = 30) -> bool:
        """Waits until enough has been taken."""
        with self.changed:
            return self.changed.wait_for(enough, seconds)


@contextmanager
def recorder(tls: ssl.SSLContext | None = None) -> Iterator[Recorder]:
    """A server on a free port."""

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            with found.changed:
                if 200 <= found.status < 300:
                    found.requests.append((self.path, dict(self.headers), body))
                found.changed.notify_all()
            self.send_response(found.status)
            for name, value in {"Content-Length": "0", **found.headers}.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST = do_PUT = do_DELETE = _take  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    found = Recorder(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def failing_at(text: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers 500 to each body with that text, and what it took of others."""
    got: list[bytes] = []

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if text not in body:
                got.append(body)
            self.send_response(500 if text in body else 201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
