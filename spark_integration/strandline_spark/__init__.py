"""Strandline's emitter for PySpark.

OpenLineage events with snapshots and barriers, switched on by Spark conf.

Every Python start of an environment with this wheel imports this file, so names are resolved when
they are first used.
"""

TYPE_CHECKING = False  # importing typing would cost every start 2 ms
if TYPE_CHECKING:
    from strandline_spark.activation import disable as disable
    from strandline_spark.activation import enable as enable
    from strandline_spark.assertions import completes as completes
    from strandline_spark.checking import CheckResult as CheckResult
    from strandline_spark.checking import check as check
    from strandline_spark.consistency.aligned.stream import aligned_stream as aligned_stream
    from strandline_spark.consistency.ctas import create_table_as as create_table_as
    from strandline_spark.consistency.reading.tables import consistent_sql as consistent_sql
    from strandline_spark.consistency.reading.tables import read_consistent as read_consistent
    from strandline_spark.listeners.user_edges import add_lineage_edges as add_lineage_edges
    from strandline_spark.model.flip314 import Boundedness as Boundedness
    from strandline_spark.model.flip314 import CommitListener as CommitListener
    from strandline_spark.model.flip314 import Context as Context
    from strandline_spark.model.flip314 import DatasetConfigFacet as DatasetConfigFacet
    from strandline_spark.model.flip314 import DatasetSchemaFacet as DatasetSchemaFacet
    from strandline_spark.model.flip314 import ExecutionMode as ExecutionMode
    from strandline_spark.model.flip314 import JobCreatedEvent as JobCreatedEvent
    from strandline_spark.model.flip314 import JobExecutionStatusEvent as JobExecutionStatusEvent
    from strandline_spark.model.flip314 import JobStatus as JobStatus
    from strandline_spark.model.flip314 import JobStatusChangedListener as JobStatusChangedListener
    from strandline_spark.model.flip314 import (
        JobStatusChangedListenerFactory as JobStatusChangedListenerFactory,
    )
    from strandline_spark.model.flip314 import JobStatusHook as JobStatusHook
    from strandline_spark.model.flip314 import LineageDataset as LineageDataset
    from strandline_spark.model.flip314 import LineageEdge as LineageEdge
    from strandline_spark.model.flip314 import LineageGraph as LineageGraph
    from strandline_spark.model.flip314 import LineageVertex as LineageVertex
    from strandline_spark.model.flip314 import LineageVertexProvider as LineageVertexProvider
    from strandline_spark.model.flip314 import ModifyType as ModifyType
    from strandline_spark.model.flip314 import SourceLineageVertex as SourceLineageVertex
    from strandline_spark.model.flip314 import TableColumnLineageEdge as TableColumnLineageEdge
    from strandline_spark.model.flip314 import TableLineageDataset as TableLineageDataset
    from strandline_spark.model.flip314 import TableLineageEdge as TableLineageEdge
    from strandline_spark.model.flip314 import TableSinkLineageVertex as TableSinkLineageVertex
    from strandline_spark.model.flip314 import TableSourceLineageVertex as TableSourceLineageVertex
    from strandline_spark.sources.aligned_reader import aligned_source as aligned_source
    from strandline_spark.sources.lineage_tables import lineage_tables as lineage_tables
    from strandline_spark.sql_columns import ColumnLineage as ColumnLineage
    from strandline_spark.sql_columns import column_lineage as column_lineage
    from strandline_spark.version import __version__ as __version__


_HOMES = {
    "enable": "activation",
    "disable": "activation",
    "add_lineage_edges": "listeners.user_edges",
    "column_lineage": "sql_columns",
    "Boundedness": "model.flip314",
    "CommitListener": "model.flip314",
    "Context": "model.flip314",
    "DatasetConfigFacet": "model.flip314",
    "DatasetSchemaFacet": "model.flip314",
    "ExecutionMode": "model.flip314",
    "JobCreatedEvent": "model.flip314",
    "JobExecutionStatusEvent": "model.flip314",
    "JobStatus": "model.flip314",
    "JobStatusChangedListener": "model.flip314",
    "JobStatusChangedListenerFactory": "model.flip314",
    "JobStatusHook": "model.flip314",
    "LineageDataset": "model.flip314",
    "LineageEdge": "model.flip314",
    "LineageGraph": "model.flip314",
    "LineageVertex": "model.flip314",
    "LineageVertexProvider": "model.flip314",
    "ModifyType": "model.flip314",
    "SourceLineageVertex": "model.flip314",
    "TableColumnLineageEdge": "model.flip314",
    "TableLineageDataset": "model.flip314",
    "TableLineageEdge": "model.flip314",
    "TableSinkLineageVertex": "model.flip314",
    "TableSourceLineageVertex": "model.flip314",
    "ColumnLineage": "sql_columns",
    "CheckResult": "checking",
    "check": "checking",
    "completes": "assertions",
    "aligned_stream": "consistency.aligned.stream",
    "read_consistent": "consistency.reading.tables",
    "consistent_sql": "consistency.reading.tables",
    "create_table_as": "consistency.ctas",
    "aligned_source": "sources.aligned_reader",
    "lineage_tables": "sources.lineage_tables",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name == "__version__":
        from strandline_spark.version import __version__

        return __version__
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
