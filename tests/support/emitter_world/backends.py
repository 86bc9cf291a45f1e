"""Where events end, behind a relay: an HTTP server, a server and a file at once, a topic of a real broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from emitter_world.recording import Recorder, recorder

Event = dict[str, Any]
Conf = dict[str, str]
SECONDS = 120  # the pauses between attempts grow to half a minute
Enough = Callable[[list[Event]], bool]


class Backend(Protocol):
    """One kind of transport and what it sends to."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        ...

    def conf(self, host: str, port: int) -> Conf:
        """The transport's conf for that address, which is the backend's own or that of a relay before it."""
        ...

    def events(self, enough: Enough) -> list[Event]:
        """What arrived: as soon as it is enough, or after a long while."""
        ...


@dataclass
class Http:
    """A recording server."""

    server: Recorder

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.server.port

    def conf(self, host: str, port: int) -> Conf:
        return {"type": "http", "url": f"http://{host}:{port}"}

    def events(self, enough: Enough) -> list[Event]:
        self.server.wait_until(lambda: enough(self.server.documents()), SECONDS)
        return self.server.documents()


@dataclass
class Composite:
    """A recording server that a relay may stand before, and a file that is always there."""

    server: Recorder
    file: Path

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.server.port

    def conf(self, host: str, port: int) -> Conf:
        return {
            "type": "composite",
            "transports.a.type": "http",
            "transports.a.url": f"http://{host}:{port}",
            "transports.b.type": "file",
            "transports.b.location": str(self.file),
        }

    def events(self, enough: Enough) -> list[Event]:
        """Those of the server; the file has to have them too, which may get them after it."""
        deadline = time.monotonic() + SECONDS
        while not enough(found := self._in_both()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return found

    def _in_both(self) -> list[Event]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        written = {json.dumps(json.loads(line)) for line in lines}
        return [event for event in self.server.documents() if json.dumps(event) in written]


@dataclass
class Kafka:
    """A topic of its own. The broker names its own address to whoever reaches it."""

    bootstrap: str
    topic: str

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    def conf(self, host: str, port: int) -> Conf:
        return {"type": "kafka", "topicName": self.topic, "properties.bootstrap.servers": f"{host}:{port}"}

    def events(self, enough: Enough) -> list[Event]:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            consumer_timeout_ms=SECONDS * 1000,
        )
        found: list[Event] = []
        for record in consumer:
            found.append(json.loads(record.value))
            if enough(found):
                break
        consumer.close()
        return found


@contextmanager
def backend(kind: str, folder: Path, bootstrap: Callable[[], str]) -> Iterator[Backend]:
    """The backend of a transport; `bootstrap` is asked for a broker's address where one is needed."""
    if kind == "kafka":
        yield Kafka(bootstrap(), f"faults.{uuid4().hex}")
        return
    with recorder() as server:
        yield Http(server) if kind == "http" else Composite(server, folder / "events.jsonl")


def broken(fault: str, conf: Conf) -> Conf:
    """The conf, of a transport that speaks TLS to a server that does not if that is the fault."""
    if fault != "TLS wrong":
        return conf
    if conf["type"] == "kafka":
        return conf | {"properties.security.protocol": "SSL"}
    return {key: value.replace("http:", "https:") for key, value in conf.items()}
