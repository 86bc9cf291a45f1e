"""A lakehouse of many tables as small events.

Layers of jobs that read two tables of the layer before, and one hub.

Dataset 0 is the hub: every tenth job reads it too. The same size gives the same events.
"""

import json
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Engine

from strandline.core.openlineage.times import moment_of
from strandline.store.ingest.take import Caches, Record, take

LAYERS = 20
NAMESPACE = "iceberg://lake"
HUB = f"dataset:{NAMESPACE}:layer_00.table_0000000"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
BEGIN = 1_767_225_600_000_000  # 2026-01-01 in microseconds
AT_ONCE = 1_000


def fill(engine: Engine, size: int) -> None:
    """Take the events of a lakehouse of `size` datasets."""
    caches = Caches()
    coming = map(_record, events(size))
    while records := list(islice(coming, AT_ONCE)):
        with engine.begin() as connection:
            take(connection, records, caches)
        caches.commit()


def name_of(number: int, size: int) -> str:
    """A dataset's name; its layer is a part of it."""
    return f"layer_{number * LAYERS // size:02d}.table_{number:07d}"


def events(size: int) -> Iterator[dict[str, Any]]:
    """One COMPLETE of each job: job n writes table n."""
    chance, width = random.Random(size), size // LAYERS
    for number in range(width, size):
        before = range(number - number % width - width, number - number % width)
        sources = {*chance.sample(before, 2), *((0,) if number % 10 == 0 else ())}
        yield {
            "eventTime": moment_of(BEGIN + number).isoformat(),
            "eventType": "COMPLETE",
            "producer": "bench://lakehouse",
            "schemaURL": SCHEMA,
            "run": {"runId": f"00000000-0000-4000-8000-{number:012d}"},
            "job": {"namespace": "bench", "name": f"load_{number:07d}"},
            "inputs": [
                {"namespace": NAMESPACE, "name": name_of(source, size)}
                for source in sorted(sources)
            ],
            "outputs": [{"namespace": NAMESPACE, "name": name_of(number, size)}],
        }


def _record(event: dict[str, Any]) -> Record:
    return Record(json.dumps(event).encode(), moment_of(BEGIN))
