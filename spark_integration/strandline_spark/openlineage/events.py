"""Makes OpenLineage RunEvents: whose run, which job, under which parent, with which facets.

Built with openlineage-python's classes, returned as JSON-ready dictionaries without nulls. Nothing
here knows Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Literal, get_args

from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    error_message_run,
    extraction_error_run,
    job_type_job,
    parent_run,
    processing_engine_run,
    sql_job,
)
from openlineage.client.uuid import generate_static_uuid

from strandline_spark.conf import Conf, Parent
from strandline_spark.model.statement import Statement
from strandline_spark.openlineage.datasets import inputs_of, outputs_of
from strandline_spark.openlineage.facets import (
    PRODUCER,
    StrandlineBarrierRunFacet,
    StrandlineHeartbeatRunFacet,
)
from strandline_spark.openlineage.redacted_sql import clean_sql
from strandline_spark.openlineage.to_json import as_json, shared
from strandline_spark.version import __version__

Kind = Literal["APPLICATION", "BATCH", "STREAMING"]
_FOREIGN = {
    "_schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunFacet",
    "_producer": PRODUCER,
}
TERMINAL = frozenset({"COMPLETE", "FAIL", "ABORT"})


@dataclass(frozen=True, slots=True)
class RunOf:
    """One run: its id, its job's name, and what kind of job that is."""

    run_id: str
    job: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class EventContent:
    """The content of an event apart from its run and job."""

    statements: Sequence[Statement] = ()
    error: str | None = None
    unreadable: str | None = None
    barrier: StrandlineBarrierRunFacet | None = None
    facets: Mapping[str, Any] = field(default_factory=dict)
    snapshot: bool = False  # the event stands for itself (COMPLETE_SNAPSHOT)
    heartbeat: bool = False


class Events:
    """Events of one Spark application."""

    def __init__(self, conf: Conf, application: RunOf) -> None:
        self._conf = conf
        self._application = application
        self._parents = {
            kind: shared(parent)
            for kind in get_args(Kind)
            if (parent := self._parent(kind)) is not None
        }
        self._lease = shared(StrandlineHeartbeatRunFacet(timeoutSeconds=conf.heartbeat_seconds))
        self._properties = shared({**_FOREIGN, "properties": dict(conf.captured)})
        self._details = shared({**_FOREIGN, "applicationId": conf.app_id})
        self._engine = shared(
            processing_engine_run.ProcessingEngineRunFacet(
                version=conf.spark_version or "unknown",
                name="spark",
                openlineageAdapterVersion=__version__,
            )
        )

    def event(
        self, state: str, run: RunOf, at: float, content: EventContent = EventContent()
    ) -> dict[str, Any]:
        """The RunEvent `state` of `run` at `at` (milliseconds since 1970) as a dictionary."""
        event = RunEvent(
            eventType=RunState(state),
            eventTime=iso_time(at),
            run=Run(runId=run.run_id, facets=self._run_facets(state, run, content)),
            job=Job(
                namespace=self._conf.namespace, name=run.job, facets=self._job_facets(run, content)
            ),
            inputs=inputs_of(content.statements),
            outputs=outputs_of(content.statements),
            producer=PRODUCER,
        )
        as_dict: dict[str, Any] = as_json(event)
        return as_dict

    def _run_facets(self, state: str, run: RunOf, content: EventContent) -> dict[str, Any]:
        facets: dict[str, Any] = {
            "strandline_heartbeat": self._lease,
            **content.facets,
        }
        if run.kind in self._parents:
            facets["parent"] = self._parents[run.kind]
        if content.barrier is not None:
            facets["strandline_barrier"] = content.barrier
        if content.error is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(content.error, "JAVA")
        faults = _faults(content)
        if faults:
            facets["extractionError"] = extraction_error_run.ExtractionErrorRunFacet(
                totalTasks=len(faults) + _datasets(content), failedTasks=len(faults), errors=faults
            )
        if state == "START" and self._conf.captured:
            facets["spark_properties"] = self._properties
        if state == "START" and run.kind == "APPLICATION" and self._conf.app_id:
            facets["spark_applicationDetails"] = self._details
        if not content.heartbeat:
            facets["processing_engine"] = self._engine
        return {name: facet for name, facet in facets.items() if name not in self._conf.facets_off}

    def _parent(self, kind: Kind) -> parent_run.ParentRunFacet | None:
        """The application for its runs, the scheduler's run for the application.

        Root is what is above all.
        """
        application = Parent(self._conf.namespace, self._application.job, self._application.run_id)
        parent = self._conf.parent if kind == "APPLICATION" else application
        if parent is None:
            return None
        root = self._conf.root or application
        return parent_run.ParentRunFacet(
            run=parent_run.Run(parent.run_id, facets=None),
            job=parent_run.Job(parent.namespace, parent.name, facets=None),
            root=parent_run.Root(
                run=parent_run.RootRun(root.run_id, facets=None),
                job=parent_run.RootJob(root.namespace, root.name, facets=None),
            ),
        )

    def _job_facets(self, run: RunOf, content: EventContent) -> dict[str, Any]:
        if (
            content.heartbeat
        ):  # a heartbeat says nothing of the job, so that it cannot stand for a micro-batch
            return {}
        facets = {"jobType": _job_type(run.kind, content.snapshot), **_sql(content.statements)}
        return {name: facet for name, facet in facets.items() if name not in self._conf.facets_off}


