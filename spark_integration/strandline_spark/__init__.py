"""Strandline's emitter for PySpark: OpenLineage events with snapshots and barriers, switched on by Spark conf.

Every Python start of an environment with this wheel imports this file, so names are resolved when they are first used.
"""

__version__ = "0.1.0"

_HOMES = {
    "enable": "activation",
    "disable": "activation",
    "add_lineage_edges": "edges",
    "column_lineage": "columns",
    "Boundedness": "listeners",
    "CommitKind": "listeners",
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
