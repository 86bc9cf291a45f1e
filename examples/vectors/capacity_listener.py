"""A listener that reads a provider's own facets back from the vertices.

How much each topic of vectors can hold.

spark.strandline.listeners  capacity_listener.CapacityListenerFactory
spark.vectors.capacities    /tmp/capacities.txt
"""

from __future__ import annotations

from pathlib import Path

from strandline_spark import (
    Context,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobStatusChangedListener,
    LineageDataset,
)


class CapacityListenerFactory:
    """Makes the listener of one application."""

    def create_listener(self, context: Context) -> JobStatusChangedListener:
        """`spark.vectors.capacities` names the file to write."""
        return CapacityListener(Path(context.configuration["spark.vectors.capacities"]))


class CapacityListener:
    """Writes one line for each edge between topics of vectors."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def on_event(self, event: JobCreatedEvent | JobExecutionStatusEvent) -> None:
        """Look at jobs that begin."""
        if not isinstance(event, JobCreatedEvent):
            return
        with self._file.open("a") as lines:
            for edge in event.lineage_graph.relations:
                pairs = [
                    (source, sink) for source in edge.source.datasets for sink in edge.sink.datasets
                ]
                lines.writelines(f"{told(source)} -> {told(sink)}\n" for source, sink in pairs)


def told(dataset: LineageDataset) -> str:
    """A topic with what it can hold."""
    vector = dataset.facets.get("vector")
    return (
        f"{dataset.name}({vector.capacity} x {vector.value_type})"
        if vector is not None
        else dataset.name
    )
