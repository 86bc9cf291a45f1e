"""Realistic OpenLineage events for benchmarks.

Spark jobs over tables of 20 to 50 columns with column lineage.

Two kinds, mixed as in a lakehouse: RUNNING events of streaming queries, one a micro-batch, with
barrier and snapshots; and batch runs with START and COMPLETE. The same seed gives the same bytes.
`cold` gives every event names of its own.

A job's event is serialized once, with a mark for each value that changes; its later ones are put
together from the pieces between the marks. So a million events cost seconds, and ten million can be
had.
"""

import json
import random
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any
from uuid import UUID

PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/integration/spark"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = ("bigint", "string", "timestamp", "decimal(18,2)", "double", "boolean", "date")
MARK = re.compile(rb'"<<(\w+)>>"')
Json = dict[str, Any]


def events(
    count: int, seed: int = 0, jobs: int = 100, streaming: float = 0.3, cold: bool = False
) -> Iterator[bytes]:
    """`count` events of `jobs` jobs as JSON bytes; `streaming` is the share of streaming jobs."""
    chance = random.Random(seed)
    pool = [_Job(number, seed, streaming_job=number < jobs * streaming) for number in range(jobs)]
    for index in range(count):
        job = (
            _Job(seed * 10**9 + index, seed, streaming_job=index % 2 == 0)
            if cold
            else chance.choice(pool)
        )
        yield job.next_event(BEGIN + timedelta(milliseconds=10 * index), chance)


def key_of(event: bytes) -> bytes:
    """The Kafka key that OpenLineage's clients give an event."""
    job = json.loads(event)["job"]
    return f"run:{job['namespace']}/{job['name']}".encode()


class _Job:
    """One Spark job over two sources and a sink; gives its events one after the other."""

    def __init__(self, number: int, seed: int, *, streaming_job: bool) -> None:
        chance = random.Random(f"{seed}/{number}")
        self.name = f"warehouse_load_{number:06d}.append_data.sales_fact_{number:06d}"
        self.streaming = streaming_job
        self.sources = [
            _table(f"raw_{chance.randrange(200):04d}_{number:06d}_{side}", chance)
            for side in ("a", "b")
        ]
        self.sink = _table(f"fact_{number:06d}", chance)
        self.columns = _column_lineage(self.sources, self.sink, chance)
        self.number, self.sent = number, 0
        self.pieces: dict[bool, list[bytes]] = {}  # of an event with a barrier, and without

    def next_event(self, at: datetime, chance: random.Random) -> bytes:
        """The job's next event as JSON, at a moment."""
        turn = self.sent
        self.sent += 1
        if self.streaming:
            run, kind, barrier = 0, "START" if turn == 0 else "RUNNING", turn
        else:
            run, kind, barrier = turn // 2, ("START", "COMPLETE")[turn % 2], 0
        values: dict[bytes, Any] = {
            b"time": _zulu(at),
            b"committed": at.isoformat(),
            b"kind": kind,
            b"run": _uuid(self.number, run),
        }
        values |= {b"barrier": barrier, b"batch": barrier - 1}
        for side in (b"a", b"b", b"sink"):
            values[b"rows_" + side] = chance.randrange(10**6)
            if barrier:
                values[b"snapshot_" + side] = str(chance.getrandbits(62))
        return self._put_together(bool(barrier), values)

    def _put_together(self, barrier: bool, values: Mapping[bytes, Any]) -> bytes:
        if barrier not in self.pieces:
            self.pieces[barrier] = MARK.split(json.dumps(self._event(barrier)).encode())
        pieces = self.pieces[barrier].copy()
        pieces[1::2] = [json.dumps(values[name]).encode() for name in pieces[1::2]]
        return b"".join(pieces)

    def _event(self, barrier: bool) -> Json:
        """An event with marks in the place of what changes."""
        tables = (
            (self.sources[0], "a"),
            (self.sources[1], "b"),
            (self.sink | {"facets": self.sink["facets"] | {"columnLineage": self.columns}}, "sink"),
        )
        inputs_and_output = [_dataset(table, side, barrier) for table, side in tables]
        return {
            "eventTime": "<<time>>",
            "producer": PRODUCER,
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "eventType": "<<kind>>",
            "run": {"runId": "<<run>>", "facets": self._run_facets(barrier)},
            "job": {
                "namespace": "spark-production",
                "name": self.name,
                "facets": self._job_facets(),
            },
            "inputs": inputs_and_output[:2],
            "outputs": inputs_and_output[2:],
        }

    def _run_facets(self, barrier: bool) -> Json:
        parent = {
            "run": {"runId": _uuid(self.number, 10**6)},
            "job": {"namespace": "spark-production", "name": "nightly"},
        }
        facets = {
            "parent": _facet("ParentRunFacet", **parent, root=parent),
            "processing_engine": _facet(
                "ProcessingEngineRunFacet",
                version="4.1.4",
                name="spark",
                openlineageAdapterVersion="1.54.0",
            ),
            "spark_properties": _facet(
                "RunFacet", properties={"spark.master": "yarn", "spark.app.name": self.name}
            ),
        }
        if barrier:
            facets["strandline_heartbeat"] = _facet(
                "StrandlineHeartbeatRunFacet", timeoutSeconds=60
            )
            facets["strandline_barrier"] = _facet(
                "StrandlineBarrierRunFacet", engine="spark", queryId=_uuid(self.number, 10**7),
                batchId="<<batch>>", barrierId="<<barrier>>", phase="committed",
                committedAt="<<committed>>", checkpointLocation="s3a://lake/_cp/" + self.name,
            )  # fmt: skip
        return facets

    def _job_facets(self) -> Json:
        pattern = {
            "eventTrigger": "EVENT_BASED",
            "eventContentMode": "COMPLETE_SNAPSHOT" if self.streaming else "ACCUMULATIVE",
        }
        kind = "STREAMING" if self.streaming else "BATCH"
        return {
            "jobType": _facet(
                "JobTypeJobFacet",
                processingType=kind,
                integration="SPARK",
                jobType="JOB",
                emissionPattern=pattern,
            )
        }