def _faults(content: EventContent) -> list[extraction_error_run.Error]:
    """Return the unread parts of a plan: all of it, or single steps of it."""
    error = extraction_error_run.Error
    steps = dict.fromkeys(step for statement in content.statements for step in statement.opaque)
    opaque = [error(f"{step}: what its rows are made of is not known", task=step) for step in steps]
    parts = dict.fromkeys(part for statement in content.statements for part in statement.unread)
    opaque += [error(f"not readable: {part}", task=part.partition(":")[0]) for part in parts]
    return opaque if content.unreadable is None else [error(content.unreadable), *opaque]


def _sql(statements: Sequence[Statement]) -> dict[str, Any]:
    """The statement's text without its values, where one statement of SQL is all there is."""
    texts = {
        statement.sql for statement in statements if statement.outputs and statement.sql is not None
    }
    return (
        {"sql": sql_job.SQLJobFacet(query=clean_sql(texts.pop()), dialect="spark")}
        if len(texts) == 1
        else {}
    )


def _datasets(content: EventContent) -> int:
    return sum(len(statement.inputs) + len(statement.outputs) for statement in content.statements)


@lru_cache(maxsize=16)
def _job_type(kind: Kind, snapshot: bool) -> Any:
    facet = job_type_job.JobTypeJobFacet(
        processingType="STREAMING" if kind == "STREAMING" else "BATCH",
        integration="SPARK",
        jobType="APPLICATION" if kind == "APPLICATION" else "QUERY",
        emissionPattern=job_type_job.EmissionPattern(
            "EVENT_BASED", "COMPLETE_SNAPSHOT" if snapshot else "ACCUMULATIVE"
        ),
    )
    return shared(facet)


def key_of(event: Mapping[str, Any]) -> str:
    """The Kafka key that OpenLineage clients give this event.

    The root's job, else the parent's, else its own.
    """
    parent = event["run"].get("facets", {}).get("parent", {})
    job = parent.get("root", {}).get("job") or parent.get("job") or event["job"]
    return f"run:{job['namespace']}/{job['name']}"


def run_id_of(*parts: object, at: float) -> str:
    """A run id that is the same whenever it is made of the same parts and time."""
    instant = datetime.fromtimestamp(at / 1000, timezone.utc)
    return str(generate_static_uuid(instant, "\0".join(map(str, parts)).encode()))


def iso_time(milliseconds: float) -> str:
    """Milliseconds since 1970 as an ISO 8601 time in UTC.

    >>> iso_time(0)
    '1970-01-01T00:00:00.000Z'
    """
    instant = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
