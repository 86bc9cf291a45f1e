"""Fresh stores for benchmarks, and small events to fill them with."""

import json
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from bench._machine import folder, migrated, opened, postgres
from strandline.core.openlineage.times import moment_of
from strandline.store.ingest.take import Caches, Record, take

KINDS = ("sqlite", "postgres")
NAMESPACE = "iceberg://lake"
LAYERS = 20
HUB = f"dataset:{NAMESPACE}:layer_00.table_0000000"
BEGIN = 1_767_225_600_000_000  # 2026-01-01 in microseconds
TOGETHER = 1_000  # events a transaction

Event = dict[str, Any]


@contextmanager
def store(kind: str, events: Iterable[Event] = ()) -> Iterator[str]:
    """Yield the URL of a database of this kind that has taken these events."""
    with folder() as place:
        if kind == "sqlite":
            url = migrated(f"sqlite:///{place / 'strandline.db'}")
            fill(url, (json.dumps(each).encode() for each in events))
            yield url
        else:
            with postgres(place) as server:
                url = server.fresh("bench")
                fill(url, (json.dumps(each).encode() for each in events))
                yield url


def fill(url: str, bodies: Iterable[bytes]) -> None:
    """Take events in."""
    caches, coming = Caches(), iter(bodies)
    with opened(url) as engine:
        while records := [Record(body, datetime.now(UTC)) for body in islice(coming, TOGETHER)]:
            with engine.begin() as connection:
                take(connection, records, caches)
            caches.commit()


def event(number: int, inputs: list[Event], outputs: list[Event]) -> Event:
    """Return the COMPLETE of a job of this number."""
    return {
        "eventTime": moment_of(BEGIN + number).isoformat(),
        "eventType": "COMPLETE",
        "producer": "bench://small",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": f"00000000-0000-4000-8000-{number:012d}"},
        "job": {"namespace": "bench", "name": f"load_{number:07d}"},
        "inputs": inputs,
        "outputs": outputs,
    }


def dataset(name: str) -> Event:
    """Return a dataset of an event."""
    return {"namespace": NAMESPACE, "name": name}


def node(name: str) -> str:
    """Return a dataset as questions name it."""
    return f"dataset:{NAMESPACE}:{name}"


def lakehouse(size: int) -> Iterator[Event]:
    """Yield one event of each job of a lakehouse of `size` tables: job n writes table n.

    Each reads two tables of the layer before; every tenth reads table 0, too, the hub. The same
    size gives the same events.
    """
    chance, width = random.Random(size), size // LAYERS
    for number in range(width, size):
        before = range(number - number % width - width, number - number % width)
        sources = {*chance.sample(before, 2), *((0,) if number % 10 == 0 else ())}
        inputs = [dataset(table(source, size)) for source in sorted(sources)]
        yield event(number, inputs, [dataset(table(number, size))])


def table(number: int, size: int) -> str:
    """Return the name of a table of the lakehouse; its layer is a part of it."""
    return f"layer_{number * LAYERS // size:02d}.table_{number:07d}"
