"""Many concurrent queries while facts arrive: no deadlock over connections."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event

from fixtures.versions_server.events import appended, committed, started
from fixtures.versions_server.server import Server, running, tables
from strandline.store.sql.engine import reading

JSON = dict[str, Any]
POOL = 15  # connections that an engine opens at most
PATIENCE = 600  # seconds for which a question waits on a busy machine
NAMED = "namespace=iceberg%3A%2F%2Flake&name=db.a"
QUESTIONS: dict[str, tuple[str, str, JSON | None]] = {
    "strong": ("POST", "/api/v2/versions", {"tables": tables("db.a")}),
    "wait": ("POST", "/api/v2/versions", {"tables": tables("db.a"), "waitForBarrier": 1}),
    "cut": ("POST", "/api/v2/versions", {"tables": tables("db.a"), "consistency": "cut"}),
    "delay": ("GET", f"/api/v2/delays?{NAMED}", None),
    "expirable": ("GET", f"/api/v2/expirable?{NAMED}", None),
    "table": ("GET", "/version/strong/iceberg%3A%2F%2Flake/db/a", None),
}


@pytest.fixture
def crowded(engine: Engine) -> Iterator[Server]:
    """A server whose pool has one connection left.

    The others are lent to somebody who keeps them.
    """
    with running(engine, question_seconds=PATIENCE) as server, ExitStack() as lent:
        server.post(started("to_a", 0, [], ["db.a"], group="d"), barrier(1))
        server.versions("db.a")
        for _ in range(POOL - 1 - engine.pool.checkedout()):  # type: ignore[attr-defined]
            lent.enter_context(reading(engine).connect())
        yield server


def barrier(number: int) -> JSON:
    """Return the job's event of one micro-batch."""
    parents = {"db.a": f"a{number - 1}"} if number > 1 else {}
    return committed(
        "to_a", 10.0 + number, number, {}, {"db.a": f"a{number}"}, group="d", parents=parents
    )


@pytest.mark.parametrize("question", QUESTIONS)
def test_twenty_concurrent_queries_are_answered_beside_new_facts(
    crowded: Server, question: str
) -> None:
    method, path, body = QUESTIONS[question]

    def ask(_: int) -> int:
        return crowded.client.request(method, path, json=body).status_code

    with ThreadPoolExecutor(21) as threads:
        answers = threads.map(ask, range(60))
        for number in range(2, 6):
            crowded.post(barrier(number))

        assert set(answers) == {200}
    assert crowded.barriers("db.a") == {"db.a": 5}


@pytest.mark.parametrize("weakly", [True, False])
def test_latest_snapshot_query_reads_one_row_without_blocking_others(
    server: Server, weakly: bool
) -> None:
    """A table may have 100,000 snapshots; reading all of them would make other readers wait."""
    server.post(*(appended("batch", number, "db.lookup", f"l{number}") for number in range(1, 4)))
    read: list[tuple[bool, bool]] = []

    def look(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        if "FROM snapshots" in statement:
            read.append((may_ask(server), "LIMIT" in statement))

    event.listen(server.engine, "before_cursor_execute", look)
    if weakly:
        assert server.snapshots("db.lookup", consistency="weak") == {"db.lookup": "l3"}
    else:
        assert server.get("/version/weak/iceberg%3A%2F%2Flake/db/lookup")["snapshotId"] == "l3"
    event.remove(server.engine, "before_cursor_execute", look)

    assert read[0] == (True, True)
    assert all(others_may_ask for others_may_ask, _ in read)


def may_ask(server: Server) -> bool:
    """Return true if another thread gets the model just now."""

    def ask() -> None:
        with server.follower.model():
            pass

    other = Thread(target=ask, daemon=True)
    other.start()
    other.join(60)
    return not other.is_alive()


def test_exhausted_connection_pool_gets_503_and_logs_no_error(engine: Engine) -> None:
    """The client retries, and no stack trace is logged."""
    small = create_engine(engine.url, pool_size=1, max_overflow=0, pool_timeout=0.01)
    with running(engine) as server, small.connect():
        server.client.app.state.engine = small  # type: ignore[attr-defined]
        answer = server.client.get("/api/v2/events")
    small.dispose()

    assert (answer.status_code, answer.json()["code"]) == (503, "overload")
    assert answer.headers["retry-after"] == "5"
