"""A collector that really listens, in a thread of the test's process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import uvicorn
from sqlalchemy import Engine

from strandline.api.answering.listening import address_of, listen_alone
from strandline.api.app import create_app
from strandline.api.http.connections import bounded
from strandline.logs import make_log
from strandline.settings import Settings

SECONDS = 90  # of a machine that does much else
# Readiness looks at the memory of the whole process; the process of a test suite grows with its tests.
SETTINGS = Settings(port=0, memory_bytes=64 * 2**30)


@contextmanager
def serving(engine: Engine, settings: Settings = SETTINGS) -> Iterator[str]:
    """The address of a server on this engine, whatever port was free."""
    listening = listen_alone(replace(settings, host="127.0.0.1", port=0))
    app = create_app(engine, settings, log=make_log(level="error"))
    server = uvicorn.Server(uvicorn.Config(app, http=bounded(settings), log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + SECONDS
    try:
        while not server.started:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.01)
        yield address_of(listening)
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        listening.close()


def problem(answer: httpx.Response) -> tuple[int, str, str]:
    """Status, code and detail of a problem document."""
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == answer.status_code
    return answer.status_code, document["code"], document["detail"]


def post(address: str, **how: Any) -> httpx.Response:
    """A request of a client of its own, which reads no certificates: that alone would take 35 ms."""
    return httpx.post(address, verify=False, **{"timeout": SECONDS, **how})
