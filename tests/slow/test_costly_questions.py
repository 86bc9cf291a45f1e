"""Costly questions of many clients: the server stays ready, within its memory, and ends in time."""

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fixtures.versions_server.process import Served, served
from fixtures.waiting import wait_until
from strandline.store.sql.engine import make_engine, migrate
from worlds.builders import Json, dataset, event, store

COLUMNS = 4_000
JOBS = 10_000
MEMORY_BYTES = 512 << 20  # the default of the setting
END_SECONDS = 10
RECOVERY_SECONDS = 60
COLUMN_QUESTION = "/api/v2/lineage?node=dataset:hive://lake:wide0&granularity=column&limit=50000"
GRAPH_QUESTION = "/api/v2/lineage?node=dataset:hive://lake:hub&limit=50000"


def wide(name: str, made_from: str) -> Json:
    """Return a table whose columns are made from those of another."""
    names = [f"column_{number:04}" for number in range(COLUMNS)]
    lineage = {
        column: {"inputFields": [{"namespace": "hive://lake", "name": made_from, "field": column}]}
        for column in names
    }
    schema = {"fields": [{"name": column, "type": "int"} for column in names]}
    return dataset(name, columnLineage={"fields": lineage}, schema=schema)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a store with 10,000 jobs that read one table, and with wide tables."""
    url = f"sqlite:///{tmp_path_factory.mktemp('costly')}/strandline.db"
    engine = make_engine(url)
    migrate(engine)
    long = "x" * 100
    store(
        engine,
        (
            event("COMPLETE", n + 1, f"{long}_{n}", 0, [dataset("hub")], [dataset(f"{long}_{n}")])
            for n in range(JOBS)
        ),
    )
    store(
        engine,
        [
            event("COMPLETE", JOBS + n + 1, f"wide_{n}", 0, [dataset(f"wide{n}")],
                  [wide(f"wide{n + 1}", f"wide{n}")])
            for n in range(3)
        ],
    )  # fmt: skip
    engine.dispose()
    return url


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[Served]:
    with served(url, tmp_path) as [server]:
        yield server


def ask_without_reading(server: Served, path: str) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection


def resident_bytes(server: Served) -> int:
    """Return the memory of all processes of the server."""
    statuses = [Path(f"/proc/{process}/status").read_text() for process in server.processes()]
    sizes = [re.search(r"VmRSS:\s+(\d+) kB", status) for status in statuses]
    return sum(int(size[1]) << 10 for size in sizes if size)


def busy_ticks(server: Served) -> int:
    """Return the processor time of all processes of the server, in clock ticks."""
    stats = [Path(f"/proc/{process}/stat").read_text() for process in server.processes()]
    return sum(sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in stats)


def test_server_ends_while_column_questions_run_and_wait(server: Served) -> None:
    with ExitStack() as clients:
        for _ in range(25):
            clients.enter_context(ask_without_reading(server, COLUMN_QUESTION))
        idle = busy_ticks(server)
        wait_until(lambda: busy_ticks(server) > idle + os.sysconf("SC_CLK_TCK"))
        assert server.client.get("/readyz").status_code == 200

        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < END_SECONDS


def test_clients_that_read_nothing_do_not_exhaust_the_memory(server: Served) -> None:
    with ExitStack() as clients:
        for _ in range(60):
            clients.enter_context(ask_without_reading(server, GRAPH_QUESTION))
        peak, until = 0, time.monotonic() + 30
        while time.monotonic() < until:
            peak = max(peak, resident_bytes(server))
            assert server.client.get("/readyz").status_code == 200
        assert peak < MEMORY_BYTES

    until = time.monotonic() + RECOVERY_SECONDS
    while server.client.get(GRAPH_QUESTION).status_code != 200:
        assert time.monotonic() < until
