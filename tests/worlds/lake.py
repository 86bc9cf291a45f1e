"""Small aligned lakes for tests.

Real Iceberg tables with barriers, and the events that report them to a collector.
"""

from __future__ import annotations

import gc
import itertools
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import NAMESPACE_URL, uuid5

from pyspark.sql import SparkSession

from strandline_spark.consistency.table_history import Point, TableHistory
from strandline_spark.consistency.table_identity import Identities
from strandline_spark.formats.iceberg.datasets import was_empty

JSON = dict[str, Any]
PRODUCER = "https://github.com/strandline/strandline/tests"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_NUMBERS = itertools.count(1)


class Lake:
    """A namespace of its own in the catalog `lake`, so that tests do not see each other's tables."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.database = f"lake.db{next(_NUMBERS)}"
        spark.sql(f"CREATE NAMESPACE {self.database}")

    def table(self, name: str, columns: str = "account bigint, amount bigint") -> str:
        """Make a table; gives its full name."""
        self.spark.sql(f"CREATE TABLE {self.name(name)} ({columns}) USING iceberg")
        return self.name(name)

    def name(self, table: str) -> str:
        """The full name of a table."""
        return f"{self.database}.{table}"

    def commit(
        self,
        table: str,
        barrier: int | None,
        *rows: tuple[int, int],
        group: str | None = None,
        **properties: str,
    ) -> str:
        """Append rows in one snapshot that carries a barrier; gives its id."""
        frame = self.spark.createDataFrame(list(rows), "account bigint, amount bigint")
        writer = frame.writeTo(self.name(table))
        carried = {"strandline.barrier": str(barrier)} if barrier is not None else {}
        for key, value in (
            carried | ({"strandline.group": group} if group else {}) | properties
        ).items():
            writer = writer.option(f"snapshot-property.{key}", value)
        writer.append()
        return self._newest(table)

    def stream(self, source: str, table: str) -> str:
        """Let an ordinary streaming query take what is new in one micro-batch.

        Gives the snapshot that it made.
        """
        rows = self.spark.readStream.table(self.name(source))
        place = str(self.folder / "streams" / table)
        query = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", place)
        assert query.toTable(self.name(table)).awaitTermination(600)
        return self._newest(table)

    def _newest(self, table: str) -> str:
        newest = self.history(table).newest
        assert newest is not None
        return newest.snapshot_id

    def history(self, table: str) -> TableHistory:
        """A table's history."""
        return TableHistory(self.spark, self.name(table))

    def barriers(self, table: str) -> list[int | None]:
        """The barrier of each snapshot of the main history, oldest first."""
        return [point.barrier for point in self.points(table)]

    def points(self, table: str) -> list[Point]:
        """The snapshots of the main history, oldest first."""
        return list(self.history(table).main())[::-1]

    def total_at(self, table: str, snapshot: str) -> int:
        """The sum of all amounts at a snapshot."""
        row = self.spark.sql(
            f"SELECT sum(amount) FROM {self.name(table)} VERSION AS OF {snapshot}"
        ).first()
        assert row is not None
        return int(row[0] or 0)


@contextmanager
def bank_in(spark: SparkSession, folder: Path) -> Iterator[Lake]:
    """An empty namespace in the catalog `lake`."""
    yield Lake(spark, folder)
    with (
        warnings.catch_warnings()
    ):  # Py4J's own: it never closes the connections of threads with a foreachBatch
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def report_commits(
    lake: Lake,
    url: str,
    job: str,
    table: str,
    group: str,
    only: int | None = None,
    run: str = "",
    reads: Mapping[int, Mapping[str, str]] | None = None,
) -> None:
    """Report a table's checkpoints to a collector as a streaming job's emitter would.

    START, then RUNNING for each.

    only: report one barrier alone. run: another run of the job than its first one. reads: by
    barrier, the snapshots that an ordinary stream read, with its checkpoint where `Lake.stream` has
    it.
    """
    for event in _events(lake, job, table, group, run, reads):
        if only is not None and event["run"]["facets"]["strandline_barrier"]["barrierId"] != only:
            continue
        _post(url, event)


def report_start(url: str, job: str, run: str) -> None:
    """Report that a run of a job has begun just now."""
    _post(url, _of_the_run("START", job, run))


