"""Datasets that are probably one, each pair with its evidence. Nothing is joined by itself: `strandline names` does that.

Two rules: the same path below schemes of one storage (s3, s3a, s3n), or with and without a port; and the same schema with
the same last part of the name, where neither is made from the other (a copy has both as well).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from strandline.analysis.graph import GraphFrames

KEY = ["dataset", "other"]
FAMILIES = {
    "s3": "s3 s3a s3n", "hdfs": "hdfs webhdfs swebhdfs viewfs", "gs": "gs gcs", "file": "file",
    "azure": "abfs abfss wasb wasbs",
}  # fmt: skip
LEAST_COLUMNS = 3  # of a schema that is evidence: many tables have an id and a name
MOST_ALIKE = 20  # datasets: as many with one schema and one last part are tenants or copies, not names
_STORAGE = {scheme: family for family, schemes in FAMILIES.items() for scheme in schemes.split()}
_ADDRESS = re.compile(r"(?:([a-z0-9+.-]+):)?(?://)?([^/]*)(.*)", re.IGNORECASE | re.DOTALL)


def location_of(namespace: str, name: str) -> str | None:
    """Where a path is, whichever scheme its storage is reached by; None for what is no path.

    >>> location_of("s3a://raw", "/orders/") == location_of("s3://raw", "orders")
    True
    >>> location_of("hdfs://nn:8020", "/a"), location_of("postgres://db:5432", "shop.public.orders")
    ('hdfs//nn/a', None)
    """
    scheme, host, path = _ADDRESS.fullmatch(namespace).groups("")  # type: ignore[union-attr] # every text matches
    scheme, host = (host, "") if not scheme else (scheme, host)
    family = _STORAGE.get(scheme.lower())
    if family is None:
        return None
    host = host.lower().partition(":")[0]
    if family == "azure":
        host = host.partition(".")[0]
    whole = "/".join(filter(None, f"{path}/{name}".split("/")))
    return f"{family}//{host}/{whole}"


def last_part(name: str) -> str | None:
    """The last part of a path or of a dotted name, in lower case; None for a partition, which many tables have.

    >>> last_part("lake.shop.Orders"), last_part("/data/orders/"), last_part("/data/dt=2026-11-20")
    ('orders', 'orders', None)
    """
    last = re.split(r"[/.]", name.rstrip("/."))[-1].lower()
    return last if last and "=" not in last and not last.isdecimal() else None


def aliases(graph: GraphFrames, related: DataFrame) -> DataFrame:
    """Pairs of canonical datasets (`dataset` < `other`) with `rule`, `evidence` and how many share it (`alike`).

    related: pairs (start, node) of which the second is made from the first.
    """
    paths = _pairs(_by_path(graph), "same path")
    schemas = _pairs(_by_schema(graph), "same schema and last part")
    ordered = related.selectExpr("least(start, node) AS dataset", "greatest(start, node) AS other").distinct()
    apart = schemas.join(ordered, KEY, "left_anti").join(paths, KEY, "left_anti")
    return paths.unionByName(apart)


def _by_path(graph: GraphFrames) -> DataFrame:
    members = graph.names.where("location IS NOT NULL").selectExpr("canonical AS member", "location AS evidence")
    return _counted(members)


def _by_schema(graph: GraphFrames) -> DataFrame:
    from pyspark.sql import functions as f

    field = f.concat_ws(" ", f.lower("column"), f.lower("type"))
    typed = graph.columns.where("type IS NOT NULL").groupBy("dataset")
    large = typed.agg(f.sort_array(f.collect_set(field)).alias("fields")).where(f.size("fields") >= LEAST_COLUMNS)
    named = graph.names.where("last_part IS NOT NULL").select("canonical", "last_part").distinct()
    evidence = f.concat(f.col("last_part"), f.lit(": "), f.array_join("fields", ", "))
    members = large.join(named, large.dataset == named.canonical)
    return _counted(members.select(f.col("canonical").alias("member"), evidence.alias("evidence")))


def _counted(members: DataFrame) -> DataFrame:
    """Members of groups of at least two, and not too many."""
    distinct = members.distinct()
    sizes = distinct.groupBy("evidence").count().withColumnRenamed("count", "alike")
    return distinct.join(sizes.where(f"alike BETWEEN 2 AND {MOST_ALIKE}"), "evidence")


def _pairs(members: DataFrame, rule: str) -> DataFrame:
    """Every two members of a group; of two groups that hold a pair the first counts."""
    others = members.selectExpr("member AS other", "evidence")
    joined = members.selectExpr("member AS dataset", "evidence", "alike").join(others, "evidence")
    each = joined.where("dataset < other").groupBy("dataset", "other").agg(*_first("evidence"), *_first("alike"))
    return each.selectExpr("dataset", "other", f"'{rule}' AS rule", "evidence", "alike")


def _first(column: str) -> list[Column]:
    from pyspark.sql import functions as f

    return [f.min_by(column, "evidence").alias(column)]
