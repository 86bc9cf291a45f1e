"""`strandline serve` in a process of its own on a database, and events that come in while something else is measured."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.events import events
from strandline.api.listening import listen
from strandline.settings import Settings

PATIENCE = 60
AT_ONCE = 20


@contextmanager
def serving(url: str) -> Iterator[int]:
    """Yield the port of a server on this database."""
    free = listen(Settings(host="127.0.0.1", port=0))
    port = int(free.getsockname()[1])
    free.close()
    environ = os.environ | {"STRANDLINE_DATABASE_URL": url, "STRANDLINE_PORT": str(port)}
    command = [sys.executable, "-m", "strandline", "serve", "--log-level", "error"]
    with subprocess.Popen(command, env=environ) as process:
        try:
            _wait(port)
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE)


@contextmanager
def events_coming_in(port: int, rate: int) -> Iterator[None]:
    """A thread posts `rate` Spark events a second, as far as they are taken."""
    bodies = [b"[" + b",".join(events(AT_ONCE, seed)) + b"]" for seed in range(10)]
    stop = threading.Event()
    thread = threading.Thread(target=_post, args=(port, bodies, AT_ONCE / rate, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    """The body of an answer; RuntimeError if it is a refusal.

    What the server closed while it was idle is opened anew.
    """
    try:
        answer = _asked(connection, path)
    except http.client.RemoteDisconnected:
        connection.close()
        answer = _asked(connection, path)
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
    return content


def _asked(connection: http.client.HTTPConnection, path: str) -> http.client.HTTPResponse:
    connection.request("GET", path)
    return connection.getresponse()


def _post(port: int, bodies: list[bytes], pause: float, stop: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    turn = 0
    while not stop.wait(pause):
        fresh = bodies[turn % len(bodies)].replace(b'"rowCount": ', b'"rowCount": %d' % (turn + 1))
        connection.request(
            "POST", "/api/v1/lineage/batch", fresh, {"Content-Type": "application/json"}
        )
        answer = json.loads(connection.getresponse().read() or b"{}")
        if "results" in answer:
            raise RuntimeError(f"events were refused: {str(answer)[:300]}")
        turn += 1


def _wait(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            get(connection, "/healthz")
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        finally:
            connection.close()
