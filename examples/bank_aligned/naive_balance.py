"""The balance as an ordinary stream of two sources makes it: lake.bank.credits and lake.bank.debits -> naive_balance.

Each micro-batch takes what is there. Where one input is ahead, the sum over all accounts is not 0.
"""

import time

from pace import CHECKPOINTS, SECONDS, STOP, TRIGGER
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


def balance(credits: DataFrame, debits: DataFrame) -> DataFrame:
    """The sum of what came in less what went out."""
    movements = credits.unionAll(debits.selectExpr("account", "-amount AS amount"))
    return movements.groupBy("account").agg({"amount": "sum"}).toDF("account", "balance")


def start(spark: SparkSession) -> StreamingQuery:
    """Start the stream."""
    result = balance(*(spark.readStream.table(f"lake.bank.{table}") for table in ("credits", "debits")))
    stream = result.writeStream.queryName("naive_balance").trigger(processingTime=TRIGGER).outputMode("complete")
    return stream.option("checkpointLocation", f"{CHECKPOINTS}/naive_balance").toTable("lake.bank.naive_balance")


def finish(query: StreamingQuery) -> None:
    """Let it run until the stop file is there or nothing new came for a while."""
    news, rows = time.monotonic(), -1
    while not query.awaitTermination(0.2) and not STOP.exists() and time.monotonic() < news + SECONDS:
        taken = sum(progress.numInputRows for progress in query.recentProgress)
        news, rows = (news, rows) if taken == rows else (time.monotonic(), taken)
    while query.isActive and query.status["isTriggerActive"]:
        time.sleep(0.02)
    query.stop()


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_naive_balance").getOrCreate() as spark:
        finish(start(spark))
