"""Years of events: leaving the store for an archive, and the lineage tables made anew from there.

Each is the product's own command, with Spark on this machine's cores; its start is counted, and
measured alone beside it. The rebuild is measured at two sizes (`history=1000000,10000000` names
others) and compared row by row with the store that the events came from; the floor of the archive
is the same bytes written by pyarrow alone.
"""

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pyarrow as pa
from pyarrow import parquet

from bench import _archive
from bench._commands import strandline
from bench.databases import database, opened
from bench.events import events
from bench.report import record
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.history.compare import differences
from strandline.store.ingest.take import Caches, Record, take

SIZES, SIZE_SHORT = (20_000, 100_000), 200
COMPARED = (
    200_000  # larger archives are written without a store before them, and compared with none
)
BATCH = 2_000
ARCHIVED_A_SECOND, REBUILT_A_SECOND = 5_000, 10_000_000 / 1_800


def run(short: bool, sizes: Sequence[int] = ()) -> None:
    """Measure and record; short: few events, no judgement. `sizes` of archives are in events."""
    rebuilds(sizes or ((SIZE_SHORT,) if short else SIZES), judged=not short)


def rebuilds(sizes: Sequence[int], *, judged: bool) -> None:
    """Record archives and rebuilds of so many events each, and how the cost of an event grows with their number."""
    start = _start()
    costs = [
        (_archive_and_rebuild if size <= COMPARED else _only_rebuild)(size, start, judged=judged)
        for size in sizes
    ]
    if len(sizes) > 1:
        for what, one in (("growth", 0), ("growth.cpu", 1)):
            growth = costs[-1][one] / costs[0][one]
            record(
                f"history.rebuild.{what}",
                growth,
                f"x an event, {sizes[0]} to {sizes[-1]}",
                "<= 1.15",
                growth <= 1.15,
            )


def _start() -> tuple[float, float]:
    """Seconds, and seconds of processor time, of a rebuild of one event.

    Nearly all of them start Spark.
    """
    with TemporaryDirectory(prefix="strandline-bench-") as folder, database("sqlite") as url:
        _archive.write(Path(folder), 1)
        ran = strandline("rebuild", "--from", folder, "--into", url)
    record("history.rebuild.start", ran.seconds, "s")
    record("history.rebuild.start.cpu", ran.processor, "s")
    return ran.seconds, ran.processor


def _archive_and_rebuild(
    size: int, start: tuple[float, float], *, judged: bool
) -> tuple[float, float]:
    """Seconds, and those of processors, of an event's rebuild, beyond Spark's start."""
    with TemporaryDirectory(prefix="strandline-bench-") as folder, database("sqlite") as live:
        fill(live, size)
        floor = sum(write_plain(Path(folder, "plain"), records) for records in batches(size))
        now = datetime.now(UTC).isoformat()
        seconds = strandline(
            "archive", "--database-url", live, "--before", now, "--to", f"{folder}/archive"
        ).seconds
        rate = size / seconds
        met = rate >= ARCHIVED_A_SECOND if judged else None
        record(f"history.archive.{size}", rate, "events/s", f">= {ARCHIVED_A_SECOND}", met,
               f"{seconds / floor:.1f} x pyarrow alone")  # fmt: skip
        return _rebuild(f"{folder}/archive", live, size, start, judged=judged)


def _rebuild(
    archive: str, live: str, size: int, start: tuple[float, float], *, judged: bool
) -> tuple[float, float]:
    """Record how long the tables take, and that they are those of the live store.

    What an event costs.
    """
    with database("sqlite") as rebuilt, opened(live) as expected, opened(rebuilt) as found:
        cost = _timed_rebuild(archive, rebuilt, size, start, judged=judged)
        differing = sum(differences(expected, found).values())
    record(f"history.rebuild.{size}.differing", differing, "rows", "0", differing == 0)
    return cost


def _only_rebuild(size: int, start: tuple[float, float], *, judged: bool) -> tuple[float, float]:
    """The same of an archive that no store had before."""
    with TemporaryDirectory(prefix="strandline-bench-") as folder, database("sqlite") as rebuilt:
        _archive.write(Path(folder), size)
        return _timed_rebuild(folder, rebuilt, size, start, judged=judged)


def _timed_rebuild(
    archive: str, into: str, size: int, start: tuple[float, float], *, judged: bool
) -> tuple[float, float]:
    ran = strandline("rebuild", "--from", archive, "--into", into, "--json")
    found = json.loads(ran.output)
    if found["events"] != size or found["rejected"]:
        raise RuntimeError(
            f"rebuilt {found['events']} events of {size}, rejected {found['rejected'][:1]}"
        )
    rate = size / ran.seconds
    met = rate >= REBUILT_A_SECOND if judged else None
    record(f"history.rebuild.{size}", rate, "events/s", f">= {REBUILT_A_SECOND:.0f}", met)
    seconds, processor = (ran.seconds - start[0]) / size, (ran.processor - start[1]) / size
    record(
        f"history.rebuild.{size}.cpu",
        processor * 1e6,
        "us an event",
        note="driver, JVM and workers, beyond the start",
    )
    return seconds, processor


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


def write_plain(folder: Path, records: Sequence[Record]) -> float:
    """Put a file with these records into an archive by pyarrow alone.

    Give the seconds that it took.
    """
    began = time.perf_counter()
    received = [micros_of(one.received_at) for one in records]
    columns = {"hash": [content_hash(one.value) for one in records], "received_at": received,
               "event_time": received, "body": [one.value for one in records]}  # fmt: skip
    day = folder / f"day={records[0].received_at:%Y-%m-%d}"
    day.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), day / f"{uuid4().hex}.parquet", compression="zstd")
    return time.perf_counter() - began
