"""What is used and by how much: datasets that nobody writes or reads, stale ones, columns by what depends on them.

orphan: no known relation reads or writes it. stale: its newest write is older than the limit, and a known job still reads it.
A column is used `direct` (its value), `indirect` (a filter, a join), or `opaque`, where a job reads the dataset and no
column lineage says which columns; only `none` is unused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.store.lineage.column_lineage import DEPENDENCIES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from strandline.analysis.graph import GraphFrames

STRENGTH = f"array_position(array({', '.join(repr(one) for one in DEPENDENCIES)}), dependency)"


def datasets(graph: GraphFrames, reached: DataFrame, before: int) -> DataFrame:
    """One row a dataset: who touches it and when, how much it reaches, and its `use`.

    reached: pairs of the closure; before: a write that is older (microseconds) is an old one.
    """
    writes = graph.steps.where("target IS NOT NULL").groupBy("target")
    written = writes.agg(*_touches("writers", "written_at")).withColumnRenamed("target", "id")
    reads = graph.steps.where("source IS NOT NULL AND NOT source <=> target").groupBy("source")  # a MERGE reads its own
    read = reads.agg(*_touches("readers", "read_at")).withColumnRenamed("source", "id")
    found = graph.datasets.join(written, "id", "left").join(read, "id", "left")
    for name, here in (("downstream", "start"), ("upstream", "node")):
        counted = reached.groupBy(here).count().withColumnRenamed(here, "id").withColumnRenamed("count", name)
        found = found.join(counted, "id", "left")
    filled = found.fillna(0, ["writers", "readers", "downstream", "upstream"])
    use = (
        "CASE WHEN writers = 0 AND readers = 0 THEN CASE WHEN named = 1 THEN 'orphan' ELSE 'mentioned' END"
        " WHEN writers = 0 THEN 'source' WHEN readers = 0 THEN 'unread'"
        f" WHEN written_at < {before} THEN 'stale' ELSE 'used' END AS use"
    )
    return filled.selectExpr("*", use)


def _touches(name: str, at: str) -> list[Column]:
    from pyspark.sql import functions as f

    return [f.countDistinct("job").alias(name), f.max(at).alias(at)]


def columns(graph: GraphFrames, reached: DataFrame) -> DataFrame:
    """One row a column: `used` and how many columns and datasets depend on it, directly (`dependents`) and at all.

    reached: pairs of the closure of columns, each with its `dependency`.
    """
    from pyspark.sql import functions as f

    targets = graph.nodes.selectExpr("node", "dataset AS in_dataset", "column AS in_column")
    named = reached.join(targets, "node")
    of_columns = f.when(f.col("in_column") != "", f.col("node"))
    counted = named.groupBy("start").agg(
        f.countDistinct(of_columns).alias("downstream_columns"),
        f.countDistinct("in_dataset").alias("downstream_datasets"),
        f.countDistinct(f.when(f.col("distance") == 1, f.col("node"))).alias("dependents"),
        f.countDistinct(f.when(f.col("dependency") == "direct", of_columns)).alias("by_value"),
    )
    own = graph.nodes.where("column <> ''").select("node", "dataset", "column")
    found = own.join(counted.withColumnRenamed("start", "node"), "node", "left").join(_used(graph), "node", "left")
    counts = ["dependents", "downstream_columns", "downstream_datasets", "by_value"]
    return found.fillna(0, counts).fillna("none", ["used"])


def _used(graph: GraphFrames) -> DataFrame:
    """The strongest use of each node: by edges from it, from what it is inside of or holds, and by jobs that only read."""
    from pyspark.sql import functions as f

    edges = graph.column_edges.selectExpr("source_node AS via", "dependency").distinct()
    only_read = graph.steps.where("target IS NULL AND source IS NOT NULL").selectExpr(
        "source AS via", "'opaque' AS dependency"
    )
    uses = edges.unionByName(only_read).distinct()
    inside = graph.nodes.select("node", f.explode("within").alias("via"))
    sources = uses.select("via").distinct().withColumnRenamed("via", "held")
    outside = inside.join(sources, inside.node == sources.held).selectExpr("via AS node", "held AS via")
    each = inside.unionByName(outside).distinct().join(uses, "via")
    return each.groupBy("node").agg(f.max_by("dependency", f.expr(STRENGTH)).alias("used"))


def unused(found: DataFrame, used: DataFrame, graph: GraphFrames) -> DataFrame:
    """Columns of schemas that no job uses, of datasets that some job reads: of the others no column is used."""
    read = used.where("readers > 0").selectExpr("id AS dataset")
    in_schema = graph.columns.where("type IS NOT NULL").select("node")
    return found.where("used = 'none'").join(read, "dataset", "left_semi").join(in_schema, "node", "left_semi")


def jobs(graph: GraphFrames, reached: DataFrame) -> DataFrame:
    """One row a job that writes: what it writes, what it alone writes, and how many datasets come from that."""
    from pyspark.sql import functions as f

    writes = graph.steps.where("target IS NOT NULL").select("job", "target").distinct()
    alone = writes.groupBy("target").agg(f.count("*").alias("writers")).where("writers = 1").select("target")
    last = writes.join(alone, "target")
    below = last.join(reached, last.target == reached.start).select("job", "node").unionByName(
        last.selectExpr("job", "target AS node")
    )  # fmt: skip
    counted = writes.groupBy("job").agg(f.count("*").alias("writes"))
    counted = counted.join(last.groupBy("job").agg(f.count("*").alias("last_writer_of")), "job", "left")
    counted = counted.join(below.groupBy("job").agg(f.countDistinct("node").alias("datasets_below")), "job", "left")
    return counted.fillna(0).withColumnRenamed("job", "id").join(graph.jobs, "id", "left")
