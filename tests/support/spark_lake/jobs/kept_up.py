"""A table that is filled, compacted and read again, and the same table at two snapshots."""

from __future__ import annotations

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("kept_up").getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bank")
for name in ("orders", "copied", "compared"):
    spark.sql(f"CREATE TABLE lake.bank.{name} (id BIGINT, amount BIGINT) USING iceberg")
for number in range(2):
    spark.sql(f"INSERT INTO lake.bank.orders VALUES ({number}, 10)")
spark.sql("CALL lake.system.rewrite_data_files(table => 'bank.orders', options => map('rewrite-all', 'true'))")
spark.sql("INSERT INTO lake.bank.copied SELECT * FROM lake.bank.orders")
first = spark.sql("SELECT snapshot_id FROM lake.bank.orders.snapshots ORDER BY committed_at").first()[0]
spark.sql(
    f"""INSERT INTO lake.bank.compared SELECT n.id, n.amount - o.amount FROM lake.bank.orders n
        JOIN lake.bank.orders VERSION AS OF {first} o ON n.id = o.id"""
)
spark.stop()
