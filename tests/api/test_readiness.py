"""Readiness: an event sent now would be stored."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import post, problem, serving
from strandline.store.sql.engine import make_engine
from worlds.sample_events import run_event

MAKE = "CREATE TABLE somebody_elses (number INTEGER)"
HOLD = {
    "sqlite": "INSERT INTO somebody_elses VALUES (1)",
    "postgresql": "LOCK TABLE runs IN SHARE MODE",
}


@pytest.fixture
def address(own_engine: Engine) -> Iterator[str]:
    with serving(own_engine) as address:
        yield address


def faults(address: str) -> tuple[int, list[str]]:
    """The status of /readyz, and what stands against it."""
    answer = httpx.get(f"{address}/readyz", timeout=60)
    return answer.status_code, sorted(answer.json()["faults"])


def test_server_is_not_ready_while_the_database_is_locked(own_engine: Engine, address: str) -> None:
    other = make_engine(str(own_engine.url.render_as_string(hide_password=False)))
    with other.begin() as connection:
        connection.exec_driver_sql(MAKE)
    with other.begin() as connection:
        connection.exec_driver_sql(HOLD[own_engine.dialect.name])

        assert faults(address) == (503, ["database"])
    other.dispose()

    assert faults(address) == (200, [])
    assert post(f"{address}/api/v1/lineage", json=run_event()).status_code == 201


def test_server_is_ready_while_writers_take_turns_with_the_lock(own_sqlite_engine: Engine) -> None:
    """A store under constant writes is locked at every check and still accepts events."""
    stopping = threading.Event()
    with own_sqlite_engine.begin() as connection:
        connection.exec_driver_sql(MAKE)

    def write() -> None:
        while not stopping.is_set():
            with own_sqlite_engine.begin() as connection:
                connection.exec_driver_sql(HOLD["sqlite"])

    writers = [threading.Thread(target=write) for _ in range(2)]
    with serving(own_sqlite_engine) as address:
        for writer in writers:
            writer.start()
        answers = [faults(address) for _ in range(5)]
        stopping.set()
        for writer in writers:
            writer.join()

    assert answers == [(200, [])] * 5


def test_damaged_file_is_reported_by_questions_posts_and_readiness(
    own_sqlite_engine: Engine,
) -> None:
    url = own_sqlite_engine.url.render_as_string(hide_password=False)
    file = Path(own_sqlite_engine.url.database or "")
    own_sqlite_engine.dispose()  # the last connection moves the log into the file
    with serving(make_engine(url)) as address:
        assert faults(address) == (200, [])
        with file.open("r+b") as opened:
            opened.seek(4096)
            opened.write(b"\xff" * (file.stat().st_size - 4096))

        asked = httpx.get(f"{address}/api/v2/jobs", timeout=60)
        posted = post(f"{address}/api/v1/lineage", json=run_event())
        unready = faults(address)

    damage = "the database is damaged: database disk image is malformed"
    assert problem(asked) == (503, "database", damage)
    assert problem(posted) == (503, "overload", damage)
    assert (unready[0], "damage" in unready[1]) == (503, True)
