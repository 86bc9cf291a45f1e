"""A lakehouse of wide jobs as small events.

Each reads eight tables of the layers before and writes two, column by column.

Of 100,000 jobs that makes 200,000 tables, a million edges between tables and jobs, five million
between columns. Every tenth job reads the hub, table 0. The same size gives the same events. Jobs
may keep to areas of so many jobs, which read nothing of each other but the hub: else nearly every
table hangs on nearly every earlier one, as in no company.
"""

import json
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Engine

from bench._lakehouse import AT_ONCE, BEGIN, SCHEMA
from strandline.core.openlineage.times import moment_of
from strandline.store.ingest.take import Caches, Record, take

NAMESPACE = "iceberg://wide"
LAYERS = 20
READS, WRITES, COLUMNS = 8, 2, 25


def fill(engine: Engine, jobs: int, area: int = 0) -> None:
    """Take the events of so many jobs, in areas of so many (0: there is one)."""
    caches = Caches()
    coming = map(_record, events(jobs, area))
    while records := list(islice(coming, AT_ONCE)):
        with engine.begin() as connection:
            take(connection, records, caches)
        caches.commit()


def node_of(table: int) -> str:
    """A table as questions name it."""
    return f"dataset:{NAMESPACE}:{name_of(table)}"


def name_of(table: int) -> str:
    """A table's name."""
    return f"shop_{table % 50:02d}.table_{table:07d}"


def events(jobs: int, area: int = 0) -> Iterator[dict[str, Any]]:
    """One COMPLETE of each job: job n writes tables 2n and 2n + 1."""
    area = area or jobs
    chance, width = random.Random(jobs), max(1, area // LAYERS)
    for number in range(jobs):
        first, layer = number - number % area, number % area // width
        low, high = (first + (layer - 1) * width) * WRITES, (first + layer * width) * WRITES
        sources = chance.sample(range(low, high), min(READS, high - low)) if layer else []
        if number % 10 == 0 and layer:
            sources[0] = 0
        yield _event(number, sorted(set(sources)), chance)


def _event(number: int, sources: list[int], chance: random.Random) -> dict[str, Any]:
    return {
        "eventTime": moment_of(BEGIN + number).isoformat(),
        "eventType": "COMPLETE",
        "producer": "bench://wide",
        "schemaURL": SCHEMA,
        "run": {"runId": f"00000000-0000-4000-8000-{number:012d}"},
        "job": {"namespace": "bench", "name": f"wide_{number:07d}"},
        "inputs": [{"namespace": NAMESPACE, "name": name_of(source)} for source in sources],
        "outputs": [_sink(number * WRITES + one, sources, chance) for one in range(WRITES)],
    }


def _sink(table: int, sources: list[int], chance: random.Random) -> dict[str, Any]:
    fields = {
        f"column_{column:02d}": {
            "inputFields": [
                {"namespace": NAMESPACE, "name": name_of(chance.choice(sources or [0])), "field": f"column_{column:02d}",
                 "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]}
            ]
        }
        for column in range(COLUMNS)
    }  # fmt: skip
    said = {"_producer": "bench://wide", "_schemaURL": SCHEMA}
    facets = {"columnLineage": said | {"fields": fields}} if sources else {}
    return {"namespace": NAMESPACE, "name": name_of(table), "facets": facets}


def _record(event: dict[str, Any]) -> Record:
    return Record(json.dumps(event).encode(), moment_of(BEGIN))
