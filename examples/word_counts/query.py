"""The batch query over all three tables, at any time: strong in two ways, and latest.

Prints what differs.

`spark.strandline.catalog.my_catalog.consistency strong` in the conf makes ordinary `spark.sql` read
that catalog so.
"""

import os
import sys
import time
from typing import Any

import derived
import words
from pyspark.sql import SparkSession
from words import DATABASE

from strandline_spark import consistent_sql
from strandline_spark.consistency.collector import ConfigurationError, ConsistencyError

QUERY = f"""
SELECT T1.word, T1.cnt AS t1cnt, T1.sum_val AS t1sum_val, T2.cnt AS t2cnt, T3.val_sum AS t3sum_val
  FROM (SELECT word, count(*) AS cnt, sum(val) AS sum_val
          FROM {DATABASE}.word_value GROUP BY word) T1
  JOIN {DATABASE}.word_count T2 ON T1.word = T2.word
  JOIN {DATABASE}.word_sum T3 ON T2.word = T3.word
"""
RUNS = int(os.environ.get("WORDS_RUNS", "5"))
CONF = f"spark.strandline.catalog.{DATABASE.partition('.')[0]}.consistency"


def rows_of(spark: SparkSession, way: str) -> Any:
    """The rows of the query, asked in one of three ways."""
    if way == "consistent_sql":
        return consistent_sql(spark, QUERY).collect()
    spark.conf.set(CONF, way)  # strong or latest
    return spark.sql(QUERY).collect()


def differing(rows: list[Any]) -> int:
    """In how many rows the three tables do not say the same."""
    return sum(row.t1cnt != row.t2cnt or row.t1sum_val != row.t3sum_val for row in rows)


def ask(spark: SparkSession) -> dict[str, Any] | None:
    """Ask once in each way; None while there is no strong answer yet."""
    try:
        rows_by_way = {way: rows_of(spark, way) for way in ("consistent_sql", "strong", "latest")}
    except ConfigurationError:
        raise  # asking again does not help
    except ConsistencyError as reason:
        print(f"no strong answer yet: {reason}", flush=True)
        return None
    return {way: (len(rows), differing(rows)) for way, rows in rows_by_way.items()}


def main(spark: SparkSession) -> int:
    """Run the three jobs and ask beside them; 1 if a strong answer differed."""
    generator = words.start(spark)
    while spark.table(f"{DATABASE}.word_value.snapshots").isEmpty():
        time.sleep(0.3)
    queries = [generator, *derived.start(spark)]
    wrong, runs = 0, 0
    while runs < RUNS and all(query.isActive for query in queries):
        time.sleep(1)
        if answers := ask(spark):
            runs += 1
            wrong += sum(answers[way][1] for way in ("consistent_sql", "strong"))
            told = "  ".join(
                f"{way}: {differ} of {rows} words differ" for way, (rows, differ) in answers.items()
            )
            print(f"run {runs}: {told}", flush=True)
    for query in queries:
        words.end(query)
    return int(wrong > 0 or runs < RUNS)


if __name__ == "__main__":
    with SparkSession.builder.appName("word_counts").getOrCreate() as session:
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {DATABASE}")
        for columns in (
            "word_value (word string, val bigint)",
            "word_count (word string, cnt bigint)",
            "word_sum (word string, val_sum bigint)",
        ):
            session.sql(f"CREATE TABLE IF NOT EXISTS {DATABASE}.{columns} USING iceberg")
        sys.exit(main(session))
