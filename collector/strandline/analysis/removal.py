"""What happens if jobs go: which datasets lose a writer, or the last one, and which come to a standstill behind them.

Fresh is what still gets new data: what no job writes, and what a job that stays makes from nothing or from something
fresh. So a circle that is fed from nowhere else stands still as a whole. What was not fresh before is nobody's fault.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from strandline.analysis.closure import Limits, closure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EFFECTS = ("loses its last writer", "stands still", "loses a writer", "loses a source")


def removal(steps: DataFrame, jobs: Collection[int], limits: Limits) -> DataFrame:
    """The datasets (`id`) that the removal of these jobs concerns, by the steps of a graph, each with its strongest `effect`.

    A dataset that loses a source goes on, with less: something that it is made from, near or far, lost a writer.
    """
    from pyspark.sql import functions as f

    writes = steps.where("target IS NOT NULL")
    stays = ~f.col("job").isin(*jobs)
    ours = writes.where(~stays).selectExpr("target AS id").distinct()
    left = writes.where(stays)
    others = left.selectExpr("target AS id").distinct()
    still = _fresh(steps, writes, limits).join(_fresh(steps, left, limits), "id", "left_anti")
    arcs = writes.where("source IS NOT NULL").select("source", "target")
    behind = closure(arcs, ours.selectExpr("id AS start"), limits._replace(depth=None)).pairs
    effects = [
        ours.join(others, "id", "left_anti"),
        still,
        ours.join(others, "id", "left_semi"),
        behind.selectExpr("node AS id").distinct(),
    ]
    ranked = [frame.select("id", f.lit(rank).alias("rank")) for rank, frame in enumerate(effects)]
    every = ranked[0].unionByName(ranked[1]).unionByName(ranked[2]).unionByName(ranked[3])
    words = f.array(*map(f.lit, EFFECTS))
    strongest = every.groupBy("id").agg(f.min("rank").alias("rank"))
    return strongest.select("id", f.element_at(words, f.col("rank") + 1).alias("effect"), "rank")


def _fresh(steps: DataFrame, left: DataFrame, limits: Limits) -> DataFrame:
    """What gets new data by these steps: a closure from one node that stands for whatever is fed from outside."""
    from pyspark.sql import functions as f

    outside = f.lit(-1).cast("bigint")
    written = steps.where("target IS NOT NULL").selectExpr("target AS id").distinct()
    sources = steps.where("source IS NOT NULL").selectExpr("source AS id").distinct()
    roots = sources.join(written, "id", "left_anti").unionByName(
        left.where("source IS NULL").selectExpr("target AS id")
    )
    arcs = left.where("source IS NOT NULL").select("source", "target")
    fed = arcs.unionByName(roots.select(outside.alias("source"), f.col("id").alias("target")))
    start = roots.sparkSession.range(1).select(outside.alias("start"))
    return closure(fed, start, limits._replace(depth=None)).pairs.selectExpr("node AS id").distinct()
