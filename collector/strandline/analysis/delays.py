"""How late the snapshots of each table were, over all the time that the store has: from data lineage alone.

A snapshot waited for the newest commit among what was read for it: `seconds_after_inputs` is its commit less that. Walked
back along the newest input to a snapshot without inputs, the whole way took `seconds_after_birth`. Clocks differ: what
would be negative counts as 0. Without barriers too; a delay at a barrier of several roots (GET /delays) counts from the cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Select, Text, column, func, select, table

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.store.schema.tables import datasets, snapshots

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

USES = "run bigint, barrier bigint, direction bigint, dataset bigint, snapshot string"
COMMITS = "dataset bigint, snapshot string, committed_at bigint"
DAY = 86_400_000_000
MOST_ROUNDS = 24  # each doubles the way: longer than any chain but a circle
_LINEAGE = table(
    "snapshot_lineage",
    *(column(name, BigInteger) for name in ("run_id", "told_barrier", "direction", "dataset_id")),
    column("snapshot_id", Text),
)


def uses() -> Select[Any]:
    """Which snapshot each run read or wrote under which barrier, as the collector's own view resolves it."""
    found = _LINEAGE.c
    columns = (found.run_id, found.told_barrier, found.direction, found.dataset_id, found.snapshot_id)
    return select(*columns).where(found.snapshot_id.is_not(None))


def commits() -> Select[Any]:
    """When each snapshot was committed, under its canonical dataset."""
    joined = snapshots.join(datasets, datasets.c.id == snapshots.c.dataset_id)
    when = (datasets.c.canonical_id, snapshots.c.snapshot_id, func.max(snapshots.c.committed_at))
    dated = select(*when).select_from(joined).where(snapshots.c.committed_at.is_not(None))
    return dated.group_by(datasets.c.canonical_id, snapshots.c.snapshot_id)


def delays(used: DataFrame, committed: DataFrame) -> DataFrame:
    """One row a snapshot that was made from others, with both delays."""
    from pyspark.sql import functions as f

    dated = used.join(committed, ["dataset", "snapshot"])
    wrote = dated.where(f"direction = {SINK}").drop("direction")
    read = dated.where(f"direction = {SOURCE}").selectExpr(
        "run", "barrier", "dataset AS in_dataset", "snapshot AS in_snapshot", "committed_at AS ready_at"
    )
    joined = wrote.join(read, ["run", "barrier"]).where("dataset <> in_dataset")
    newest = f.max_by(
        f.struct("in_dataset", "in_snapshot", "ready_at"), f.struct("ready_at", "in_dataset", "in_snapshot")
    )
    latest = joined.groupBy("dataset", "snapshot").agg(
        f.max("committed_at").alias("committed_at"), newest.alias("input")
    )
    rows = latest.select(
        "dataset", "snapshot", "committed_at", "input.in_dataset", "input.in_snapshot", "input.ready_at"
    )
    return _with_births(rows.checkpoint())


def _with_births(rows: DataFrame) -> DataFrame:
    """Follow each snapshot's newest input to the first one, twice as far a round. What is in a circle has no birth."""
    way = rows.selectExpr("dataset", "snapshot", "in_dataset", "in_snapshot", "ready_at AS birth_at").checkpoint()
    rounds = 0
    while not (onwards := _beyond(way)).isEmpty() and rounds < MOST_ROUNDS:
        joined = way.join(onwards, ["dataset", "snapshot"], "left")
        way = joined.selectExpr(
            "dataset",
            "snapshot",
            "coalesce(next_dataset, in_dataset) AS in_dataset",
            "coalesce(next_snapshot, in_snapshot) AS in_snapshot",
            "coalesce(next_at, birth_at) AS birth_at",
        ).checkpoint()
        rounds += 1
    ended = way.join(onwards, ["dataset", "snapshot"], "left_anti").select("dataset", "snapshot", "birth_at")
    return rows.join(ended, ["dataset", "snapshot"], "left").selectExpr(
        "dataset",
        "snapshot",
        "committed_at",
        "in_dataset AS newest_input",
        "greatest(committed_at - ready_at, 0) / 1e6D AS seconds_after_inputs",
        "greatest(committed_at - birth_at, 0) / 1e6D AS seconds_after_birth",
    )


def _beyond(way: DataFrame) -> DataFrame:
    """Where the ways of those lead that do not end yet."""
    ends = way.selectExpr(
        "dataset AS in_dataset",
        "snapshot AS in_snapshot",
        "in_dataset AS next_dataset",
        "in_snapshot AS next_snapshot",
        "birth_at AS next_at",
    )
    at = way.select("dataset", "snapshot", "in_dataset", "in_snapshot").join(ends, ["in_dataset", "in_snapshot"])
    return at.select("dataset", "snapshot", "next_dataset", "next_snapshot", "next_at")


def by_day(found: DataFrame) -> DataFrame:
    """The delays of each table and day of commit (days since 1970): how many, in the middle, at 95 of 100, at worst."""
    from pyspark.sql import functions as f

    days = found.withColumn("day", f.expr(f"committed_at div {DAY}")).groupBy("dataset", "day")
    measures = [f.count("*").alias("snapshots")]
    for name in ("seconds_after_inputs", "seconds_after_birth"):
        measures += [
            f.expr(f"percentile({name}, {share})").alias(f"{name}_p{100 * share:.0f}") for share in (0.5, 0.95)
        ]
        measures.append(f.max(name).alias(f"{name}_max"))
    return days.agg(*measures)
