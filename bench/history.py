"""Years of events: leaving the store for an archive, and the lineage tables made anew from there.

Each is the product's own command, with Spark on this machine's cores; its start is counted, and
measured alone beside it. The rebuild is measured at two sizes (`history=1000000,10000000` names
others) and compared row by row with the store that the events came from. A larger archive than
`COMPARED` is written without a store before it: ten million events take 8 GB and ten minutes.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import pyarrow as pa

from bench._machine import ROOT, cpu_micros, folder, opened
from bench._stores import fill, store
from bench.events import BEGIN, events
from bench.report import record
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.history.archive import MOST, target_of
from strandline.history.compare import differences
from strandline.store.ingest.archived import Batch
from strandline.store.ingest.raw_events import DAY

SIZES, SIZE_SHORT = (20_000, 100_000), 200
COMPARED = 200_000
ARCHIVED_A_SECOND, REBUILT_A_SECOND = 5_000, 10_000_000 / 1_800
APART = 10_000  # microseconds between two events, as `events` has them
PER_ARRAY = 2_000
SCHEMA = pa.schema(
    {
        "hash": pa.binary(),
        "received_at": pa.int64(),
        "event_time": pa.int64(),
        "body": pa.binary(),
        "day": pa.date32(),
    }
)


def run(short: bool, sizes: Sequence[int] = ()) -> None:
    """Measure and record archives and rebuilds of `sizes` events; short: few events."""
    with folder() as place, store("sqlite") as rebuilt:
        _write_archive(place, 1)
        start = _strandline("rebuild", "--from", str(place), "--into", rebuilt)
    record("history.rebuild.start", start.seconds, "s")
    record("history.rebuild.start.cpu", start.processor, "s")
    for size in sizes or ((SIZE_SHORT,) if short else SIZES):
        with folder() as place, store("sqlite") as live, store("sqlite") as rebuilt:
            if size > COMPARED:
                _write_archive(place, size)
                _rebuild(place, rebuilt, size, start)
                continue
            fill(live, events(size))
            _archive(live, place, size)
            _rebuild(place, rebuilt, size, start)
            with opened(live) as expected, opened(rebuilt) as found:
                if differing := differences(expected, found):
                    raise RuntimeError(f"the rebuilt store differs: {differing}")


def _archive(live: str, place: Path, size: int) -> None:
    now = datetime.now(UTC).isoformat()
    ran = _strandline("archive", "--database-url", live, "--before", now, "--to", str(place))
    record(f"history.archive.{size}", size / ran.seconds, "events/s", least=ARCHIVED_A_SECOND)


def _rebuild(archive: Path, into: str, size: int, start: "Ran") -> None:
    ran = _strandline("rebuild", "--from", str(archive), "--into", into, "--json")
    summary = json.loads(ran.output)
    if summary["events"] != size or summary["rejected"]:
        raise RuntimeError(f"rebuilt {summary} of {size} events")
    record(f"history.rebuild.{size}", size / ran.seconds, "events/s", least=REBUILT_A_SECOND)
    micros = (ran.processor - start.processor) / size * 1e6
    note = "driver, JVM and workers, beyond the start"
    record(f"history.rebuild.{size}.cpu", micros, "us an event", note=note)


def _write_archive(place: Path, size: int) -> None:
    """Archive the first so many events of `bench.events`, received when they were sent."""
    write_batch = target_of(str(place), {})
    arrays = _arrays(size)
    number = 0
    while group := list(islice(arrays, MOST // PER_ARRAY)):
        rows = pa.Table.from_batches(group)
        write_batch(Batch(f"{number:06d}", rows["received_at"][0].as_py() // DAY, []), rows)
        number += 1


def _arrays(size: int) -> Iterator[pa.RecordBatch]:
    """Yield the events as Arrow has them.

    A day has a whole number of files, so no file has two days.
    """
    coming = events(size)
    at = micros_of(BEGIN)
    while bodies := list(islice(coming, PER_ARRAY)):
        times = range(at, at + len(bodies) * APART, APART)
        days = pa.array([at // DAY] * len(bodies), pa.int32()).cast(pa.date32())
        columns = [[content_hash(body) for body in bodies], times, times, bodies, days]
        yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=SCHEMA)
        at += len(bodies) * APART


class Ran(NamedTuple):
    """The end of a command: its seconds, those of processors in all its processes, its output."""

    seconds: float
    processor: float
    output: str


def _strandline(*argv: str) -> Ran:
    """Run a command; RuntimeError with its output where it fails."""
    began = time.perf_counter()
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        command = [sys.executable, "-m", "strandline", *argv]
        running = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=errors)
        processor = 0.0
        # A JVM that has ended is nobody's child any more: its time is read while it lives.
        while running.poll() is None:
            processor = max(processor, cpu_micros(running.pid) / 1e6)
            time.sleep(0.5)
        output.seek(0)
        errors.seek(0)
        ran = Ran(time.perf_counter() - began, processor, output.read())
        if running.returncode:
            said = (ran.output + errors.read())[-500:]
            raise RuntimeError(f"strandline {argv[0]}: exit {running.returncode}: {said}")
    return ran