def _table(name: str, chance: random.Random) -> Json:
    columns = [
        {"name": f"column_{index:02d}_{chance.choice('abcdef')}", "type": chance.choice(TYPES)}
        for index in range(chance.choice((20, 20, 20, 20, 20, 20, 22, 50)))
    ]
    return {
        "namespace": "s3a://lake",
        "name": f"/warehouse/sales.db/{name}",
        "facets": {
            "schema": _facet("SchemaDatasetFacet", fields=columns),
            "dataSource": _facet("DatasourceDatasetFacet", name="s3a://lake", uri="s3a://lake"),
            "catalog": _facet(
                "CatalogDatasetFacet",
                framework="iceberg",
                type="hive",
                name="lake",
                warehouseUri="s3a://lake/w",
            ),
            "symlinks": _facet(
                "SymlinksDatasetFacet",
                identifiers=[
                    {"namespace": "hive://metastore:9083", "name": f"sales.{name}", "type": "TABLE"}
                ],
            ),
        },
    }


def _column_lineage(sources: list[Json], sink: Json, chance: random.Random) -> Json:
    fields = {}
    for field in sink["facets"]["schema"]["fields"]:
        fields[field["name"]] = {
            "inputFields": [
                _origin(chance.choice(sources), chance) for _ in range(chance.choice((1, 1, 2)))
            ]
        }
    return _facet(
        "ColumnLineageDatasetFacet", fields=fields, dataset=[_origin(sources[0], chance, "FILTER")]
    )


def _origin(table: Json, chance: random.Random, subtype: str = "TRANSFORMATION") -> Json:
    column = chance.choice(table["facets"]["schema"]["fields"])["name"]
    kind = "INDIRECT" if subtype == "FILTER" else "DIRECT"
    how = {"type": kind, "subtype": subtype, "description": f"UPPER({column})", "masking": False}
    return {
        "namespace": table["namespace"],
        "name": table["name"],
        "field": column,
        "transformations": [how],
    }


def _dataset(table: Json, side: str, barrier: bool) -> Json:
    facets: Json = {}
    if side == "sink":
        name = "OutputStatisticsOutputDatasetFacet"
        facets["outputStatistics"] = _facet(name, rowCount=f"<<rows_{side}>>", size=4096)
    if barrier:
        facets["strandline_snapshot"] = _facet(
            "StrandlineSnapshotDatasetFacet",
            format="iceberg",
            snapshotId=f"<<snapshot_{side}>>",
            barrierId="<<barrier>>",
        )
    return {**table, ("outputFacets" if side == "sink" else "inputFacets"): facets}


def _facet(schema: str, **content: Any) -> Json:
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"https://openlineage.io/spec/facets/1-0-1/{schema}.json#/$defs/{schema}",
        **content,
    }


def _zulu(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _uuid(number: int, run: int) -> str:
    """A UUID of version 7, as OpenLineage's clients make them."""
    chance = int.from_bytes(blake2b(f"{number}/{run}".encode(), digest_size=16).digest(), "big")
    millis = int(BEGIN.timestamp() * 1000) + run % 10**7
    return str(
        UUID(int=millis << 80 | 7 << 76 | (chance >> 8) % 2**12 << 64 | 2 << 62 | chance % 2**62)
    )
