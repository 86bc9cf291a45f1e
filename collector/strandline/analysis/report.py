"""All reports of one store: each as a table (Parquet, Delta, Iceberg), and its first rows with names for people.

Tables are written one after the other (`ResultTables`); a report's rows are read back from its table, so nothing is computed
twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from strandline.analysis import delays, usage
from strandline.analysis.aliases import aliases
from strandline.analysis.closure import KEY, Closure, Limits, closure
from strandline.analysis.graph import GraphFrames, column_arcs, read_graph, write_rows
from strandline.analysis.removal import removal
from strandline.analysis.result_tables import ResultTables
from strandline.core.labels import label_of
from strandline.store.lineage.column_lineage import DEPENDENCIES
from strandline.store.lineage.lookup import node_text
from strandline.store.lineage.relations import View
from strandline.store.sql.engine import make_engine, reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Json = dict[str, Any]


class Shown(NamedTuple):
    """How a report is shown: rows of a table that meet a condition, in an order, with these columns."""

    table: str
    where: str
    order: str
    columns: tuple[str, ...]
    about: str


REPORTS: Mapping[str, Shown] = {
    "impact": Shown(
        "datasets", "downstream > 0", "downstream DESC, id", ("id", "downstream", "upstream", "readers", "writers"),
        "the datasets that most others come from",
    ),
    "jobs": Shown(
        "jobs", "last_writer_of > 0", "datasets_below DESC, id",
        ("job", "last_writer_of", "datasets_below", "writes"), "the jobs that alone write what most others come from",
    ),
    "columns": Shown(
        "columns", "downstream_columns > 0", "downstream_columns DESC, node",
        ("dataset", "column", "downstream_columns", "downstream_datasets", "dependents", "by_value"),
        "the columns that most others come from",
    ),
    "unused": Shown(
        "unused_columns", "true", "dataset, column", ("dataset", "column"),
        "columns that no job uses, of datasets that are read",
    ),
    "orphans": Shown("datasets", "use = 'orphan'", "newest_at, id", ("id", "newest_at"), "nobody reads or writes them"),
    "unread": Shown("datasets", "use = 'unread'", "written_at, id", ("id", "written_at", "writers"), "written, never read"),
    "stale": Shown(
        "datasets", "use = 'stale'", "written_at, id", ("id", "written_at", "read_at", "readers", "downstream"),
        "read, and not written for long",
    ),
    "aliases": Shown(
        "aliases", "true", "rule, alike, dataset, other", ("dataset", "other", "rule", "evidence", "alike"),
        "datasets that are probably one; strandline names joins them",
    ),
    "delays": Shown(
        "delays_by_day", "true", "day DESC, seconds_after_birth_p95 DESC, dataset",
        ("dataset", "day", "snapshots", "seconds_after_birth_p50", "seconds_after_birth_p95", "seconds_after_birth_max",
         "seconds_after_inputs_p50", "seconds_after_inputs_p95", "seconds_after_inputs_max"),
        "how late snapshots were, by day",
    ),
}  # fmt: skip
WITHOUT = Shown("removal", "true", "rank, id", ("id", "effect"), "what the removal of these jobs concerns")
OF_COLUMNS = frozenset(("columns", "unused_columns", "aliases"))  # tables that need to know columns
OF_DATASETS = ("id", "dataset", "other", "newest_input")


class AnalysisRequest(NamedTuple):
    """What is to be analysed: of which moment, how far, which reports, without which jobs, and where tables go ('': nowhere)."""

    view: View
    limits: Limits
    stale_before: int
    reports: tuple[str, ...] = tuple(REPORTS)
    without: tuple[int, ...] = ()
    target: str = ""


class Analysis(NamedTuple):
    """The tables by name, how far each closure went, and the datasets by `id`."""

    tables: dict[str, DataFrame]
    closures: dict[str, Json]
    datasets: DataFrame


def analyse(spark: SparkSession, url: str, asked: AnalysisRequest, scratch: str) -> Analysis:
    """Read the store at `url` and write the tables that the reports need; `scratch` is removed by the caller."""
    spark.sparkContext.setCheckpointDir(f"{scratch}/checkpoints")
    kept = ResultTables(spark, asked.target or f"{scratch}/tables")
    if asked.target:
        kept.begin(asked.view.at, asked.stale_before)
    wanted = {REPORTS[name].table for name in asked.reports}
    columns = not OF_COLUMNS.isdisjoint(wanted)
    graph = read_graph(spark, url, asked.view, f"{scratch}/graph", asked.limits.partitions, columns=columns)
    steps = kept.table("steps", graph.steps)
    closures = _closures(graph, asked, wanted, kept) if wanted - {"delays_by_day"} else {}
    if "delays_by_day" in wanted:
        _delays(spark, url, f"{scratch}/snapshots", kept)
    if asked.without:
        kept.table("removal", removal(steps, asked.without, asked.limits))
    return Analysis(kept.tables, closures, graph.datasets)


def _closures(
    graph: GraphFrames, asked: AnalysisRequest, wanted: Collection[str], kept: ResultTables
) -> dict[str, Json]:
    """The tables that need everything below each node."""
    of_datasets = closure(_arcs(graph), graph.datasets.selectExpr("id AS start"), asked.limits)
    pairs, closures = kept.table("closure", of_datasets.pairs), {"datasets": of_datasets.outcome}
    used = kept.table("datasets", usage.datasets(graph, pairs, asked.stale_before))
    if {"columns", "unused_columns"} & set(wanted):
        closures["columns"] = _of_columns(graph, used, asked, kept)
    if "jobs" in wanted:
        kept.table("jobs", usage.jobs(graph, pairs))
    if "aliases" in wanted:
        kept.table("aliases", aliases(graph, pairs))
    return closures


class FirstRows(NamedTuple):
    """The first rows of a report, datasets and jobs by their ids, and how many rows there are."""

    rows: list[Json]
    total: int


def report_of(analysis: Analysis, how: Shown, most: int) -> FirstRows:
    """The first rows of a report, and how many there are: all of them are in its table."""
    found = analysis.tables[how.table].where(how.where)
    rows = [row.asDict() for row in found.orderBy(*map(_ordered, how.order.split(", "))).limit(most).collect()]
    return FirstRows(rows, found.count() if len(rows) == most else len(rows))


def rows_of(analysis: Analysis, how: Shown, most: int) -> Json:
    """The first rows of a report with the names of datasets and jobs, and how many there are."""
    return named_rows(analysis, how, report_of(analysis, how, most))


def named_rows(analysis: Analysis, how: Shown, report: FirstRows) -> Json:
    """A report as it is shown."""
    nodes = _nodes(analysis, {row[name] for row in report.rows for name in OF_DATASETS if name in how.columns})
    names = {id_: node_text("dataset", node["namespace"], node["name"]) for id_, node in nodes.items()}
    return {
        "about": how.about,
        "total": report.total,
        "rows": [_shown(row, how, names) for row in report.rows],
        "labels": {names[id_]: label_of(node) for id_, node in nodes.items()} | _job_labels(report, how),
    }


def _job_labels(report: FirstRows, how: Shown) -> dict[str, str]:
    """What the jobs of a report are called, by their ids."""
    if "job" not in how.columns:
        return {}
    return {node_text("job", row["namespace"], row["name"]): row["name"] for row in report.rows}


def _arcs(graph: GraphFrames) -> DataFrame:
    return graph.steps.where("source IS NOT NULL AND target IS NOT NULL").select("source", "target")


def _of_columns(graph: GraphFrames, used: DataFrame, asked: AnalysisRequest, kept: ResultTables) -> Json:
    reached = column_closure(graph, asked.limits)
    pairs = kept.table("column_closure", reached.pairs)
    kept.table("column_edges", graph.column_edges)
    found = kept.table("columns", usage.columns(graph, pairs))
    kept.table("unused_columns", usage.unused(found, used, graph))
    return reached.outcome


def column_closure(graph: GraphFrames, limits: Limits) -> Closure:
    """What each column reaches, with the strongest dependency: of the ways the best, of each way the weakest edge."""
    from pyspark.sql import functions as f

    starts = graph.nodes.selectExpr("node AS start")
    every = closure(column_arcs(graph), starts, limits)
    pairs = every.pairs.repartition(limits.partitions, *KEY).checkpoint()
    free = limits._replace(depth=None)
    found = pairs.withColumn("dependency", f.lit(DEPENDENCIES[0]))
    for least in (1, 2):  # from the weakest to the strongest: the last that holds counts
        arcs = column_arcs(graph, DEPENDENCIES[least:])
        held = closure(arcs, starts, free, within=pairs).pairs.select(*KEY, f.lit(DEPENDENCIES[least]).alias("held"))
        stronger = f.coalesce("held", "dependency").alias("dependency")
        found = found.join(held, KEY, "left").select(*KEY, "distance", stronger).checkpoint()
    return every._replace(pairs=found)


def _delays(spark: SparkSession, url: str, scratch: str, kept: ResultTables) -> None:
    engine = make_engine(url)
    try:
        with reading(engine).connect() as connection:
            write_rows(connection, delays.uses(), delays.USES, f"{scratch}/uses")
            write_rows(connection, delays.commits(), delays.COMMITS, f"{scratch}/commits")
    finally:
        engine.dispose()
    found = delays.delays(spark.read.parquet(f"{scratch}/uses"), spark.read.parquet(f"{scratch}/commits"))
    kept.table("delays_by_day", delays.by_day(kept.table("delays", found)))


def _ordered(text: str) -> Any:
    from pyspark.sql import functions as f

    name, _, way = text.partition(" ")
    return f.col(name).desc() if way else f.col(name).asc_nulls_first()


def _nodes(analysis: Analysis, ids: Collection[int]) -> dict[int, Json]:
    """The datasets of these ids, as answers have them."""
    from pyspark.sql import functions as f

    named = ("id", "namespace", "name", "catalog", "database", "table")
    frame = analysis.datasets.where(f.col("id").isin(*ids)) if ids else None
    rows: Iterable[Any] = frame.select(*named).collect() if frame is not None else ()
    return {row.id: row.asDict() for row in rows}


def _shown(row: Json, how: Shown, names: Mapping[int, str]) -> Json:
    if "job" in how.columns:
        return {name: row[name] for name in how.columns if name != "job"} | {
            "job": node_text("job", row["namespace"], row["name"])
        }
    named = ((name, names.get(row[name], row[name]) if name in OF_DATASETS else row[name]) for name in how.columns)
    return reduce(lambda found, one: found | {("dataset" if one[0] == "id" else one[0]): one[1]}, named, Json())
