"""Connections that are cut, half-closed, delayed and throttled: to the broker, to PostgreSQL, and from clients to a server.

Nothing is lost and nothing counts twice. A proxy (tests/support/tcp_proxy.py) breaks them by a seed, after a number of bytes.
`make soak` runs longer stories: STRANDLINE_SOAK_SLICES (60), STRANDLINE_SOAK_SEED (the first one).
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine, func, select

from consuming import environ_of, make_topic, process, send, taken, wait_until
from fault_world.stores import arrivals, check
from strandline.core.openlineage.facets import content_hash
from strandline.store.schema.tables import raw_events
from strandline.store.sql.engine import make_engine
from tcp_proxy import Proxy, postgres_target, proxy
from versions_server.process import served

pytestmark = pytest.mark.postgres

SLICES = int(os.environ.get("STRANDLINE_SOAK_SLICES", "60"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))
PARTITIONS, CONSUMERS, SENDERS = 2, 2, 4
DATABASE_BYTES, BROKER_BYTES, CLIENT_BYTES = 25_000, 10_000, 8_000  # that a connection passes on before its fault
PATIENCE = 60

# A broker names its own address to whoever reaches it: in this process that address is the proxy's.
THROUGH_PROXY = """
import socket
connect_ex = socket.socket.connect_ex
def redirected(self, address):
    return connect_ex(self, ("127.0.0.1", {proxy}) if address[1] == {broker} else address)
socket.socket.connect_ex = redirected
"""


@pytest.fixture
def postgres_engine(postgres_url: str) -> Iterator[Engine]:
    """An engine on a PostgreSQL database of its own, which no proxy stands before."""
    engine = make_engine(postgres_url)
    yield engine
    engine.dispose()


@contextmanager
def through(database: Proxy, engine: Engine) -> Iterator[Engine]:
    """An engine on the same database, by way of the proxy."""
    url = engine.url.set(host="127.0.0.1", port=database.port, query={})
    broken = make_engine(url.render_as_string(hide_password=False))
    yield broken
    broken.dispose()


def consume(seed: int, slices: int, engine: Engine, kafka: str) -> tuple[list[bytes], Counter[str]]:
    """Consumers behind two proxies take all that is sent, each record; what was sent, and what struck them."""
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
                wait_until(half_is_taken)
            wait_until(lambda: taken(engine) == sent)
        return bodies, database.struck + broker.struck


def post_all(address: str, bodies: Sequence[bytes], engine: Engine, found: Counter[int], wrong: list[bytes]) -> None:
    """Send each until it is answered with 201, by connections that break; what was answered so is there at once."""
    limits = httpx.Limits(max_keepalive_connections=1)
    with httpx.Client(base_url=address, timeout=PATIENCE, limits=limits) as client, engine.connect() as eyes:
        for body in bodies:
            while (status := answered(client, body)) != 201:
                found[status] += 1
            found[201] += 1
            query = select(func.count()).select_from(raw_events).where(raw_events.c.hash == content_hash(body))
            if eyes.execute(query).scalar_one() != 1:
                wrong.append(body)
            eyes.rollback()


def answered(client: httpx.Client, body: bytes) -> int:
    """The status of an answer; 0 where none came."""
    try:
        return client.post("/api/v1/lineage", content=body).status_code
    except httpx.TransportError:
        return 0


def post_through_proxies(
    seed: int, slices: int, engine: Engine, folder: Path
) -> tuple[list[bytes], Counter[int], list[bytes], Counter[str]]:
    """Clients send to a server; what they sent, what they heard, what was not there though they heard 201, and what struck."""
    bodies, found, wrong = arrivals(seed, slices), Counter[int](), list[bytes]()
    with proxy(postgres_target(engine.url), seed, DATABASE_BYTES) as database, through(database, engine) as broken:
        url = broken.url.render_as_string(hide_password=False)
        with served(url, folder) as (server,), proxy(("127.0.0.1", server.port), seed + 1, CLIENT_BYTES) as front:
            address = f"http://127.0.0.1:{front.port}"
            parts = [bodies[number::SENDERS] for number in range(SENDERS)]
            threads = [
                threading.Thread(target=post_all, args=(address, part, engine, found, wrong), daemon=True)
                for part in parts
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60 * slices)
                assert not thread.is_alive(), "senders do not come to an end"
            database.heal()
            return bodies, found, wrong, database.struck + front.struck


@pytest.mark.kafka
def test_a_consumer_whose_connections_break_loses_and_doubles_nothing(
    postgres_engine: Engine, kafka: str, sqlite_url: str
) -> None:
    bodies, struck = consume(1, 2, postgres_engine, kafka)
    print(f"{len(bodies)} events: {dict(struck)}")

    assert struck.total() > 2
    check(postgres_engine, bodies, sqlite_url)


def test_what_a_server_answers_over_connections_that_break_is_true(
    postgres_engine: Engine, sqlite_url: str, tmp_path: Path
) -> None:
    bodies, statuses, missing, struck = post_through_proxies(1, 3, postgres_engine, tmp_path)
    print(f"{len(bodies)} events: {dict(struck)}, answers {dict(statuses)}")

    assert statuses.keys() <= {0, 201, 503}
    assert statuses[201] == len(bodies)
    assert missing == []
    assert struck.total() > 2
    check(postgres_engine, bodies, sqlite_url)


@pytest.mark.soak
@pytest.mark.kafka
def test_a_long_story_of_a_consumer(postgres_engine: Engine, kafka: str, sqlite_url: str) -> None:
    bodies, struck = consume(SEED, SLICES, postgres_engine, kafka)
    print(f"seed {SEED}, {len(bodies)} events: {dict(struck)}")

    check(postgres_engine, bodies, sqlite_url)


@pytest.mark.soak
def test_a_long_story_of_a_server(postgres_engine: Engine, sqlite_url: str, tmp_path: Path) -> None:
    bodies, statuses, missing, struck = post_through_proxies(SEED, SLICES, postgres_engine, tmp_path)
    print(f"seed {SEED}, {len(bodies)} events: {dict(struck)}, answers {dict(statuses)}")

    assert statuses.keys() <= {0, 201, 503}
    assert missing == []
    check(postgres_engine, bodies, sqlite_url)
