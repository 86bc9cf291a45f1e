"""An archive of so many events of a warehouse, written by what the product archives with, without a store before it.

`python -m bench._archive EVENTS FOLDER` makes one to keep: ten million take some 10 minutes of one core and 8 GB.
"""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from bench.events import BEGIN, events
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.history.archive import MOST, target_of
from strandline.store.ingest.archived import Batch
from strandline.store.ingest.raw_events import DAY

APART = 10_000  # microseconds between two events, as `events` has them
PER_ARRAY = 2_000
SCHEMA = pa.schema(
    [("hash", pa.binary()), ("received_at", pa.int64()), ("event_time", pa.int64()), ("body", pa.binary()), ("day", pa.date32())]
)  # fmt: skip


def write(folder: Path, size: int) -> None:
    """Put the first so many events of `bench.events` there, received when they were sent."""
    write_batch = target_of(str(folder), {})
    coming = _arrays(size)
    number = 0
    while held := list(islice(coming, MOST // PER_ARRAY)):
        table = pa.Table.from_batches(held)
        day = table["received_at"][0].as_py() // DAY
        write_batch(Batch(f"{number:06d}", day, []), table)
        number += 1


def _arrays(size: int) -> Iterator[pa.RecordBatch]:
    """As Arrow has them. A day has a whole number of files, so no file has two days."""
    coming = events(size)
    at = micros_of(BEGIN)
    while bodies := list(islice(coming, PER_ARRAY)):
        times = range(at, at + len(bodies) * APART, APART)
        days = pa.array([at // DAY] * len(bodies), pa.int32()).cast(pa.date32())
        hashes = [content_hash(body) for body in bodies]
        yield pa.RecordBatch.from_arrays(
            [pa.array(hashes), pa.array(times), pa.array(times), pa.array(bodies), days],
            schema=SCHEMA,
        )
        at += len(bodies) * APART


if __name__ == "__main__":
    write(Path(sys.argv[2]), int(sys.argv[1]))
