"""Cut, half-closed, delayed and throttled connections to the broker, PostgreSQL and the server.

Nothing is lost and nothing counts twice. A proxy (tests/fixtures/tcp_proxy.py) breaks them by a
seed, after a number of bytes. `make soak` runs longer stories: STRANDLINE_SOAK_SLICES (60),
STRANDLINE_SOAK_SEED (the first one).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine

from fixtures.kafka import PATIENCE, environ_of, make_topic, process, send, taken
from fixtures.tcp_proxy import Proxy, postgres_target, proxy
from fixtures.versions_server.process import served
from fixtures.waiting import wait_until
from strandline.store.sql.engine import make_engine
from worlds.simulation.senders import Heard, post_all
from worlds.simulation.stores import arrivals, check

pytestmark = pytest.mark.postgres

SLICES = int(os.environ.get("STRANDLINE_SOAK_SLICES", "60"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))
PARTITIONS = 2
DATABASE_BYTES, BROKER_BYTES, CLIENT_BYTES = (
    25_000,
    10_000,
    8_000,
)  # that a connection passes on before its fault

# A broker names its own address to whoever reaches it: in this process that address is the proxy's.
THROUGH_PROXY = """
import socket
connect_ex = socket.socket.connect_ex
def redirected(self, address):
    return connect_ex(self, ("127.0.0.1", {proxy}) if address[1] == {broker} else address)
socket.socket.connect_ex = redirected
"""


@contextmanager
def through(database: Proxy, engine: Engine) -> Iterator[Engine]:
    """An engine on the same database, by way of the proxy."""
    url = engine.url.set(host="127.0.0.1", port=database.port, query={})
    broken = make_engine(url.render_as_string(hide_password=False))
    yield broken
    broken.dispose()


def consume(seed: int, slices: int, engine: Engine, kafka: str) -> tuple[list[bytes], Counter[str]]:
    """Consumers behind two proxies take all that is sent, each record.

    What was sent, and what struck them.
    """
    topic, bodies, sent = f"cut-{seed}-{os.getpid()}", arrivals(seed, slices), 0
    make_topic(kafka, topic, PARTITIONS)
    host, _, port = kafka.rpartition(":")

    def half_is_taken() -> bool:
        return taken(engine) >= sent // 2

    with (
        proxy(postgres_target(engine.url), seed, DATABASE_BYTES) as database,
        proxy((host, int(port)), seed + 1, BROKER_BYTES) as broker,
        through(database, engine) as broken,
    ):
        environ = environ_of(broken, kafka, topic, batch_records="10", kafka_session_seconds="6")
        redirect = THROUGH_PROXY.format(proxy=broker.port, broker=port)
        with process(environ, redirect), process(environ, redirect):
            for number in range(slices):
                part = bodies[number::slices]
                send(kafka, topic, part, PARTITIONS)
                sent += len(part)
                wait_until(half_is_taken, PATIENCE)
            wait_until(lambda: taken(engine) == sent, PATIENCE)
        return bodies, database.struck + broker.struck


def post_through_proxies(
    seed: int, slices: int, engine: Engine, folder: Path
) -> tuple[list[bytes], Heard, Counter[str]]:
    """Clients send to a server; what they sent and heard, and what struck."""
    bodies = arrivals(seed, slices)
    with (
        proxy(postgres_target(engine.url), seed, DATABASE_BYTES) as database,
        through(database, engine) as broken,
    ):
        url = broken.url.render_as_string(hide_password=False)
        with (
            served(url, folder) as (server,),
            proxy(("127.0.0.1", server.port), seed + 1, CLIENT_BYTES) as front,
        ):
            heard = post_all(f"http://127.0.0.1:{front.port}", bodies, engine)
            database.heal()
            return bodies, heard, database.struck + front.struck


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("seed", "slices"),
    [
        pytest.param(1, 2, id="2 slices"),
        pytest.param(SEED, SLICES, id="soak", marks=pytest.mark.soak),
    ],
)
def test_consumer_with_broken_connections_loses_and_duplicates_nothing(
    seed: int, slices: int, postgres_engine: Engine, kafka: str, sqlite_url: str
) -> None:
    bodies, struck = consume(seed, slices, postgres_engine, kafka)
    print(f"seed {seed}, {len(bodies)} events: {dict(struck)}")

    assert struck.total() > 2
    check(postgres_engine, bodies, sqlite_url)


@pytest.mark.parametrize(
    ("seed", "slices"),
    [
        pytest.param(1, 3, id="3 slices"),
        pytest.param(SEED, SLICES, id="soak", marks=pytest.mark.soak),
    ],
)
def test_server_answers_correctly_over_broken_connections(
    seed: int, slices: int, postgres_engine: Engine, sqlite_url: str, tmp_path: Path
) -> None:
    bodies, heard, struck = post_through_proxies(seed, slices, postgres_engine, tmp_path)
    print(f"seed {seed}, {len(bodies)} events: {dict(struck)}, answers {dict(heard.statuses)}")

    assert heard.statuses.keys() <= {0, 201, 503}
    assert heard.statuses[201] == len(bodies)
    assert heard.missing == []
    assert struck.total() > 2
    check(postgres_engine, bodies, sqlite_url)
