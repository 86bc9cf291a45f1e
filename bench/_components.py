"""Components for the benchmarks of versions.

100 tables each, one base table, ten below it, nine below each of these.

The same commits are told as facts to a model, and as OpenLineage events to a server.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from strandline.core.versions import facts
from strandline.core.versions.facts import Fact, Job, Table

TABLES = 100
LAKE = "iceberg://lake"
JOBS = "bench"
PRODUCER = "https://github.com/strandline/strandline/bench"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
START = datetime(2026, 11, 1, tzinfo=UTC).timestamp()

JSON = dict[str, Any]


def table(component: int, number: int) -> Table:
    """A table by its number in its component; 0 is the base table."""
    return (LAKE, f"c{component}.t{number}")


def job(component: int, number: int) -> Job:
    """The job that writes a table."""
    return (JOBS, f"c{component}_j{number}")


def source(number: int) -> int | None:
    """The number of the table from which a table is made."""
    return None if number == 0 else (number - 1) // 10 if number > 10 else 0


def run_id(component: int, number: int) -> str:
    """The run of a job."""
    return str(uuid5(NAMESPACE_URL, f"{component}/{number}"))


def started(components: int) -> Iterator[Fact]:
    """Every job runs."""
    for component in range(components):
        for number in range(TABLES):
            above = source(number)
            reads = (table(component, above),) if above is not None else ()
            writes = (table(component, number),)
            yield facts.RunStarted(
                job(component, number),
                run_id(component, number),
                START,
                f"c{component}",
                reads,
                writes,
            )


def committed(component: int, number: int, barrier: int) -> Fact:
    """A job commits a barrier."""
    at, above = START + 10.0 * barrier, source(number)
    return facts.BarrierCommitted(
        job(component, number),
        run_id(component, number),
        f"c{component}",
        barrier,
        at,
        at + 0.01 * number,
        (facts.WrittenSnapshot(table(component, number), str(barrier)),),
        (facts.Used(table(component, above), str(barrier)),) if above is not None else (),
        barrier - 1,
    )


def round_of(components: int, barrier: int) -> Iterator[Fact]:
    """Every job commits a barrier."""
    return (
        committed(component, number, barrier)
        for component in range(components)
        for number in range(TABLES)
    )


def start_event(component: int, number: int) -> JSON:
    """START of a job."""
    return _event(
        "START", component, number, START, {"group": f"c{component}", "engine": "spark"}, None
    )


def commit_event(component: int, number: int, barrier: int) -> JSON:
    """RUNNING of a micro-batch."""
    at = START + 10.0 * barrier + 0.01 * number
    told = {
        "group": f"c{component}",
        "barrierId": barrier,
        "engine": "spark",
        "queryId": f"q{number}",
        "batchId": barrier - 1,
        "phase": "committed",
        "startedAt": _moment(at - 1),
        "committedAt": _moment(at),
    }
    return _event("RUNNING", component, number, at, told, barrier)


def _event(
    kind: str, component: int, number: int, at: float, told: JSON, barrier: int | None
) -> JSON:
    above = source(number)
    return {
        "eventType": kind,
        "eventTime": _moment(at),
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
        "run": {"runId": run_id(component, number), "facets": {"strandline_barrier": _facet(told)}},
        "job": {"namespace": JOBS, "name": job(component, number)[1], "facets": {}},
        "inputs": []
        if above is None
        else [_dataset(table(component, above), "inputFacets", barrier)],
        "outputs": [_dataset(table(component, number), "outputFacets", barrier)],
    }


def _dataset(named: Table, facets: str, barrier: int | None) -> JSON:
    shown: JSON = {"namespace": named[0], "name": named[1]}
    if barrier is None:
        return shown
    snapshot: JSON = {"snapshotId": str(barrier), "barrierId": barrier, "format": "iceberg"}
    if barrier > 1:
        snapshot["parentSnapshotId"] = str(barrier - 1)
    return shown | {facets: {"strandline_snapshot": _facet(snapshot)}}


def _facet(content: JSON) -> JSON:
    return {"_producer": PRODUCER, "_schemaURL": PRODUCER, **content}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
