"""A PySpark application on Hudi tables: its own commands, reads of the past, and writes by path.

`hudi.py FOLDER FORMAT`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

KEY = "USING hudi TBLPROPERTIES (primaryKey = 'id')"
STATEMENTS = (
    f"CREATE TABLE orders (id bigint, who string, amount int) {KEY}",
    f"CREATE TABLE news (id bigint, name string, more int) {KEY}",
    "INSERT INTO orders VALUES (1, 'ann', 10), (2, 'bob', 20)",
    "INSERT INTO news VALUES (2, 'bea', 30), (3, 'cid', 40)",
    """MERGE INTO orders AS t USING (SELECT id, upper(name) AS who, more FROM news) AS s ON t.id = s.id
    WHEN MATCHED AND s.more > 5 THEN UPDATE SET who = s.who, amount = t.amount + s.more
    WHEN NOT MATCHED THEN INSERT (id, who, amount) VALUES (s.id, s.who, s.more)""",
    "UPDATE orders SET amount = amount * 2 WHERE who = 'ann'",
    "DELETE FROM orders WHERE id = 3",
)


def past(spark: SparkSession, folder: str, first: str) -> None:
    """What a table was: into folders, which are one run each."""
    frames = {
        "then": spark.sql(f"SELECT id, amount FROM orders TIMESTAMP AS OF '{first}'"),
        "by_path": spark.read.format("hudi").load(f"{folder}/spark/orders").select("id", "who"),
    }
    for name, frame in frames.items():
        frame.write.parquet(f"{folder}/{name}")
    options = {"hoodie.table.name": "placed", "hoodie.datasource.write.recordkey.field": "id"}
    spark.table("news").select("id", "name").write.format("hudi").options(**options).mode("append").save(
        f"{folder}/placed"
    )


def main(folder: str) -> None:
    spark = SparkSession.builder.appName("hudi").getOrCreate()
    for statement in STATEMENTS:
        spark.sql(statement)
    past(spark, folder, min(file.name for file in Path(folder, "spark/orders/.hoodie/timeline").glob("*.commit"))[:17])
    spark.sql("TRUNCATE TABLE news")
    spark.sql("DROP TABLE news")
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    time.sleep(2)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
