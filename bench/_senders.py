"""Load for benchmarks: records into a topic, requests over many connections."""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from zlib import crc32

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from bench._machine import PATIENCE
from bench.events import key_of

LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
PARTITIONS = 2
TOGETHER = 1000  # records between two flushes: kafka-python's producer knows no bound


def fill_topic(bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
    """Make a topic, and return when the broker has all these values.

    The keys are those that OpenLineage's clients give, so a job is in one partition: by CRC-32,
    which happens to share the benchmark's jobs evenly.
    """
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    finally:
        admin.close()
    sending = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=256 * 1024)
    remaining = iter(values)
    while group := list(islice(remaining, TOGETHER)):
        for value in group:
            key = key_of(value)
            sending.send(topic, value, key, partition=crc32(key) % PARTITIONS)
        sending.flush(PATIENCE)
    sending.close(timeout=PATIENCE)


@dataclass
class Load:
    """The answers to a number of senders: milliseconds of each success, and refusals."""

    seconds: float = 0
    waits: list[float] = field(default_factory=list)
    refused: int = 0

    def per_second(self) -> float:
        """Successes a second."""
        return len(self.waits) / self.seconds

    def percentile(self, share: float) -> float:
        """The wait that this share of the requests did not pass."""
        return sorted(self.waits)[min(len(self.waits) - 1, int(share * len(self.waits)))]


def post(port: int, path: str, bodies: Iterable[bytes], senders: int) -> Load:
    """Post each body once, over so many connections, each of which waits for its answer."""
    requests = [
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
        for body in bodies
    ]
    return asyncio.run(_post(port, requests, senders))


async def _post(port: int, requests: list[bytes], senders: int) -> Load:
    load, waiting = Load(), iter(requests)
    began = time.perf_counter()
    sent = asyncio.gather(*(_send(port, waiting, load) for _ in range(senders)))
    await asyncio.wait_for(sent, PATIENCE)
    load.seconds = time.perf_counter() - began
    return load


async def _send(port: int, waiting: Iterator[bytes], load: Load) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in waiting:
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        await reader.readexactly(int(length[1]) if length else 0)
        if head.startswith(b"HTTP/1.1 20"):
            load.waits.append(1000 * (time.perf_counter() - began))
        else:
            load.refused += 1
    writer.close()
