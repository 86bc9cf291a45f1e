"""Costly questions: nobody else waits for them, and they end when nobody needs them."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from sqlalchemy import Engine, text

from fixtures.servers import SECONDS, SETTINGS, client_of, post, problem, serving
from strandline.api import app as application
from strandline.api import serving as servers
from strandline.api.app import create_app
from strandline.api.http import questions
from strandline.api.http.questions import Questions
from strandline.api.http.route import Route
from strandline.api.http.session import ReadSession
from strandline.api.listening import address_of, listen
from strandline.core.stopping import go_on
from strandline.errors import OverloadError, StoppedError
from strandline.logs import make_log
from strandline.store.sql.engine import read_from
from worlds.sample_events import run_event

TOO_LONG = (
    "the question took longer than 1 s: ask for less (depth, limit, one column), "
    "or let questions take longer with STRANDLINE_QUESTION_SECONDS"
)
STOPPING = "the server is stopping; ask again when it is back"
ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(100000)",
}


class EndlessQuestions:
    """Two questions that never end by themselves, and how many of them have begun and ended."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Semaphore(0), threading.Semaphore(0)

    @property
    def router(self) -> APIRouter:
        """The questions: a statement of the database, and a loop in Python."""
        router = APIRouter(prefix="/api/v2", route_class=Route)

        @router.get("/statement")
        def get_statement(session: ReadSession) -> None:
            with self._bracket():
                _statement(session.engine)

        @router.get("/loop")
        def get_loop(session: ReadSession) -> None:
            with self._bracket():
                _loop()

        return router

    @contextmanager
    def _bracket(self) -> Iterator[None]:
        self.begun.release()
        try:
            yield
        finally:
            self.ended.release()


def _statement(engine: Engine) -> None:
    with read_from(engine) as connection:
        connection.execute(text(ENDLESS[engine.dialect.name]))


def _loop() -> None:
    while True:
        go_on()


def wait_for(semaphore: threading.Semaphore, count: int) -> None:
    for _ in range(count):
        assert semaphore.acquire(timeout=SECONDS)


