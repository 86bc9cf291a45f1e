"""Everything that each node reaches, by joins that take up only what the round before has found (semi-naive).

What was found is kept by (start, node), a checkpoint a round, and never shuffled while it is compared with what is new: a
round shuffles what it finds and no more. Before a round its size is counted; one that would find more pairs than allowed
is not begun, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY = ["start", "node"]
BROADCAST_ARCS = 2_000_000  # 100 MB in every executor; no pair is shuffled to them then, and no hub is one task's
LEVELS = 4  # rounds that a comparison looks at one by one before they are put together


class Limits(NamedTuple):
    """How far to go: rounds (None: all), pairs, and in how many partitions.

    small: of a small graph a round is kept where it was computed, and not in files.
    """

    depth: int | None = None
    most_pairs: int = 200_000_000
    partitions: int = 8
    small: bool = False

    def spread(self, cores: int) -> Limits:
        """For a session with so many cores."""
        return self._replace(partitions=1 if self.small else max(8, 2 * cores))

    def kept(self, frame: DataFrame) -> DataFrame:
        """A frame that is computed now, and not again."""
        return frame.localCheckpoint() if self.small else frame.checkpoint()


class Closure(NamedTuple):
    """`pairs` (start, node, distance) without a node's pair with itself; `depth`: the rounds that are in it, whole."""

    pairs: DataFrame
    depth: int
    truncated_by: str | None

    @property
    def outcome(self) -> dict[str, object]:
        """As JSON shows it."""
        return {"complete": self.truncated_by is None, "truncatedBy": self.truncated_by, "depth": self.depth}


def closure(arcs: DataFrame, starts: DataFrame, limits: Limits, within: DataFrame | None = None) -> Closure:
    """What each start (`start`) reaches by arcs (`source`, `target`); `within`: pairs that alone may be found.

    The checkpoint folder of the session has to be set.
    """
    with _static_plans(arcs.sparkSession):
        return _rounds(arcs, starts, limits, None if within is None else limits.kept(_placed(within, limits)))


@contextmanager
def _static_plans(spark: SparkSession) -> Iterator[None]:
    """Of an adaptive plan Spark forgets how its rows lie, and would shuffle all that was found in every round."""
    adaptive = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)


def _rounds(arcs: DataFrame, starts: DataFrame, limits: Limits, within: DataFrame | None) -> Closure:
    from pyspark.sql import functions as f

    onwards = arcs.where("source <> target").select("source", "target").distinct()
    onwards = limits.kept(onwards.repartition(limits.partitions, "source"))
    degrees = limits.kept(onwards.groupBy("source").agg(f.count("*").alias("ways")))
    if onwards.count() <= BROADCAST_ARCS:
        onwards = f.broadcast(onwards)
    new = _placed(starts.selectExpr("start", "start AS node", "0 AS distance"), limits).dropDuplicates(KEY)
    new = limits.kept(new)
    levels, found, pairs = [new], [new], 0
    _, expected = _size(new, degrees)
    for distance in range(1, 2**31):
        if not expected:
            break
        if pairs + expected > limits.most_pairs:
            return Closure(_all(found), distance - 1, "pairs")
        new = limits.kept(_fresh(_step(new, onwards, distance, limits), levels, within))
        count, expected = _size(new, degrees)
        if not count:
            break
        if limits.depth is not None and distance > limits.depth:
            return Closure(_all(found), distance - 1, "depth")
        pairs += count
        found.append(new)
        levels = [*levels, new] if len(levels) < LEVELS else [limits.kept(_placed(_all(found, 0), limits))]
    return Closure(_all(found), len(found) - 1, None)


def _size(new: DataFrame, degrees: DataFrame) -> tuple[int, int]:
    """How many pairs there are, and how many rows the round after them joins."""
    joined = new.join(degrees, new.node == degrees.source, "left")
    row = joined.selectExpr("count(*) AS pairs", "coalesce(sum(ways), 0) AS rows").first()
    return (int(row["pairs"]), int(row["rows"])) if row else (0, 0)


def _step(new: DataFrame, onwards: DataFrame, distance: int, limits: Limits) -> DataFrame:
    """What one arc more reaches, each pair once."""
    joined = new.join(onwards, new.node == onwards.source)
    reached = joined.selectExpr("start", "target AS node", f"{distance} AS distance")
    return _placed(reached, limits).dropDuplicates(KEY)


def _fresh(reached: DataFrame, levels: list[DataFrame], within: DataFrame | None) -> DataFrame:
    """Without what was found before. All sides lie by the same key in as many partitions: nothing is shuffled.

    Outer joins: Spark would push an anti-join below the shuffle, and shuffle all levels for it.
    """
    from pyspark.sql import functions as f

    for level in levels:
        marked = level.select(*KEY, f.lit(1).alias("seen"))
        reached = reached.join(marked, KEY, "left").where("seen IS NULL").drop("seen")
    return reached if within is None else reached.join(within.select(*KEY), KEY, "left_semi")


def _placed(pairs: DataFrame, limits: Limits) -> DataFrame:
    return pairs.repartition(limits.partitions, *KEY)


def _all(found: list[DataFrame], least: int = 1) -> DataFrame:
    pairs = reduce(lambda one, other: one.unionByName(other), found)
    return pairs.where(f"distance >= {least}")
