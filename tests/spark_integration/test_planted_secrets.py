"""A real job with secrets wherever a user may put one: none leaves the driver, in no event and in no spool file."""

from __future__ import annotations

from pathlib import Path

import pytest

from emitter_world.drivers import Driver, emitting

pytestmark = pytest.mark.spark

JOB = """
import time
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

def attempt(action):
    try:
        action()
    except Exception:
        pass

spark = SparkSession.builder.getOrCreate()
people = spark.range(3).withColumn("name", f.lit("PLANTED-literal-1"))
people.write.mode("overwrite").option("password", "PLANTED-option-2").parquet("people")
spark.read.option("fs.s3a.secret.key", "PLANTED-option-3").parquet("people").createOrReplaceTempView("people")
spark.sql("CREATE TABLE told USING parquet OPTIONS (password 'PLANTED-sql-4') AS "
          "SELECT id, sha2(concat(name, 'PLANTED-sql-5'), 256) AS digest, aes_encrypt(name, 'PLANTED-sql-6-16') AS secret "
          "FROM people WHERE name <> 'PLANTED-sql-7'")
attempt(lambda: spark.sql("INSERT INTO told SELECT id, raise_error('token=PLANTED-error-8'), CAST(name AS BINARY) FROM people").collect())
attempt(lambda: spark.sql("INSERT INTO told SELECT CAST('PLANTED-cast-9' AS INT), name, CAST(name AS BINARY) FROM people").collect())
attempt(lambda: people.write.format("jdbc").option("url", "jdbc:postgresql://u:PLANTED-url-10@127.0.0.1:1/b?password=PLANTED-url-11")
        .option("dbtable", "t").option("user", "u").option("password", "PLANTED-option-12").save())
attempt(lambda: people.write.parquet("s3a://KEY:PLANTED-url-13@bucket/people"))
attempt(lambda: spark.read.json("https://u:PLANTED-url-14@127.0.0.1:1/x?token=PLANTED-url-15").write.parquet("never"))
stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("token", "PLANTED-stream-16").load()
query = (stream.writeStream.format("parquet").queryName("ticks").option("path", "ticks")
         .option("checkpointLocation", "checkpoint").option("secret", "PLANTED-stream-17").start())
while query.lastProgress is None and query.exception() is None:
    time.sleep(0.1)
query.stop()
raise RuntimeError("password=PLANTED-end-18")
"""
CONF = {
    "spark.hadoop.fs.s3a.secret.key": "PLANTED-conf-19",
    "spark.openlineage.capturedProperties": "spark.hadoop.fs.s3a.secret.key,spark.app.name,spark.bank.url",
    "spark.bank.url": "https://u:PLANTED-conf-20@host/x?sig=PLANTED-conf-21",
    "spark.openlineage.transport.auth.apiKey": "PLANTED-conf-22",
    "spark.strandline.reads": "true",
}


def test_no_planted_secret_leaves(tmp_path: Path, java: str) -> None:
    driver = Driver(tmp_path, JOB, emitting(tmp_path) | CONF)
    ran = driver.run()
    spooled = b"".join(file.read_bytes() for file in (tmp_path / "state").rglob("*.spool"))

    assert "PLANTED-end-18" in ran.err  # the job got to its end
    told = driver.events_file.read_text()
    states = {" ".join(line.split()[:2]) for line in driver.lines()}
    assert states >= {"COMPLETE bank.default.told", "FAIL bank.default.told", "RUNNING bank.ticks", "FAIL bank"}
    assert [word for word in told.replace('"', " ").split() if "PLANTED" in word] == []
    assert b"PLANTED" not in spooled
