"""A server killed repeatedly while receiving events ends with the rows of an undisturbed one.

So has one of which only the process that writes is killed.
"""

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, inspect

from fixtures.servers import serving
from fixtures.versions_server.process import Served, served
from fixtures.waiting import wait_until
from strandline.history.compare import TABLES
from strandline.store.sql.engine import make_engine
from worlds.builders import newest_facets, rows, store
from worlds.producers import a_day

KILLS = 3
RECEIPT = ("received_at", "child_received_at")  # differ: the server's clock
EVENTS = [body for body in a_day() if b'"eventTime"' in body and b'"producer"' in body]


def folded(engine: Engine) -> dict[str, list[Any]]:
    """Every table that is a fold over the events, but for the times of receipt.

    Of facets those that count.
    """
    found = {}
    for table in (*TABLES, "event_keys"):
        columns = [
            one["name"] for one in inspect(engine).get_columns(table) if one["name"] not in RECEIPT
        ]
        found[table] = rows(engine, f"SELECT {', '.join(columns)} FROM {table}")
    with engine.connect() as connection:
        return found | {"facets": newest_facets(connection)}


def send(server: Served, bodies: list[bytes], sent: threading.Event) -> None:
    """Send each event until it was answered with 2xx, as a client that trusts only answers."""
    for body in bodies:
        while not sent.wait(0.005):
            try:
                if server.client.post("/api/v1/lineage", content=body).status_code < 300:
                    break
            except httpx.TransportError:
                continue


def test_repeated_kills_lose_and_duplicate_no_event(
    own_database_url: str, sqlite_template: Path, tmp_path: Path
) -> None:
    order = random.Random(5)
    bodies = [*EVENTS, *order.sample(EVENTS, 30)]
    order.shuffle(bodies)
    given_up = threading.Event()

    with served(own_database_url, tmp_path) as (server,):
        sending = threading.Thread(target=send, args=(server, bodies, given_up))
        sending.start()
        try:
            for _ in range(KILLS):
                sending.join(0.3)
                server.kill_who_writes()
                sending.join(0.3)
                server.kill()
                server.start()
            sending.join(300)
            assert not sending.is_alive()
        finally:
            given_up.set()
            sending.join()

    (tmp_path / "undisturbed.db").write_bytes(sqlite_template.read_bytes())
    disturbed, undisturbed = (
        make_engine(own_database_url),
        make_engine(f"sqlite:///{tmp_path}/undisturbed.db"),
    )
    store(undisturbed, EVENTS)
    assert folded(disturbed) == folded(undisturbed)
    assert len(folded(disturbed)["event_keys"]) == len(
        {json.dumps(json.loads(body)) for body in EVENTS}
    )
    for engine in (disturbed, undisturbed):
        engine.dispose()


@pytest.mark.parametrize("end", [Served.stop, Served.kill])
def test_the_process_that_writes_ends_with_its_server(
    own_sqlite_url: str, tmp_path: Path, end: Callable[[Served], None]
) -> None:
    with served(own_sqlite_url, tmp_path) as (server,):
        assert server.client.post("/api/v1/lineage", content=EVENTS[0]).status_code == 201
        started = server.processes()
        assert len(started) == 2

        end(server)

        wait_until(lambda: not any(map(is_running, started)))


def is_running(process: int) -> bool:
    """Tell whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_sender_is_asked_to_retry_when_the_writing_process_dies(
    own_sqlite_url: str, tmp_path: Path
) -> None:
    event = EVENTS[0]

    with served(own_sqlite_url, tmp_path) as (server,):
        server.client.post("/api/v1/lineage", content=event)
        server.kill_who_writes()
        told = server.client.post("/api/v1/lineage", content=EVENTS[1])
        again = server.client.post("/api/v1/lineage", content=EVENTS[1])

    assert (told.status_code, told.headers["retry-after"]) == (503, "1")
    assert told.json()["detail"] == "the process that writes has ended; another one starts"
    assert again.status_code == 201


def test_invalid_event_is_rejected_even_when_the_writing_process_dies(
    own_sqlite_url: str, tmp_path: Path
) -> None:
    with served(own_sqlite_url, tmp_path) as (server,):
        answers = []
        for path, body in (("", b"{}"), ("/batch", b"[{}]"), ("/batch", b"[{}, %b]" % EVENTS[0])):
            assert server.client.post("/api/v1/lineage", content=EVENTS[0]).status_code == 201
            server.kill_who_writes()
            answers.append(server.client.post(f"/api/v1/lineage{path}", content=body))

    assert [one.status_code for one in answers] == [422, 200, 503]
    assert answers[0].json()["code"] == "invalid_event"
    assert [one["status"] for one in answers[1].json()["results"]] == [422]


@pytest.mark.postgres
def test_database_failure_is_not_reported_as_an_invalid_event(
    own_postgres_url: str, own_postgres_engine: Engine, tmp_path: Path
) -> None:
    """After a failover to a standby and with a missing column, in both process models."""
    name = own_postgres_engine.url.database
    with served(own_postgres_url, tmp_path) as (server,), serving(own_postgres_engine) as address:
        assert "database" not in httpx.get(f"{address}/readyz").json()["faults"]
        with own_postgres_engine.begin() as connection:
            connection.exec_driver_sql(
                f"ALTER DATABASE {name} SET default_transaction_read_only = on"
            )
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            connection.exec_driver_sql(f"{others} AND pid <> pg_backend_pid()")
        own_postgres_engine.dispose()

        told = [server.client.post("/api/v1/lineage", content=EVENTS[0]) for _ in range(2)]
        told.append(httpx.post(f"{address}/api/v1/lineage", content=EVENTS[0]))
        ready = httpx.get(f"{address}/readyz")

    assert {(one.status_code, one.headers["retry-after"]) for one in told} == {(503, "5")}
    assert ready.status_code == 503  # the process of all tests may take too much memory besides
    assert "transaction_read_only is on" in ready.json()["faults"]["database"]