def drop_question(address: str, path: str, endless: EndlessQuestions) -> None:
    """Ask, and go away when the question runs."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        wait_for(endless.begun, 1)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> EndlessQuestions:
    endless = EndlessQuestions()
    monkeypatch.setattr(application, "ROUTERS", (*application.ROUTERS, endless.router))
    return endless


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as pool:
        yield pool


@pytest.mark.parametrize("path", ["/api/v2/statement", "/api/v2/loop"])
def test_question_ends_when_its_client_has_gone(
    engine: Engine, endless: EndlessQuestions, path: str
) -> None:
    with serving(engine) as address:
        drop_question(address, path, endless)

        wait_for(endless.ended, 1)
        assert httpx.get(f"{address}/api/v2/jobs").json()["items"] == []


@pytest.mark.parametrize("path", ["/api/v2/statement", "/api/v2/loop"])
def test_question_that_takes_too_long_gets_a_remedy(
    engine: Engine, endless: EndlessQuestions, path: str
) -> None:
    with serving(engine, replace(SETTINGS, question_seconds=1)) as address:
        answer = httpx.get(f"{address}{path}", timeout=SECONDS)

    assert problem(answer) == (503, "stopped", TOO_LONG)


def test_readiness_health_metrics_and_intake_wait_for_no_question(
    engine: Engine, endless: EndlessQuestions, pool: ThreadPoolExecutor
) -> None:
    """One client asks many more endless questions than may run, then goes away."""
    with serving(engine) as address:
        client = client_of(address)
        asked = [pool.submit(client.get, "/statement", timeout=60) for _ in range(12)]
        wait_for(endless.begun, 2)

        paths = ("/healthz", "/readyz", "/metrics")
        statuses = [httpx.get(f"{address}{path}", timeout=SECONDS).status_code for path in paths]
        posted = post(f"{address}/api/v1/lineage", json=run_event()).status_code

        assert (statuses, posted) == ([200, 200, 200], 201)
        assert not any(one.done() for one in asked)
        assert not endless.begun.acquire(blocking=False)  # two of a client run at once
        client.close()


def test_client_with_too_many_waiting_questions_is_refused(
    sqlite_engine: Engine,
    endless: EndlessQuestions,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "WAITING_OF_CLIENT", 0)
    with serving(sqlite_engine, replace(SETTINGS, question_seconds=2)) as address:
        refused = httpx.get(f"{address}/api/v2/loop", timeout=SECONDS)

    assert problem(refused) == (
        503,
        "overload",
        "0 questions of this client wait already; ask again later",
    )
    assert refused.headers["Retry-After"] == "1"


def test_server_ends_while_questions_run(
    engine: Engine, endless: EndlessQuestions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "QUESTION_STOP_SECONDS", 0)
    settings = replace(SETTINGS, question_seconds=3600)
    listening = listen(settings)
    address = address_of(listening)
    server = servers.Server(create_app(engine, settings, log=make_log(level="error")), settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    answers: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: answers.append(httpx.get(f"{address}/api/v2/statement", timeout=SECONDS))
    )
    asking.start()
    wait_for(endless.begun, 1)

    server.end()

    thread.join(SECONDS)
    asking.join(SECONDS)
    assert not thread.is_alive()
    assert problem(answers[0]) == (503, "stopped", STOPPING)


def fake_request() -> Any:
    async def is_disconnected() -> bool:
        return False

    return SimpleNamespace(is_disconnected=is_disconnected)


def test_one_client_leaves_threads_for_others() -> None:
    """Of ten questions of one client two run; the question of another overtakes the rest."""
    opened = threading.Event()

    async def ask_all() -> list[str]:
        asked, order = Questions(20), list[str]()

        async def ask(client: str, wait: Callable[[], object]) -> None:
            await asked.answer(fake_request(), client, wait)
            order.append(client)

        tasks = [asyncio.create_task(ask("greedy", opened.wait)) for _ in range(10)]
        await asyncio.sleep(0)
        assert asked.counts == (2, 8)
        await ask("modest", lambda: None)
        opened.set()
        await asyncio.gather(*tasks)
        assert asked.counts == (0, 0)
        return order

    assert asyncio.run(ask_all()) == ["modest", *["greedy"] * 10]


def test_questions_beyond_all_that_may_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "WAITING", 0)

    with pytest.raises(OverloadError, match="0 questions wait already; ask again later"):
        asyncio.run(Questions(20).answer(fake_request(), "", lambda: None))


def test_newest_question_is_stopped_while_memory_is_short_and_none_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "LOOK_SECONDS", 0.01)
    is_short, is_over = threading.Event(), threading.Event()

    def loop() -> None:
        while not is_over.wait(0.01):
            go_on()

    async def ask_all() -> None:
        asked = Questions(SECONDS, lambda: 0.85 if is_short.is_set() else 0.5)
        asked.start()
        first, newest = (
            asyncio.create_task(asked.answer(fake_request(), "", loop)) for _ in range(2)
        )
        await asyncio.sleep(0)
        is_short.set()
        with pytest.raises(StoppedError, match="the memory of the server is short; ask again"):
            await newest

        waiting = [asyncio.create_task(asked.answer(fake_request(), "", loop)) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert asked.counts == (1, 2)
        first.cancel()
        await asyncio.sleep(0.05)
        assert asked.counts == (1, 1)
        is_short.clear()
        while asked.counts != (2, 0):
            await asyncio.sleep(0.01)
        is_over.set()
        await asyncio.gather(*waiting)
        await asked.end()

    asyncio.run(ask_all())


@pytest.mark.parametrize(("first", "later"), [(0.3, 0.95), (0.95, 1.01)])
def test_only_question_is_stopped_when_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch, first: float, later: float
) -> None:
    monkeypatch.setattr(questions, "LOOK_SECONDS", 0.01)
    looks = chain([first], repeat(later))

    async def ask() -> None:
        asked = Questions(SECONDS, lambda: next(looks))
        asked.start()
        try:
            await asked.answer(fake_request(), "", _loop)
        finally:
            await asked.end()

    with pytest.raises(StoppedError, match="needs more memory than the server has left"):
        asyncio.run(ask())


def test_single_question_continues_if_memory_was_full_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "LOOK_SECONDS", 0.01)
    looks = threading.Semaphore(0)

    def used() -> float:
        looks.release()
        return 0.95

    def answer_after_looks() -> str:
        for _ in range(5):
            while not looks.acquire(timeout=0.01):
                go_on()
        go_on()
        return "answer"

    async def ask() -> str:
        asked = Questions(SECONDS, used)
        asked.start()
        try:
            return await asked.answer(fake_request(), "", answer_after_looks)
        finally:
            await asked.end()

    assert asyncio.run(ask()) == "answer"
