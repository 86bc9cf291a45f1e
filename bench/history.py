"""Years of events: leaving the store for an archive, the lineage tables made anew from there, closures of the whole graph.

Each is the product's own command, with Spark on this machine's cores; its start is counted, and measured alone beside it. The rebuild is
measured at two sizes and compared row by row with the store that the events came from; the floor of the archive is the
same bytes written by pyarrow alone.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyarrow import parquet

from bench import _wide_lakehouse as lakehouse
from bench._machine import ROOT
from bench.databases import database, opened
from bench.events import events
from bench.report import record
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.history.compare import differences
from strandline.store.ingest.take import Caches, Record, take

SIZES, SIZE_SHORT = (20_000, 100_000), 200
JOBS, JOBS_SHORT = 100_000, 100
DEPTH = 20
AREA = 200  # jobs that read each other
BATCH = 2_000
ARCHIVED_A_SECOND, REBUILT_A_SECOND, CLOSURE_SECONDS = 5_000, 10_000_000 / 1_800, 600


def run(short: bool) -> None:
    """Measure and record; short: few events, no judgement."""
    sizes, jobs = ((SIZE_SHORT,), JOBS_SHORT) if short else (SIZES, JOBS)
    start = _start()
    an_event = [_archive_and_rebuild(size, start, judged=not short) for size in sizes]
    if not short:
        growth = an_event[-1] / an_event[0]
        record("history.rebuild.growth", growth, f"x an event, {sizes[0]} to {sizes[-1]}", "<= 1.15", growth <= 1.15)
    closure(jobs, judged=not short)


def _start() -> float:
    """Seconds of a rebuild of one event: nearly all of them start Spark."""
    with TemporaryDirectory(prefix="strandline-bench-") as folder, database("sqlite") as url:
        write(Path(folder), next(batches(1)))
        seconds = strandline("rebuild", "--from", folder, "--into", url).seconds
    record("history.rebuild.start", seconds, "s")
    return seconds


def _archive_and_rebuild(size: int, start: float, *, judged: bool) -> float:
    """Seconds of an event's rebuild, beyond Spark's start."""
    with TemporaryDirectory(prefix="strandline-bench-") as folder, database("sqlite") as live:
        fill(live, size)
        floor = sum(write(Path(folder, "plain"), records) for records in batches(size))
        now = datetime.now(UTC).isoformat()
        seconds = strandline("archive", "--database-url", live, "--before", now, "--to", f"{folder}/archive").seconds
        rate = size / seconds
        met = rate >= ARCHIVED_A_SECOND if judged else None
        record(f"history.archive.{size}", rate, "events/s", f">= {ARCHIVED_A_SECOND}", met,
               f"{seconds / floor:.1f} x pyarrow alone")  # fmt: skip
        return _rebuild(f"{folder}/archive", live, size, start, judged=judged)


def _rebuild(archive: str, live: str, size: int, start: float, *, judged: bool) -> float:
    """Record how long the tables take, and that they are those of the live store; seconds of an event."""
    with database("sqlite") as made, opened(live) as expected, opened(made) as rebuilt:
        seconds = strandline("rebuild", "--from", archive, "--into", made).seconds
        differing = sum(differences(expected, rebuilt).values())
    rate = size / seconds
    met = rate >= REBUILT_A_SECOND if judged else None
    record(f"history.rebuild.{size}", rate, "events/s", f">= {REBUILT_A_SECOND:.0f}", met)
    record(f"history.rebuild.{size}.differing", differing, "rows", "0", differing == 0)
    return (seconds - start) / size


def closure(jobs: int, *, judged: bool) -> None:
    """Record how long it takes to find what each table of the whole graph reaches."""
    with database("sqlite") as url, opened(url) as engine:
        lakehouse.fill(engine, jobs, AREA)
        ran = strandline("analyse", "--database-url", url, "--report", "impact", "--depth", str(DEPTH), "--json")
    found = json.loads(ran.output)["closures"]["datasets"]
    record(f"history.closure.{jobs}_jobs.depth", found["depth"], "jobs", note=f"complete: {found['complete']}")
    met = ran.seconds <= CLOSURE_SECONDS if judged else None
    record(f"history.closure.{jobs}_jobs", ran.seconds, "s", f"<= {CLOSURE_SECONDS}", met, f"areas of {AREA} jobs")


def fill(url: str, size: int) -> None:
    """A store of so many events of a warehouse."""
    caches = Caches()
    with opened(url) as engine:
        for records in batches(size):
            with engine.begin() as connection:
                take(connection, records, caches)
            caches.commit()


def batches(size: int) -> Iterator[list[Record]]:
    """Its events, as they are taken."""
    coming = events(size)
    while records := [Record(body, datetime.now(UTC)) for body in islice(coming, BATCH)]:
        yield records


def write(folder: Path, records: Sequence[Record]) -> float:
    """Put a file with these records into an archive by pyarrow alone; give the seconds that it took."""
    began = time.perf_counter()
    received = [micros_of(one.received_at) for one in records]
    columns = {"hash": [content_hash(one.value) for one in records], "received_at": received,
               "event_time": received, "body": [one.value for one in records]}  # fmt: skip
    day = folder / f"day={records[0].received_at:%Y-%m-%d}"
    day.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), day / f"{uuid4().hex}.parquet", compression="zstd")
    return time.perf_counter() - began


class Ran(NamedTuple):
    """How long a command took, and what it printed."""

    seconds: float
    output: str


def strandline(*argv: str) -> Ran:
    """Run a command; raises RuntimeError with what it said where it fails."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "strandline", *argv], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"strandline {argv[0]}: exit {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return Ran(time.perf_counter() - began, done.stdout)
