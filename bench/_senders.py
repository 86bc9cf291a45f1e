"""Load for benchmarks: records into a topic, requests over many connections.

Cheap enough to leave the cores to others.
"""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from zlib import crc32

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from bench.events import key_of

SECONDS = 300
LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
TOGETHER = 1000  # records between two flushes: kafka-python's producer knows no bound


def make_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """A new topic."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(topic, partitions, 1)])
    finally:
        admin.close()


def producer(bootstrap: str) -> KafkaProducer:
    """A producer with large batches, which takes events of 32 MiB."""
    return KafkaProducer(
        bootstrap_servers=bootstrap,
        linger_ms=20,
        batch_size=256 * 1024,
        max_request_size=40 * 1024 * 1024,
    )


def send(bootstrap: str, topic: str, values: Iterable[bytes], partitions: int = 1) -> None:
    """Send under the keys that OpenLineage's clients give, so that a job is in one partition (by CRC-32, which happens to share
    the benchmark's jobs evenly), and return when the broker has everything.
    """
    sending, remaining = producer(bootstrap), iter(values)
    while group := list(islice(remaining, TOGETHER)):
        for value in group:
            key = key_of(value)
            sending.send(topic, value, key, partition=crc32(key) % partitions)
        sending.flush(SECONDS)
    sending.close(timeout=SECONDS)


@dataclass
class Load:
    """The results of a number of connections.

    The time of each answer in milliseconds, and answers that were no success.

    cpu: the microseconds of processor time that it took to send and to read the answers.
    """

    seconds: float = 0
    cpu: float = 0
    waits: list[float] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)

    def per_second(self) -> float:
        """Successes a second."""
        return len(self.waits) / self.seconds

    def percentile(self, share: float) -> float:
        """The wait that this share of the requests did not pass."""
        return sorted(self.waits)[min(len(self.waits) - 1, int(share * len(self.waits)))]


def load(
    port: int, bodies: Iterable[bytes], connections: int, path: str = "/api/v1/lineage"
) -> Load:
    """Post each body once, over so many connections, each of which sends again when it was answered."""
    requests = [_request(path, body) for body in bodies]
    return asyncio.run(_loaded(port, requests, connections))


def ask(port: int, paths: Iterable[str], connections: int) -> Load:
    """Get each path once, in the same way."""
    requests = [f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() for path in paths]
    return asyncio.run(_loaded(port, requests, connections))


def _request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _loaded(port: int, requests: list[bytes], connections: int) -> Load:
    seen, waiting = Load(), iter(requests)
    loop = asyncio.get_running_loop()
    started, cpu = time.perf_counter(), time.process_time()
    senders = [_Connection(waiting, seen, loop.create_future()) for _ in range(connections)]
    for sender in senders:
        await loop.create_connection(lambda sender=sender: sender, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.wait_for(asyncio.gather(*(sender.ended for sender in senders)), SECONDS)
    seen.seconds, seen.cpu = time.perf_counter() - started, (time.process_time() - cpu) * 1e6
    return seen


class _Connection(asyncio.Protocol):
    def __init__(self, waiting: Iterator[bytes], seen: Load, ended: "asyncio.Future[None]") -> None:
        self.ended = ended
        self._waiting = waiting
        self._seen = seen
        self._answer: list[bytes] = []
        self._missing = -1  # bytes of the answer; less than 0: its head is not whole

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._answer.append(data)
        if self._missing < 0:
            head, end, content = b"".join(self._answer).partition(b"\r\n\r\n")
            if not end:
                return
            length = LENGTH.search(head)
            self._missing = (int(length[1]) if length else 0) - len(content)
        else:
            self._missing -= len(data)
        if self._missing > 0:
            return
        if self._answer[0].startswith(b"HTTP/1.1 20"):
            self._seen.waits.append(1000 * (time.perf_counter() - self._sent))
        else:
            self._seen.refused.append(b"".join(self._answer))
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or ConnectionError("the server closed the connection"))

    def _next(self) -> None:
        request = next(self._waiting, None)
        if request is None:
            self.ended.set_result(None)
            self._transport.close()
            return
        self._answer, self._missing, self._sent = [], -1, time.perf_counter()
        self._transport.write(request)
