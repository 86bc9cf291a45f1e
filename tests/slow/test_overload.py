"""Overload by ten times the allowed clients: every 201 is stored, and memory is bounded.

`make soak` goes on for STRANDLINE_SOAK_OVERLOAD_MINUTES (30).
"""

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import select

from fixtures.kafka import values
from fixtures.versions_server.process import Served, served
from strandline.core.openlineage.facets import content_hash
from strandline.store.schema.received_tables import event_keys
from strandline.store.sql.engine import make_engine, reading

MINUTES = float(os.environ.get("STRANDLINE_SOAK_OVERLOAD_MINUTES", "30"))
WAITING = 20  # requests that may wait at the server
CLIENTS = 10 * WAITING
MOST_BYTES = 512 << 20  # of all processes of the server at any time
FLAGS = ("--max-waiting", str(WAITING))
HEAD = "POST /api/v1/lineage HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
LENGTH = re.compile(rb"(?i)content-length: (\d+)")


class Client:
    """Sends one event after the other, each until it is answered with 201; it never waits."""

    def __init__(self, events: Iterator[bytes], statuses: Counter[int]) -> None:
        self._events, self._statuses = events, statuses
        self.answered: list[bytes] = []

    async def run(self, port: int, is_over: Callable[[], bool]) -> None:
        """Send until it is over, and the last event is answered."""
        async with connected(port) as (reader, writer):
            while not is_over():
                body = next(self._events)
                request = HEAD.format(len(body)).encode() + body
                status = 0
                while status != 201:
                    writer.write(request)
                    status = await status_of(reader)
                    self._statuses[status] += 1
                    assert status in (201, 503)
                self.answered.append(content_hash(body))


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of one client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def status_of(reader: asyncio.StreamReader) -> int:
    """The status of the next answer; its body is read and dropped."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head.split(b" ", 2)[1])


async def overload(
    port: int, is_over: Callable[[Counter[int]], bool]
) -> tuple[Counter[int], list[bytes]]:
    """Return the answers to all clients, and the hashes of events answered with 201."""
    statuses, events = Counter[int](), (values(1, start)[0] for start in count())
    clients = [Client(events, statuses) for _ in range(CLIENTS)]
    await asyncio.gather(*(client.run(port, lambda: is_over(statuses)) for client in clients))
    return statuses, [hash_ for client in clients for hash_ in client.answered]


def most_bytes(server: Served) -> int:
    """The most memory that each of its processes has had, together."""
    found = (Path(f"/proc/{pid}/status").read_text() for pid in server.processes())
    return sum(
        int(peak[1]) << 10 for status in found if (peak := re.search(r"VmHWM:\s+(\d+) kB", status))
    )


def check(url: str, folder: Path, is_over: Callable[[Counter[int]], bool]) -> None:
    """Send until it is over; every answer has to be true."""
    with served(url, folder, 1, *FLAGS) as (server,):
        statuses, answered = asyncio.run(overload(server.port, is_over))
        peak = most_bytes(server)
    with reading(make_engine(url)).connect() as connection:
        stored = set(connection.scalars(select(event_keys.c.hash)))
    print(
        f"{dict(statuses)}, {statuses.total() / statuses[201]:.1f} requests for each event, {peak >> 20} MiB"
    )

    assert len(answered) == statuses[201]
    assert stored == set(answered)
    assert statuses[503] > statuses[201]
    assert peak <= MOST_BYTES


def test_overload_loses_nothing_and_uses_bounded_memory(sqlite_url: str, tmp_path: Path) -> None:
    check(sqlite_url, tmp_path, lambda statuses: statuses[201] >= 1000)


@pytest.mark.soak
def test_soak_overload_loses_nothing_and_uses_bounded_memory(
    sqlite_url: str, tmp_path: Path
) -> None:
    until = time.monotonic() + MINUTES * 60
    check(sqlite_url, tmp_path, lambda _: time.monotonic() > until)
