"""The least that a POST costs.

The server's own libraries read the event, answer 201 and store nothing.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from bench import _senders
from bench._machine import ROOT, cpu_micros, wait_for
from deploy.kafka import free_port

Message = MutableMapping[str, Any]


async def answer(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Read the body of a request to its end, and answer 201."""
    body = bytearray()
    more = scope["type"] == "http"
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await send(
        {"type": "http.response.start", "status": 201, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b""})


def bare_load(bodies: Sequence[bytes], connections: int) -> tuple[float, float]:
    """(requests a second, microseconds of the server's processor time for each) where each body is posted once."""
    with _bare_server() as (port, server):
        cpu = cpu_micros(server)
        load = _senders.load(port, bodies, connections)
        return load.per_second(), (cpu_micros(server) - cpu) / len(bodies)


@contextmanager
def _bare_server() -> Iterator[tuple[int, int]]:
    """(port, process id) of such a server, with the parser and the event loop of `strandline serve`."""
    port = free_port()
    running = subprocess.Popen([sys.executable, "-m", __name__, str(port)], cwd=ROOT)
    try:
        wait_for(lambda: _listens(port))
        yield port, running.pid
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(60)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    uvicorn.run(
        answer,
        port=int(sys.argv[1]),
        http="httptools",
        loop="uvloop",
        lifespan="off",
        access_log=False,
        log_config=None,
    )
