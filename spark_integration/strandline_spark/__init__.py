"""Strandline's emitter for PySpark: OpenLineage events with snapshots and barriers, switched on by Spark conf.

Every Python start of an environment with this wheel imports this file, so names are resolved when they are first used.
"""

TYPE_CHECKING = False  # importing typing would cost every start 2 ms
if TYPE_CHECKING:
    from strandline_spark.activation import disable as disable
    from strandline_spark.activation import enable as enable
    from strandline_spark.aligned import aligned_stream as aligned_stream
    from strandline_spark.checking import CheckResult as CheckResult
    from strandline_spark.checking import check as check
    from strandline_spark.columns import ColumnLineage as ColumnLineage
    from strandline_spark.columns import column_lineage as column_lineage
    from strandline_spark.ctas import create_table_as as create_table_as
    from strandline_spark.edges import add_lineage_edges as add_lineage_edges
    from strandline_spark.listeners import Boundedness as Boundedness
    from strandline_spark.listeners import CommitListener as CommitListener
    from strandline_spark.listeners import Context as Context
    from strandline_spark.listeners import DatasetConfigFacet as DatasetConfigFacet
    from strandline_spark.listeners import DatasetSchemaFacet as DatasetSchemaFacet
    from strandline_spark.listeners import ExecutionMode as ExecutionMode
    from strandline_spark.listeners import JobCreatedEvent as JobCreatedEvent
    from strandline_spark.listeners import JobExecutionStatusEvent as JobExecutionStatusEvent
    from strandline_spark.listeners import JobStatus as JobStatus
    from strandline_spark.listeners import JobStatusChangedListener as JobStatusChangedListener
    from strandline_spark.listeners import JobStatusChangedListenerFactory as JobStatusChangedListenerFactory
    from strandline_spark.listeners import JobStatusHook as JobStatusHook
    from strandline_spark.listeners import LineageDataset as LineageDataset
    from strandline_spark.listeners import LineageEdge as LineageEdge
    from strandline_spark.listeners import LineageGraph as LineageGraph
    from strandline_spark.listeners import LineageVertex as LineageVertex
    from strandline_spark.listeners import LineageVertexProvider as LineageVertexProvider
    from strandline_spark.listeners import ModifyType as ModifyType
    from strandline_spark.listeners import SourceLineageVertex as SourceLineageVertex
    from strandline_spark.listeners import TableColumnLineageEdge as TableColumnLineageEdge
    from strandline_spark.listeners import TableLineageDataset as TableLineageDataset
    from strandline_spark.listeners import TableLineageEdge as TableLineageEdge
    from strandline_spark.listeners import TableSinkLineageVertex as TableSinkLineageVertex
    from strandline_spark.listeners import TableSourceLineageVertex as TableSourceLineageVertex
    from strandline_spark.reading import consistent_sql as consistent_sql
    from strandline_spark.reading import read_consistent as read_consistent

__version__ = "0.1.0"

_HOMES = {
    "enable": "activation",
    "disable": "activation",
    "add_lineage_edges": "edges",
    "column_lineage": "columns",
    "Boundedness": "listeners",
    "CommitListener": "listeners",
    "Context": "listeners",
    "DatasetConfigFacet": "listeners",
    "DatasetSchemaFacet": "listeners",
    "ExecutionMode": "listeners",
    "JobCreatedEvent": "listeners",
    "JobExecutionStatusEvent": "listeners",
    "JobStatus": "listeners",
    "JobStatusChangedListener": "listeners",
    "JobStatusChangedListenerFactory": "listeners",
    "JobStatusHook": "listeners",
    "LineageDataset": "listeners",
    "LineageEdge": "listeners",
    "LineageGraph": "listeners",
    "LineageVertex": "listeners",
    "LineageVertexProvider": "listeners",
    "ModifyType": "listeners",
    "SourceLineageVertex": "listeners",
    "TableColumnLineageEdge": "listeners",
    "TableLineageDataset": "listeners",
    "TableLineageEdge": "listeners",
    "TableSinkLineageVertex": "listeners",
    "TableSourceLineageVertex": "listeners",
    "ColumnLineage": "columns",
    "CheckResult": "checking",
    "check": "checking",
    "aligned_stream": "aligned",
    "read_consistent": "reading",
    "consistent_sql": "reading",
    "create_table_as": "ctas",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
