"""How much of Spark a store needs: a small one is done before 16 tasks and the compiler of a large one have begun."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table, func, select

from strandline.store.schema.tables import edge_columns, job_relations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {job_relations: 20_000, edge_columns: 20_000}  # rows: a closure of them is some hundred thousand pairs
# What is compiled for a plan runs once here, and compiling takes longer than running without.
SMALL_QUERIES = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}
SMALL_SESSION = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
LARGE_SESSION = {"spark.sql.shuffle.partitions": "16"}  # 200 small tasks a join take longer than the join


def is_small(connection: Connection) -> bool:
    """Whether no table of the graph has many rows; as many are counted as it takes to know."""
    return all(_rows(connection, table, most + 1) <= most for table, most in SMALL.items())


def _rows(connection: Connection, table: Table, most: int) -> int:
    some = select(next(iter(table.primary_key)).label("key")).limit(most).subquery()
    return int(connection.scalar(select(func.count()).select_from(some)) or 0)


def session_conf(*, small: bool) -> Mapping[str, str]:
    """What a session on one machine is started with, where the command line does not say otherwise."""
    return SMALL_SESSION if small else LARGE_SESSION


@contextmanager
def small_queries(spark: SparkSession, *, small: bool) -> Iterator[None]:
    """Run what is small without what pays for large data alone; afterwards the session is as it was."""
    before = {name: spark.conf.get(name) for name in SMALL_QUERIES} if small else {}
    for name in before:
        spark.conf.set(name, SMALL_QUERIES[name])
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
