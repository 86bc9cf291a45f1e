"""The bank as events: four streaming jobs of ten barriers each and a report by CTAS, as the emitter would tell of them.

Iceberg tables in the folder /lake, catalog `lake`. Snapshot b of a table is its number times 100 plus b:
transfers 101.., credits 201.., debits 301.., balance 401.., report 501. Barrier b is committed at 12:00:00 plus 2 b.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from strandline.store.ingest.take import Record

BEGIN = datetime(2026, 11, 20, 12, tzinfo=UTC)
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACET = {"_producer": "test://bank", "_schemaURL": "test://bank"}
NUMBERS = {"transfers": 1, "credits": 2, "debits": 3, "balance": 4, "report": 5}
STREAMS = {
    "ingest": ((), "transfers"),
    "credits": (("transfers",), "credits"),
    "debits": (("transfers",), "debits"),
    "balance": (("credits", "debits"), "balance"),
}
COLUMNS: dict[str, dict[str, tuple[str, str, str | None]]] = {
    "credits": {"account": ("transfers", "payee", None), "amount": ("transfers", "amount", None)},
    "debits": {
        "account": ("transfers", "payer", None),
        "amount": ("transfers", "amount", "(- amount)"),
    },
}
RUNS = {"ingest": 1, "credits": 2, "debits": 3, "balance": 4, "report": 5}


def bank(barriers: int = 10, *, ended: bool = True) -> list[Record]:
    """All events, in the order of their times; each is received when it happens."""
    events: list[dict[str, Any]] = []
    for job in STREAMS:
        events += stream(job, barriers, ended=ended)
    events += report(barriers) if ended else []
    return records(sorted(events, key=lambda event: str(event["eventTime"])))


def records(events: Iterable[dict[str, Any]]) -> list[Record]:
    """Events as they are received."""
    return [
        Record(orjson.dumps(event), datetime.fromisoformat(event["eventTime"])) for event in events
    ]


def stream(job: str, barriers: int, *, ended: bool = True) -> Iterator[dict[str, Any]]:
    """START, a RUNNING for each barrier, COMPLETE."""
    inputs, output = STREAMS[job]
    yield event("START", 0, job, [dataset(name) for name in inputs], [with_columns(output)])
    for barrier in range(1, barriers + 1):
        yield event(
            "RUNNING",
            2 * barrier,
            job,
            [read(name, barrier) for name in inputs],
            [made(output, barrier)],
            strandline_barrier=barrier_facet(job, barrier),
        )
    if ended:
        yield event("COMPLETE", 2 * barriers + 1, job)


def report(barrier: int) -> Iterator[dict[str, Any]]:
    """A batch job that reads the newest balance."""
    creates = {"lifecycleStateChange": FACET | {"lifecycleStateChange": "CREATE"}}
    made_of_it = made("report", 1) | {"facets": dataset("report")["facets"] | creates}
    made_of_it["outputFacets"]["strandline_snapshot"].pop("barrierId")
    yield event(
        "START",
        2 * barrier + 2,
        "report",
        [dataset("balance")],
        [made_of_it | {"outputFacets": {}}],
    )
    yield event("COMPLETE", 2 * barrier + 4, "report", [read("balance", barrier)], [made_of_it])


def event(
    kind: str,
    seconds: float,
    job: str,
    inputs: Iterable[dict[str, Any]] = (),
    outputs: Iterable[dict[str, Any]] = (),
    **facets: Any,
) -> dict[str, Any]:
    """One event, `seconds` after the beginning."""
    streaming = job in STREAMS
    job_type = {"processingType": "STREAMING" if streaming else "BATCH", "integration": "SPARK"}
    pattern = {"emissionPattern": {"processing": "COMPLETE_SNAPSHOT"}} if streaming else {}
    return {
        "eventType": kind,
        "eventTime": time(seconds),
        "producer": "test://bank",
        "schemaURL": SCHEMA,
        "run": {
            "runId": run_id(job),
            "facets": {"strandline_heartbeat": FACET | {"timeoutSeconds": 60}, **facets},
        },
        "job": {
            "namespace": "bank",
            "name": f"bank_{job}",
            "facets": {"jobType": FACET | job_type | pattern},
        },
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def time(seconds: float) -> str:
    """A moment as events have it."""
    return (BEGIN + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def run_id(job: str) -> str:
    return f"00000000-0000-4000-8000-00000000000{RUNS[job]}"


def snapshot_id(table: str, barrier: int) -> str:
    """The snapshot that a table had at a barrier."""
    return str(100 * NUMBERS[table] + barrier)


def dataset(table: str) -> dict[str, Any]:
    """A table: named by its location, with its own name as a symlink."""
    symlink = {"namespace": "file:/lake", "name": f"bank.{table}", "type": "TABLE"}
    catalog = {"name": "lake", "framework": "iceberg", "type": "jdbc"}
    facets = {"symlinks": FACET | {"identifiers": [symlink]}, "catalog": FACET | catalog}
    return {"namespace": "file", "name": f"/lake/bank/{table}", "facets": facets}


def with_columns(table: str) -> dict[str, Any]:
    """A table as an output, with the lineage of its columns where the job tells it."""
    found = dataset(table)
    if table in COLUMNS:
        fields = {
            column: {"inputFields": [_origin(*origin)]} for column, origin in COLUMNS[table].items()
        }
        found["facets"]["columnLineage"] = FACET | {"fields": fields}
    return found


def _origin(table: str, column: str, transform: str | None) -> dict[str, Any]:
    how = {
        "type": "DIRECT",
        "subtype": "TRANSFORMATION" if transform else "IDENTITY",
        "description": transform or "",
    }
    return {
        "namespace": "file",
        "name": f"/lake/bank/{table}",
        "field": column,
        "transformations": [how],
    }


def read(table: str, barrier: int) -> dict[str, Any]:
    """A table as an input, with the snapshot that was read."""
    told = {"format": "iceberg", "snapshotId": snapshot_id(table, barrier), "barrierId": barrier}
    return dataset(table) | {"inputFacets": {"strandline_snapshot": FACET | told}}


def made(table: str, barrier: int) -> dict[str, Any]:
    """A table as an output, with the snapshot that was made."""
    told: dict[str, Any] = {
        "format": "iceberg",
        "snapshotId": snapshot_id(table, barrier),
        "barrierId": barrier,
    }
    told |= {"committedAt": time(2 * barrier), "operation": "append", "numberOfRows": 80}
    if barrier > 1:
        told["parentSnapshotId"] = snapshot_id(table, barrier - 1)
    return with_columns(table) | {"outputFacets": {"strandline_snapshot": FACET | told}}


def barrier_facet(job: str, barrier: int) -> dict[str, Any]:
    """The barrier that a micro-batch ended at."""
    return FACET | {
        "barrierId": barrier,
        "engine": "spark",
        "queryId": f"10000000-0000-4000-8000-00000000000{RUNS[job]}",
        "batchId": barrier - 1,
        "phase": "committed",
        "startedAt": time(2 * barrier - 1),
        "committedAt": time(2 * barrier),
    }
