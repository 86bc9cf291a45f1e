"""Events of streaming jobs with barriers and snapshots, in the form that schemas/ describes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

PRODUCER = "https://github.com/strandline/strandline/tests"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
EPOCH = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

JSON = dict[str, Any]
LAKE = "iceberg://lake"


def moment(seconds: float) -> str:
    """A time, some seconds into the story."""
    return (EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def run_id(job: str, number: int = 1) -> str:
    """The id of a job's run."""
    return str(uuid5(NAMESPACE_URL, f"{job}/{number}"))


def event(
    kind: str,
    job: str,
    at: float,
    *,
    run: int = 1,
    run_facets: JSON | None = None,
    inputs: Sequence[JSON] = (),
    outputs: Sequence[JSON] = (),
) -> JSON:
    """An event of a run."""
    return {
        "eventType": kind,
        "eventTime": moment(at),
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
        "run": {"runId": run_id(job, run), "facets": run_facets or {}},
        "job": {"namespace": "default", "name": job, "facets": {}},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def dataset(name: str, direction: str, snapshot: JSON | None = None) -> JSON:
    """A table of the catalog `lake`, with what is said of its snapshot."""
    facets = {"strandline_snapshot": facet(snapshot)} if snapshot is not None else {}
    return {"namespace": LAKE, "name": name, "facets": {}, f"{direction}Facets": facets}


def facet(content: JSON) -> JSON:
    """A facet with what every facet has."""
    return {"_producer": PRODUCER, "_schemaURL": PRODUCER, **content}


def barrier_facet(domain: str | None, barrier: int | None, started: float, committed: float, **more: Any) -> JSON:
    """The run facet of a micro-batch."""
    content = {
        "domain": domain,
        "barrierId": barrier,
        "engine": "spark",
        "queryId": "q",
        "batchId": barrier - 1 if barrier is not None else None,
        "phase": "committed",
        "startedAt": moment(started),
        "committedAt": moment(committed),
        **more,
    }
    return {"strandline_barrier": facet({key: value for key, value in content.items() if value is not None})}


def started(
    job: str, at: float, reads: Sequence[str], writes: Sequence[str], *, domain: str | None, run: int = 1
) -> JSON:
    """START: the job really runs."""
    facets = {"strandline_barrier": facet({"domain": domain, "engine": "spark"})} if domain else {}
    return event(
        "START",
        job,
        at,
        run=run,
        run_facets=facets,
        inputs=[dataset(name, "input") for name in reads],
        outputs=[dataset(name, "output") for name in writes],
    )


def committed(
    job: str,
    at: float,
    barrier: int,
    reads: Mapping[str, str],
    writes: Mapping[str, str],
    *,
    domain: str | None,
    run: int = 1,
    parents: Mapping[str, str] | None = None,
    started_at: float | None = None,
    aligned: bool = True,
) -> JSON:
    """RUNNING of one micro-batch: it read and made these snapshots under a barrier."""
    carried = {"barrierId": barrier} if aligned else {}
    inputs = [dataset(name, "input", {"snapshotId": snapshot, **carried}) for name, snapshot in reads.items()]
    outputs = [
        dataset(name, "output", _made(name, snapshot, barrier, at, parents or {})) for name, snapshot in writes.items()
    ]
    facets = barrier_facet(domain, barrier, at - 1 if started_at is None else started_at, at)
    return event("RUNNING", job, at, run=run, run_facets=facets, inputs=inputs, outputs=outputs)


def _made(name: str, snapshot: str, barrier: int, at: float, parents: Mapping[str, str]) -> JSON:
    made: JSON = {"snapshotId": snapshot, "barrierId": barrier, "committedAt": moment(at), "format": "iceberg"}
    return made | ({"parentSnapshotId": parents[name]} if name in parents else {})


def ended(job: str, at: float, kind: str = "COMPLETE", *, run: int = 1) -> JSON:
    """A terminal event."""
    return event(kind, job, at, run=run)


def appended(job: str, at: float, name: str, snapshot: str, parent: str | None = None, **more: Any) -> JSON:
    """A batch job's COMPLETE that appended a snapshot, and knows nothing of barriers."""
    made: JSON = {"snapshotId": snapshot, "committedAt": moment(at), "format": "iceberg", **more}
    if parent is not None:
        made["parentSnapshotId"] = parent
    return event("COMPLETE", job, at, run=int(at), outputs=[dataset(name, "output", made)])
