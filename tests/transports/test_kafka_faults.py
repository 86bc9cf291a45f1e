"""Each record is stored exactly once despite kills, stops, cuts and slowness."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, event, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from fixtures.kafka import (
    PATIENCE,
    Running,
    environ_of,
    process,
    send,
    settings_of,
    stored,
    taken,
    values,
)
from fixtures.waiting import wait_until
from strandline.store.schema.received_tables import set_aside
from strandline.store.sql.engine import make_engine
from worlds.sample_events import as_bytes, run_event

pytestmark = pytest.mark.kafka
SESSION = "6"  # seconds after which a killed process is missed
CONSUMED = 'consumed_events_total{source="kafka"}'
DUPLICATE = 'events_total{outcome="duplicate",source="kafka"}'


@pytest.mark.postgres
def test_slow_database_does_not_cost_group_membership(
    own_postgres_engine: Engine, kafka: str, topic: str
) -> None:
    send(kafka, topic, values(1000))
    impatient = replace(settings_of(kafka, topic), kafka_security={"max_poll_interval_ms": 4000})
    slow = iter([5, 0, 5])  # a claim of a partition, another, a batch
    event.listen(
        own_postgres_engine,
        "commit",
        lambda connection: connection.exec_driver_sql(f"SELECT pg_sleep({next(slow, 0)})"),
    )

    with Running(own_postgres_engine, impatient) as running:
        wait_until(lambda: taken(own_postgres_engine) == 1000)

    assert stored(own_postgres_engine) == 1000
    assert running.log.getvalue().count("partitions assigned") == 1


def test_commit_with_a_lost_answer_counts_once(own_engine: Engine, kafka: str, topic: str) -> None:
    send(kafka, topic, values(1000), partitions=2)
    losing = iter([False] * 2 + [True] * 4)

    def lose_the_answer(connection: Connection) -> None:
        if next(losing, False):
            connection.exec_driver_sql("COMMIT")
            raise OperationalError("COMMIT", {}, ConnectionError("the answer is lost"))

    event.listen(own_engine, "commit", lose_the_answer)

    with Running(own_engine, replace(settings_of(kafka, topic), batch_records=100)) as running:
        wait_until(lambda: running.counted(CONSUMED) == 1000)

    assert stored(own_engine) == 1000
    assert running.counted(DUPLICATE) == 0
    assert list(losing) == []  # all four answers were lost
    assert running.log.getvalue().count("the answer is lost") == 1  # logged once a minute


@pytest.mark.postgres
def test_consumer_waits_for_an_unreachable_database(
    own_postgres_url: str, own_postgres_engine: Engine, kafka: str, topic: str
) -> None:
    send(kafka, topic, values(100), partitions=2)

    with (
        closed(own_postgres_url),
        Running(own_postgres_engine, settings_of(kafka, topic)) as running,
    ):
        wait_until(lambda: "does not answer" in running.log.getvalue())
    with Running(own_postgres_engine, settings_of(kafka, topic)) as again:
        wait_until(lambda: taken(own_postgres_engine) == 100)
        with closed(own_postgres_url):
            send(kafka, topic, values(100, start=100), partitions=2)
            wait_until(lambda: "does not answer" in again.log.getvalue())
        wait_until(lambda: taken(own_postgres_engine) == 200)

    assert str(running.error) == "stopped while the database did not answer: its records come again"
    assert again.error is None
    assert stored(own_postgres_engine) == 200


@contextmanager
def closed(url: str) -> Iterator[None]:
    """Close the database to every connection."""
    server = make_engine(str(make_url(url).set(database="postgres"))).execution_options(
        isolation_level="AUTOCOMMIT"
    )
    name = make_url(url).database
    try:
        with server.connect() as connection:
            connection.exec_driver_sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            connection.exec_driver_sql(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )
        yield
        with server.connect() as connection:
            connection.exec_driver_sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    finally:
        server.dispose()


@pytest.mark.slow
@pytest.mark.postgres
def test_record_that_kills_the_process_three_times_becomes_a_dead_letter(
    own_postgres_engine: Engine, kafka: str, topic: str
) -> None:
    send(kafka, topic, [*values(5), as_bytes(run_event("poison")), *values(5, start=5)])
    environ = environ_of(own_postgres_engine, kafka, topic, kafka_session_seconds=SESSION)

    for _ in range(4):  # in its batch, then three times alone
        with process(environ, POISON) as running:
            running.wait(PATIENCE)
        assert running.returncode == -signal.SIGKILL
    with process(environ, POISON):
        wait_until(lambda: taken(own_postgres_engine) == 11, PATIENCE)

    assert stored(own_postgres_engine) == 10
    with own_postgres_engine.connect() as connection:
        (letter,) = connection.execute(select(set_aside.c.record_offset, set_aside.c.reason)).all()
    assert letter == (5, f"its processing ended the process 3 times (at {topic}[0]@5)")


# Kills the process when it writes the run of that name.
POISON = """
import os, signal
from sqlalchemy import Engine, event
def kill(connection, cursor, statement, parameters, context, many):
    if "poison" in repr(parameters) and "set_aside" not in statement:
        os.kill(os.getpid(), signal.SIGKILL)
event.listen(Engine, "before_cursor_execute", kill)
"""


@pytest.mark.slow
@pytest.mark.postgres
def test_consumer_stopped_in_a_transaction_past_its_session_cannot_commit(
    own_postgres_engine: Engine, kafka: str, topic: str, tmp_path: Path
) -> None:
    environ = environ_of(
        own_postgres_engine, kafka, topic, kafka_session_seconds=SESSION, batch_records="50"
    )
    log = tmp_path / "zombie.log"
    send(kafka, topic, values(1000), partitions=2)
    with process(environ, STOPPED_IN_COMMIT, log) as zombie:
        wait_until(lambda: taken(own_postgres_engine) > 0, PATIENCE)
        wait_until(lambda: is_stopped(zombie.pid), PATIENCE)  # by itself
        with process(environ):
            wait_until(lambda: taken(own_postgres_engine) == 1000, PATIENCE)
            send(kafka, topic, values(200, start=1000), partitions=2)
            wait_until(lambda: taken(own_postgres_engine) == 1200, PATIENCE)
            zombie.send_signal(signal.SIGCONT)
            wait_until(lambda: has_noticed(log), PATIENCE)
            send(kafka, topic, values(400, start=1200), partitions=2)
            wait_until(lambda: taken(own_postgres_engine) == 1600, PATIENCE)

            assert zombie.poll() is None

    assert stored(own_postgres_engine) == 1600


def has_noticed(log: Path) -> bool:
    """Tell whether the consumer has written that it was fenced, or given partitions again."""
    written = log.read_text()
    return '"fenced"' in written or written.count("partitions assigned") > 1


def is_stopped(pid: int) -> bool:
    return (
        Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"
    )


# Stops the process in a transaction: the rows are written and locked, the commit comes when it goes
# on.
STOPPED_IN_COMMIT = """
import os, signal
from sqlalchemy import Engine, event
batches = iter(range(3))
def note(connection, cursor, statement, parameters, context, many):
    if "INTO event_keys" in statement:
        connection.info["batch"] = True
def stop(connection):
    if connection.info.pop("batch", False) and next(batches, 0) == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
event.listen(Engine, "before_cursor_execute", note)
event.listen(Engine, "commit", stop)
"""
