"""Killed backends and full disks lose no acknowledged event, and work resumes.

Files that may not grow are a full disk of a real process, a bound on the pages of a file is
SQLite's own. PostgreSQL's disk is full where its own error for that (53100) comes out of a trigger:
its files are those of the whole suite. `make soak` ends more backends: STRANDLINE_SOAK_BACKENDS
(2,000), STRANDLINE_SOAK_SEED.
"""

from __future__ import annotations

import os
import random
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Connection, Engine, event

from fixtures.kafka import PATIENCE, environ_of, make_topic, process, send, taken
from fixtures.servers import serving
from fixtures.versions_server.process import Served, served
from fixtures.waiting import wait_until
from strandline.store.sql.engine import file_of, make_engine, reading
from worlds.simulation.senders import Heard, is_stored_once, post_all
from worlds.simulation.stores import arrivals, check

BACKENDS = int(os.environ.get("STRANDLINE_SOAK_BACKENDS", "2000"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))
ROOM = 100_000  # bytes that a file may still grow by
NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
REFUSED = (
    "5",
    "the database does not take events",
)  # the log has the reason, which is no sender's business
OTHERS = """SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'tests'
AND backend_type = 'client backend' ORDER BY pid"""
FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON event_keys FOR EACH ROW EXECUTE FUNCTION full_disk()
"""


@pytest.fixture
def reader_engine(postgres_url: str) -> Iterator[Engine]:
    """An engine on a PostgreSQL database, whose own backends nobody ends."""
    engine = make_engine(f"{postgres_url}&application_name=tests")
    yield engine
    engine.dispose()


def fill(reader_engine: Engine) -> None:
    """Nothing can be inserted for want of room, until the trigger goes."""
    with reader_engine.begin() as connection:
        connection.exec_driver_sql(FULL)


def mend(engine: Engine) -> None:
    """There is room again."""
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER full_disk ON event_keys")


def post_while_backends_end(
    seed: int, count: int, slices: int, url: str, reader_engine: Engine, folder: Path
) -> tuple[Heard, list[bytes]]:
    """Clients send to a server whose backends are ended one by one; what they heard and sent."""
    bodies = arrivals(seed, slices)
    with served(url, folder) as (server,), ending_backends(seed, count, reader_engine):
        return post_all(f"http://127.0.0.1:{server.port}", bodies, reader_engine), bodies


@contextmanager
def ending_backends(seed: int, count: int, reader_engine: Engine) -> Iterator[None]:
    """End one backend after the other, at random moments, until so many have ended or the block is over."""
    over, ended = threading.Event(), list[int]()
    thread = threading.Thread(
        target=_end_backends,
        args=(random.Random(seed), count, reader_engine, over, ended),
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        print(f"seed {seed}: {len(ended)} backends were ended")
    assert ended


def _end_backends(
    chance: random.Random,
    count: int,
    reader_engine: Engine,
    over: threading.Event,
    ended: list[int],
) -> None:
    with reader_engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        while len(ended) < count and not over.wait(chance.uniform(0, 0.2)):
            if pids := connection.exec_driver_sql(OTHERS).scalars().all():
                pid = chance.choice(pids)
                connection.exec_driver_sql(f"SELECT pg_terminate_backend({pid})")
                ended.append(pid)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("seed", "count", "slices"),
    [
        pytest.param(1, 30, 3, id="30 backends"),
        pytest.param(SEED, BACKENDS, BACKENDS // 5, id="soak", marks=pytest.mark.soak),
    ],
)
def test_server_answers_correctly_while_its_backends_are_killed(
    seed: int,
    count: int,
    slices: int,
    postgres_url: str,
    reader_engine: Engine,
    sqlite_url: str,
    tmp_path: Path,
) -> None:
    heard, bodies = post_while_backends_end(
        seed, count, slices, postgres_url, reader_engine, tmp_path
    )
    print(f"{len(bodies)} events: {dict(heard.statuses)}")

    assert heard.statuses.keys() <= {201, 503}
    assert heard.missing == []
    check(reader_engine, bodies, sqlite_url)


def test_server_rejects_events_while_its_file_is_full_and_recovers(
    sqlite_url: str, tmp_path: Path, sqlite_template: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, reader_engine, bodies = (
        make_engine(sqlite_url),
        reading(make_engine(sqlite_url)),
        arrivals(1, 2),
    )
    pages = [2**30]
    event.listen(engine, "begin", lambda connection: bound_pages(connection, pages[0]))
    with serving(engine) as address, httpx.Client(base_url=address, timeout=60) as client:
        pages[0] = page_count(reader_engine) + 5
        answers = [client.post("/api/v1/lineage", content=body) for body in bodies]
        refused = [one for one in answers if one.status_code == 503]
        stored = [body for body, one in zip(bodies, answers, strict=True) if one.status_code == 201]
        with reader_engine.connect() as connection:
            there = [body for body in bodies if is_stored_once(connection, body)]
        pages[0] = 2**30
        heard = post_all(address, bodies, reader_engine)
    engine.dispose()

    assert {one.status_code for one in answers} == {201, 503}
    assert {(one.headers["retry-after"], one.json()["detail"]) for one in refused} == {REFUSED}
    assert "database or disk is full" in capsys.readouterr().err
    assert there == stored
    assert heard.statuses.keys() == {201}
    assert heard.missing == []
    check(reader_engine, bodies, fresh(sqlite_template, tmp_path))


def bound_pages(connection: Connection, pages: int) -> None:
    connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def page_count(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("PRAGMA page_count").scalar_one())


def fresh(template: Path, folder: Path) -> str:
    """Another migrated file."""
    (folder / "reference.db").write_bytes(template.read_bytes())
    return f"sqlite:///{folder}/reference.db"


def test_server_rejects_events_while_its_files_cannot_grow_and_recovers(
    sqlite_url: str, tmp_path: Path, sqlite_template: Path
) -> None:
    bodies, reader_engine = arrivals(2, 2), reading(make_engine(sqlite_url))
    with served(sqlite_url, tmp_path) as (server,):
        limit(server, room(sqlite_url))
        answers = [server.client.post("/api/v1/lineage", content=body) for body in bodies]
        stored = [body for body, one in zip(bodies, answers, strict=True) if one.status_code == 201]
        limit(server, resource.RLIM_INFINITY)
        with reader_engine.connect() as connection:
            assert [body for body in bodies if is_stored_once(connection, body)] == stored
        heard = post_all(f"http://127.0.0.1:{server.port}", bodies, reader_engine)

    assert {one.status_code for one in answers} == {201, 503}
    assert "disk I/O error" in (tmp_path / f"{server.port}.log").read_text()
    assert heard.missing == []
    check(reader_engine, bodies, fresh(sqlite_template, tmp_path))


def room(url: str) -> int:
    """The size that no file may exceed: that of the larger one now, and a little."""
    file = file_of(url)
    assert file is not None
    return max(one.stat().st_size for one in file.parent.glob(f"{file.name}*")) + ROOM


def limit(server: Served, size: int) -> None:
    """Let no file of the server grow beyond a size."""
    for pid in server.processes():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.kafka
def test_consumer_waits_while_its_files_cannot_grow_and_recovers(
    kafka: str, sqlite_url: str, tmp_path: Path, sqlite_template: Path
) -> None:
    topic, bodies, reader_engine, log = (
        f"full-{os.getpid()}",
        arrivals(3, 3),
        reading(make_engine(sqlite_url)),
        tmp_path / "log",
    )
    make_topic(kafka, topic)
    send(kafka, topic, bodies)
    bounded = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({room(sqlite_url)}, resource.RLIM_INFINITY))"
    with process(
        environ_of(reader_engine, kafka, topic, batch_records="5"), bounded, log
    ) as running:
        wait_until(lambda: "does not answer" in log.read_text(), PATIENCE)
        assert 0 < taken(reader_engine) < len(bodies)
        resource.prlimit(running.pid, resource.RLIMIT_FSIZE, NO_LIMIT)
        wait_until(lambda: taken(reader_engine) == len(bodies), PATIENCE)

    check(reader_engine, bodies, fresh(sqlite_template, tmp_path))


@pytest.mark.postgres
@pytest.mark.kafka
def test_consumer_waits_while_postgresql_is_full_and_recovers(
    postgres_url: str, reader_engine: Engine, kafka: str, sqlite_url: str, tmp_path: Path
) -> None:
    topic, bodies, log = f"full-pg-{os.getpid()}", arrivals(4, 1), tmp_path / "log"
    fill(reader_engine)
    make_topic(kafka, topic)
    send(kafka, topic, bodies)
    with process(environ_of(reader_engine, kafka, topic), "", log):
        wait_until(lambda: "No space left on device" in log.read_text(), PATIENCE)
        assert taken(reader_engine) == 0
        mend(reader_engine)
        wait_until(lambda: taken(reader_engine) == len(bodies), PATIENCE)

    check(reader_engine, bodies, sqlite_url)


@pytest.mark.postgres
def test_server_rejects_events_while_postgresql_is_full_and_recovers(
    reader_engine: Engine, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies = arrivals(5, 1)
    fill(reader_engine)
    with serving(reader_engine) as address:
        refused = [httpx.post(f"{address}/api/v1/lineage", content=body) for body in bodies[:3]]
        mend(reader_engine)
        heard = post_all(address, bodies, reader_engine)

    assert {one.status_code for one in refused} == {503}
    assert {(one.headers["retry-after"], one.json()["detail"]) for one in refused} == {REFUSED}
    assert "No space left on device" in capsys.readouterr().err
    assert heard.missing == []
    check(reader_engine, bodies, sqlite_url)
