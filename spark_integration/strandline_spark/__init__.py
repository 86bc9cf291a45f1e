"""Strandline's emitter for PySpark: OpenLineage events with snapshots and barriers, switched on by Spark conf.

Every Python start of an environment with this wheel imports this file, so names are resolved when they are first used.
"""

__version__ = "0.1.0"

_HOMES = {
    "enable": "activation",
    "disable": "activation",
    "add_lineage_edges": "edges",
    "column_lineage": "columns",
    **dict.fromkeys(
        (
            "Boundedness Context DatasetConfigFacet DatasetSchemaFacet JobCreatedEvent JobExecutionStatusEvent "
            "JobStatus JobStatusChangedListener JobStatusChangedListenerFactory JobStatusHook LineageDataset "
            "LineageEdge LineageGraph LineageVertex LineageVertexProvider ModifyType SourceLineageVertex "
            "TableColumnLineageEdge TableLineageDataset TableLineageEdge TableSinkLineageVertex "
            "TableSourceLineageVertex CommitListener CommitKind ExecutionMode"
        ).split(),
        "listeners",
    ),
    "ColumnLineage": "columns",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name):  # type: ignore[no-untyped-def]
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
