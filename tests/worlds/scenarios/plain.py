"""Events with just what a test says.

Jobs in namespace `ns`, datasets in namespace `db`, times in seconds.
"""

from collections.abc import Iterable
from typing import Any

from strandline.store.ingest.take import Record
from worlds.scenarios.bank import FACET, SCHEMA, records, time


def run(
    kind: str | None,
    seconds: float,
    job: str,
    reads: Iterable[str | dict[str, Any]] = (),
    writes: Iterable[str | dict[str, Any]] = (),
    *,
    run_id: str = "1",
    of_run: dict[str, Any] | None = None,
    of_job: dict[str, Any] | None = None,
) -> Record:
    """An event of a run; its id is completed with the job's name."""
    event = {
        "eventTime": time(seconds),
        "producer": "test://plain",
        "schemaURL": SCHEMA,
        "run": {"runId": f"{job}-{run_id}", "facets": of_run or {}},
        "job": {"namespace": "ns", "name": job, "facets": of_job or {}},
        "inputs": [dataset(one) for one in reads],
        "outputs": [dataset(one) for one in writes],
    }
    return records([event | ({"eventType": kind} if kind else {})])[0]


def dataset(named: str | dict[str, Any], **facets: Any) -> dict[str, Any]:
    """A dataset by its name, or as it is."""
    return (
        named if isinstance(named, dict) else {"namespace": "db", "name": named, "facets": facets}
    )


def columns(named: str, **origins: tuple[str, str]) -> dict[str, Any]:
    """A dataset with the origin (dataset, column) of each of its columns."""
    fields = {
        column: {"inputFields": [{"namespace": "db", "name": source, "field": of}]}
        for column, (source, of) in origins.items()
    }
    return dataset(named, columnLineage=FACET | {"fields": fields})


def creates(named: str) -> dict[str, Any]:
    """A dataset that the statement creates."""
    return dataset(named, lifecycleStateChange=FACET | {"lifecycleStateChange": "CREATE"})


def parent(job: str, run_id: str = "1") -> dict[str, Any]:
    """The run facet that names a parent."""
    return {
        "parent": FACET
        | {"run": {"runId": f"{job}-{run_id}"}, "job": {"namespace": "ns", "name": job}}
    }
