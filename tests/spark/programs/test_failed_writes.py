"""A write that fails in analysis is one failed run of the job that it would have been."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.emitter.drivers import SparkProgram, emitting
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = """
from pyspark.sql import SparkSession

def attempted(write):
    try:
        write()
    except Exception as error:
        print(type(error).__name__)

def in_batch(rows, batch):
    attempted(rows.writeTo("lake.one.t").append)
    raise ValueError("after it")

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE lake.one")
spark.sql("CREATE NAMESPACE lake.two")
spark.sql("CREATE TABLE lake.two.t (id BIGINT) USING iceberg")
wrong = spark.range(3).selectExpr("id", "id AS more")
spark.range(3).writeTo("lake.one.t").create()
spark.range(3).writeTo("lake.one.t").append()
spark.sql("USE lake.one")
attempted(wrong.writeTo("t").append)
spark.sql("USE lake.two")
attempted(lambda: wrong.write.saveAsTable("t", mode="append"))
attempted(lambda: spark.sql("INSERT INTO t SELECT missing FROM t"))
attempted(lambda: wrong.selectExpr("id", "id AS ID").write.parquet("twice"))
query = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().writeStream.queryName("q")
query = query.option("checkpointLocation", "ck").foreachBatch(in_batch).start()
attempted(lambda: query.awaitTermination(100))
attempted(wrong.writeTo("nowhere").append)
spark.sql("CREATE TABLE spark_catalog.default.p (id BIGINT) USING parquet")
attempted(lambda: spark.sql("UPDATE spark_catalog.default.p SET id = 1"))
attempted(lambda: spark.sql("DELETE FROM spark_catalog.default.p"))
attempted(lambda: spark.sql("MERGE INTO spark_catalog.default.p USING lake.one.t ON p.id = t.id WHEN MATCHED THEN DELETE"))
attempted(lambda: spark.sql("ALTER TABLE lake.one.t RENAME TO lake.one.u"))
spark.stop()
"""


def test_each_failed_write_is_reported_once(tmp_path: Path, warm_jvm: WarmJvm) -> None:
    catalog = {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "lake"),
    }
    driver = SparkProgram(tmp_path, JOB, emitting(tmp_path) | catalog, jvm=warm_jvm)
    ran = driver.run()
    failed = [line.partition(" [")[0] for line in driver.lines() if line.startswith("FAIL")]

    assert ran.code == 0, ran.err[-2000:]
    assert ran.out.split() == [
        *["AnalysisException"] * 5,
        "StreamingQueryException",
        "AnalysisException",
        "UnsupportedOperationException",
        "AnalysisException",
        *["UnsupportedOperationException"] * 2,
    ]
    assert sorted(failed) == [
        *["FAIL bank.default.p"] * 3,
        "FAIL bank.lake.one.t",
        "FAIL bank.lake.one.t.rename",
        "FAIL bank.lake.two.nowhere",
        "FAIL bank.lake.two.t",
        "FAIL bank.lake.two.t",
        "FAIL bank.q",
        "FAIL bank.~/twice",
    ]
