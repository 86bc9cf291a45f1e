"""The physical plan of a finished execution.

The reports of its scans and the metrics of its write.

Query stages, adaptive plans, results of commands and cached relations are leaves to Spark although
they hold plans; without looking into them every scan below an exchange would be missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from strandline_spark.jvm.class_names import WITHIN
from strandline_spark.jvm.client import JavaObject, Jvm, class_name, once, simple_name
from strandline_spark.jvm.parsed_texts import METRICS, counts_in

_METRICS: Mapping[str, tuple[str, ...]] = {
    "rowCount": ("numOutputRows", "addedRecords"),
    "size": ("numOutputBytes", "addedFileSizeInBytes"),
    "fileCount": ("numFiles", "addedDataFiles"),
}


def scans_of(plan: JavaObject, jvm: Jvm) -> Iterator[JavaObject]:
    """The `Scan`s (v2) that an execution ran, and its file scans (v1), subqueries included."""
    for tree in (plan, *jvm.sequence(plan.subqueriesAll())):
        for leaf in jvm.sequence(tree.collectLeaves()):
            yield from _of_leaf(leaf, jvm)


def _of_leaf(leaf: JavaObject, jvm: Jvm) -> Iterator[JavaObject]:
    name = simple_name(leaf)
    if name in {"BatchScanExec", "MicroBatchScanExec"}:
        yield leaf.scan()
    elif name == "FileSourceScanExec":
        yield leaf
    else:
        for inner in _inside(leaf, name):
            yield from scans_of(inner, jvm)


def _inside(leaf: JavaObject, name: str) -> list[JavaObject]:
    if name == "AdaptiveSparkPlanExec":
        return [leaf.executedPlan()]
    if name == "CommandResultExec":
        return [leaf.commandPhysicalPlan()]
    if name == "InMemoryTableScanExec":
        return [leaf.relation().cachedPlan()]
    return [leaf.plan()] if name.endswith("QueryStageExec") else []


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
    """All metrics of the write, by the text of all where that holds.

    One question instead of three for each.
    """
    if not METRICS.holds:
        return _asked(_written(execution.executedPlan()).metrics().iterator())
    return counts_in(
        once(
            execution,
            "metrics",
            lambda query: str(_written(query.executedPlan()).metrics().toString()),
        )
    )


def _asked(metrics: JavaObject) -> dict[str, int]:
    counts = {}
    while metrics.hasNext():
        pair = metrics.next()
        counts[str(pair._1())] = int(pair._2().value())
    return counts


def write_of(plan: JavaObject) -> JavaObject | None:
    """The `Write` (v2) that an execution ran; None where it wrote in another way."""
    written = _written(plan)
    return written.write() if simple_name(written) in _WRITES else None


_WRITES = {
    "AppendDataExec",
    "OverwriteByExpressionExec",
    "OverwritePartitionsDynamicExec",
    "ReplaceDataExec",
    "WriteDeltaExec",
}


def _written(plan: JavaObject) -> JavaObject:
    inside = WITHIN.get(class_name(plan))
    return _written(getattr(plan, inside)()) if inside else plan
