"""FLIP-314's types under their names, in Python's spelling.

What a listener is given, and what it implements.

All events and graphs are frozen values. A listener runs on a thread of its own: it may throw, hang
or do its IO on the context's executor, and hurts nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable


class Boundedness(Enum):
    """The kind of a source: bounded or not."""

    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


class ModifyType(Enum):
    """The change that a sink makes to its table."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class ExecutionMode(Enum):
    """The execution mode of a job."""

    STREAMING = "STREAMING"
    BATCH = "BATCH"


class JobStatus(Enum):
    """The states of a job that a listener receives."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"

    @property
    def is_terminal(self) -> bool:
        """True if the job is over."""
        return self in (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED)


@dataclass(frozen=True)
class DatasetConfigFacet:
    """The options of a dataset's connector, redacted."""

    config: Mapping[str, str]
    name: str = "config"


@dataclass(frozen=True)
class DatasetSchemaFacet:
    """The columns of a dataset and their types, in order."""

    fields: Mapping[str, str]
    name: str = "schema"


@dataclass(frozen=True)
class LineageDataset:
    """A dataset; facets by their key, of these types or of a provider's own."""

    name: str
    namespace: str
    facets: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class TableLineageDataset(LineageDataset):
    """A dataset that is a table.

    `object_path` is database.table, `catalog_context` the catalog's name.
    """

    catalog_context: str = ""
    table: str = ""
    object_path: str = ""


@dataclass(frozen=True)
class LineageVertex:
    """A source or a sink: the datasets that it reads or writes."""

    datasets: tuple[LineageDataset, ...] = ()


@dataclass(frozen=True)
class SourceLineageVertex(LineageVertex):
    """A source."""

    boundedness: Boundedness = Boundedness.BOUNDED


@dataclass(frozen=True)
class TableSourceLineageVertex(SourceLineageVertex):
    """A source that is a table."""


@dataclass(frozen=True)
class TableSinkLineageVertex(LineageVertex):
    """A sink that is a table."""

    modify_type: ModifyType = ModifyType.INSERT


@dataclass(frozen=True)
class LineageEdge:
    """Data flows from a source vertex to a sink vertex."""

    source: LineageVertex
    sink: LineageVertex


@dataclass(frozen=True)
class TableColumnLineageEdge:
    """Columns of a source table make one column of the sink."""

    source: LineageDataset
    source_columns: tuple[str, ...]
    sink_column: str


@dataclass(frozen=True)
class TableLineageEdge(LineageEdge):
    """An edge between tables, with its columns."""

    column_edges: tuple[TableColumnLineageEdge, ...] = ()


@dataclass(frozen=True)
class LineageGraph:
    """All sources and sinks of a job, and the edges between them."""

    sources: tuple[LineageVertex, ...] = ()
    sinks: tuple[LineageVertex, ...] = ()
    relations: tuple[LineageEdge, ...] = ()


@dataclass(frozen=True)
class JobCreatedEvent:
    """A job began."""

    job_id: str
    job_name: str
    lineage_graph: LineageGraph
    execution_mode: ExecutionMode


@dataclass(frozen=True)
class JobExecutionStatusEvent:
    """A job's status changed; decide on `new_status`."""

    old_status: JobStatus
    new_status: JobStatus
    exception: str | None = None
    job_id: str = ""
    job_name: str = ""


JobStatusChangedEvent = JobCreatedEvent | JobExecutionStatusEvent


@dataclass(frozen=True)
class Context:
    """The arguments of a factory.

    The Spark conf, and an executor for IO that ends before the job.
    """

    configuration: Mapping[str, str]
    io_executor: Executor


@runtime_checkable
class JobStatusChangedListener(Protocol):
    """Receives the status changes of jobs."""

    def on_event(self, event: JobStatusChangedEvent) -> None:
        """Handle a created job, or its new status."""
        ...


@runtime_checkable
class JobStatusChangedListenerFactory(Protocol):
    """Named by `spark.strandline.listeners`; has a constructor without arguments."""

    def create_listener(self, context: Context) -> JobStatusChangedListener:
        """Create the listener of one application."""
        ...


class LineageVertexProvider:
    """A Python data source or sink that knows its own lineage.

    Inherit from it beside `pyspark.sql.datasource.DataSource`: the class is found by its `name()`,
    made with the options of the query, and asked for its vertex.
    """

    def get_lineage_vertex(self) -> LineageVertex:
        """Return the vertex, with facets of its own."""
        raise NotImplementedError


@runtime_checkable
class CommitListener(Protocol):
    """A listener that is also notified of the application's commits to Iceberg tables.

    Other formats tell nobody of their commits.
    """

    def notify_commit_complete(self, identifier: str, snapshot_id: str, commit_kind: str) -> None:
        """Handle a committed snapshot; `identifier` is catalog.database.table.

        `commit_kind` the format's own word (append, overwrite, ...).
        """
        ...


@runtime_checkable
class JobStatusHook(Protocol):
    """Follows one job."""

    def on_created(self, job_id: str) -> None:
        """Handle the beginning."""
        ...

    def on_finished(self, job_id: str) -> None:
        """Handle a good end."""
        ...

    def on_failed(self, job_id: str, exception: str | None) -> None:
        """Handle a failure."""
        ...

    def on_canceled(self, job_id: str) -> None:
        """Handle a cancellation."""
        ...


def tell_hook(hook: JobStatusHook, event: JobStatusChangedEvent) -> None:
    """Call the method of the hook that an event stands for."""
    if isinstance(event, JobCreatedEvent):
        hook.on_created(event.job_id)
    elif event.new_status is JobStatus.FINISHED:
        hook.on_finished(event.job_id)
    elif event.new_status is JobStatus.FAILED:
        hook.on_failed(event.job_id, event.exception)
    elif event.new_status is JobStatus.CANCELED:
        hook.on_canceled(event.job_id)
