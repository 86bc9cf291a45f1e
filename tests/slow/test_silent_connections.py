"""PostgreSQL connections that stay open but pass nothing: nobody waits for ever.

The kernel sees nothing wrong with them: the proxy (tests/fixtures/tcp_proxy.py) takes each byte.
Who waits asks over another connection.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from fixtures.kafka import PATIENCE, environ_of, make_topic, process, send, taken
from fixtures.tcp_proxy import Proxy, postgres_target, proxy
from fixtures.versions_server.process import served
from fixtures.waiting import wait_until
from strandline.store.sql.engine import make_engine
from worlds.simulation.senders import post_all
from worlds.simulation.stores import arrivals, check

pytestmark = pytest.mark.postgres

NO_FAULTS = 10**12  # bytes
LIMITS = {"tcp_user_timeout": "1000", "connect_timeout": "2"}


@contextmanager
def through_proxy(engine: Engine, **more: str) -> Iterator[tuple[Proxy, Engine]]:
    """A proxy before the database, and an engine that notices silence within seconds."""
    with proxy(postgres_target(engine.url), 1, NO_FAULTS) as between:
        url = engine.url.set(host="127.0.0.1", port=between.port, query=LIMITS | more)
        connected = make_engine(url.render_as_string(hide_password=False))
        yield between, connected
        connected.dispose()


@pytest.mark.kafka
def test_consumer_replaces_silent_connections(
    postgres_engine: Engine, kafka: str, sqlite_url: str
) -> None:
    topic, bodies = f"silent-{os.getpid()}", arrivals(5, 1)
    make_topic(kafka, topic)
    with (
        through_proxy(postgres_engine) as (between, engine),
        process(environ_of(engine, kafka, topic)),
    ):
        send(kafka, topic, bodies[:5])
        wait_until(lambda: taken(postgres_engine) == 5, PATIENCE)
        between.stall()
        send(kafka, topic, bodies[5:])
        wait_until(lambda: taken(postgres_engine) == len(bodies), PATIENCE)

    check(postgres_engine, bodies, sqlite_url)


def test_server_answers_despite_silent_connections(
    postgres_engine: Engine, sqlite_url: str, tmp_path: Path
) -> None:
    bodies = arrivals(6, 1)
    with (
        through_proxy(postgres_engine) as (between, engine),
        served(engine.url.render_as_string(hide_password=False), tmp_path) as (server,),
    ):
        address = f"http://127.0.0.1:{server.port}"
        before = post_all(address, bodies[:5], postgres_engine)
        between.stall()
        after = post_all(address, bodies[5:-1], postgres_engine)
        between.stall(new=True)
        refused = httpx.post(f"{address}/api/v1/lineage", content=bodies[-1], timeout=120)
        between.resume()
        last = post_all(address, bodies[-1:], postgres_engine)

    assert before.statuses.keys() == {201}
    assert after.statuses.keys() <= {201, 503}
    assert refused.status_code == 503
    assert [*before.missing, *after.missing, *last.missing] == []
    check(postgres_engine, bodies, sqlite_url)


def test_long_statement_is_not_interrupted(postgres_engine: Engine) -> None:
    with (
        through_proxy(postgres_engine, tcp_user_timeout="50") as (_, engine),
        engine.connect() as connection,
    ):
        assert connection.exec_driver_sql("SELECT 7 FROM pg_sleep(1)").scalar() == 7


def test_silent_connection_raises_an_error_and_the_next_one_works(postgres_engine: Engine) -> None:
    with through_proxy(postgres_engine, tcp_user_timeout="50") as (between, engine):
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            between.stall()
            with pytest.raises(OperationalError, match="nothing works on one") as raised:
                connection.exec_driver_sql("SELECT 2")
        with engine.connect() as connection:
            found = connection.exec_driver_sql("SELECT 3").scalar()

    assert raised.value.connection_invalidated
    assert found == 3


def test_options_of_the_address_are_kept(postgres_engine: Engine) -> None:
    with (
        through_proxy(postgres_engine, tcp_user_timeout="0", keepalives_idle="77") as (_, engine),
        engine.connect() as connection,
    ):
        held = connection.connection.dbapi_connection
        assert held is not None
        found = held.info.get_parameters()

    assert (found["tcp_user_timeout"], found["keepalives_idle"], found["keepalives_count"]) == (
        "0",
        "77",
        "3",
    )
    assert held.seconds == 0