def report_end(url: str, job: str, run: str = "") -> None:
    """Report that a run of a job is over."""
    _post(url, _of_the_run("COMPLETE", job, run))


def _of_the_run(event_type: str, job: str, run: str) -> JSON:
    return {
        "eventType": event_type,
        "eventTime": datetime.now(UTC).isoformat(),
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
        "run": {"runId": str(uuid5(NAMESPACE_URL, job + run))},
        "job": {"namespace": "default", "name": job},
    }


def name_the_place(lake: Lake, url: str, table: str) -> None:
    """Report which table of which catalog a dataset is."""
    identity, place = (
        Identities(lake.spark).of(lake.name(table)),
        lake.name(table).partition(".")[2],
    )
    facets = {
        "catalog": _facet({"framework": "iceberg", "type": "jdbc", "name": "lake"}),
        "symlinks": _facet(
            {"identifiers": [{"namespace": "hive://lake", "name": place, "type": "TABLE"}]}
        ),
    }
    schema = SCHEMA.replace("RunEvent", "DatasetEvent")
    event = {"eventTime": "2026-11-20T12:00:00Z", "producer": PRODUCER, "schemaURL": schema}
    _post(
        url,
        event
        | {"dataset": {"namespace": identity.namespace, "name": identity.name, "facets": facets}},
    )


def _post(url: str, event: JSON) -> None:
    request = Request(
        f"{url}/api/v1/lineage", json.dumps(event).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request, timeout=20) as answer:
        assert answer.status == 201


def _events(
    lake: Lake,
    job: str,
    table: str,
    group: str,
    run: str,
    reads: Mapping[int, Mapping[str, str]] | None,
) -> Iterator[JSON]:
    points = [point for point in lake.points(table) if point.barrier is not None]
    place = str(lake.folder / ("streams" if reads else "ck") / table)
    snapshots = lake.spark.table(f"{lake.name(table)}.snapshots").collect()
    on_empty = {str(one["snapshot_id"]) for one in snapshots if was_empty(one["summary"])}
    for point in points:
        facet: JSON = {
            "group": group,
            "barrierId": point.barrier,
            "engine": "spark",
            "phase": "committed",
        }
        if reads:
            began = (Path(place) / "sources" / "0" / "offsets" / "0").read_text().splitlines()[-1]
            facet |= {"sources": [{"description": "iceberg", "initialOffset": began}]}
        if point.batch is not None:
            facet |= {
                "queryId": point.batch[0],
                "batchId": point.batch[1],
                "checkpointLocation": place,
            }
        inputs = [
            _dataset(lake, name, "input", {"snapshotId": snapshot, "barrierId": point.barrier})
            for name, snapshot in (reads or {}).get(point.barrier or 0, point.inputs).items()
        ]
        made = {
            "snapshotId": point.snapshot_id,
            "barrierId": point.barrier,
            "committedAt": _at(point),
        }
        if point.snapshot_id in on_empty:
            made["wasEmpty"] = True
        yield {
            "eventType": "START" if point is points[0] else "RUNNING",
            "eventTime": _at(point),
            "producer": PRODUCER,
            "schemaURL": SCHEMA,
            "run": {
                "runId": str(uuid5(NAMESPACE_URL, job + run)),
                "facets": {"strandline_barrier": _facet(facet)},
            },
            "job": {"namespace": "default", "name": job, "facets": {}},
            "inputs": inputs,
            "outputs": [_dataset(lake, lake.name(table), "output", made | _parent(point))],
        }


def _parent(point: Point) -> JSON:
    return {"parentSnapshotId": point.parent_id} if point.parent_id is not None else {}


def _at(point: Point) -> str:
    return datetime.fromtimestamp(point.committed_ms / 1000, UTC).isoformat()


def _dataset(lake: Lake, name: str, direction: str, snapshot: JSON) -> JSON:
    identity = Identities(lake.spark).of(name)
    said = {"strandline_snapshot": _facet({"format": "iceberg", **snapshot})}
    return {
        "namespace": identity.namespace,
        "name": identity.name,
        "facets": {},
        f"{direction}Facets": said,
    }


def _facet(content: JSON) -> JSON:
    return {"_producer": PRODUCER, "_schemaURL": PRODUCER, **content}
