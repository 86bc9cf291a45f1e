"""The physical plan of a finished execution.

The reports of its scans and the metrics of its write.

Query stages, adaptive plans, results of commands and cached relations are leaves to Spark although
they hold plans; without looking into them every scan below an exchange would be missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from strandline_spark.jvm.client import JavaObject, answer, fetched, known, simple_name
from strandline_spark.jvm.probe import answers_in
from strandline_spark.plans.questions import plan_probe

_METRICS: Mapping[str, tuple[str, ...]] = {
    "rowCount": ("numOutputRows", "addedRecords"),
    "size": ("numOutputBytes", "addedFileSizeInBytes"),
    "fileCount": ("numFiles", "addedDataFiles"),
}


def scans_of(plan: JavaObject) -> Iterator[JavaObject]:
    """The `Scan`s (v2) that an execution ran, and its file scans (v1), subqueries included."""
    for scan in plan_probe(plan._gateway_client).scans(plan):
        yield known(scan)


def statistics_of(execution: JavaObject) -> dict[str, int]:
    """Return the write's own metrics, under the names of OpenLineage's outputStatistics facet."""
    counts = _counts(execution)
    statistics = {
        name: next((counts[name] for name in names if name in counts), None)
        for name, names in _METRICS.items()
    }
    return {name: value for name, value in statistics.items() if value is not None}


def counted_by(execution: JavaObject, names: tuple[str, ...]) -> dict[str, int]:
    """Those metrics of the write, or of the command, that have these names."""
    counts = _counts(execution)
    return {name: counts[name] for name in names if name in counts}


def _counts(execution: JavaObject) -> dict[str, int]:
    """All metrics of the write."""
    return dict(answer(execution, "metrics", _metrics))


def _metrics(execution: JavaObject) -> dict[str, int]:
    query = fetched(execution)
    probe = plan_probe(query._gateway_client)
    return dict(answers_in(probe.metrics(query.executedPlan())))


def write_of(plan: JavaObject) -> JavaObject | None:
    """The `Write` (v2) that an execution ran; None where it wrote in another way."""
    written = known(plan_probe(plan._gateway_client).written(plan))
    return written.write() if simple_name(written) in _WRITES else None


_WRITES = {
    "AppendDataExec",
    "OverwriteByExpressionExec",
    "OverwritePartitionsDynamicExec",
    "ReplaceDataExec",
    "WriteDeltaExec",
}
