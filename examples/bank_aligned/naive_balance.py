"""The balance as an ordinary stream of two sources makes it.

Lake.aligned.credits, .debits -> lake.aligned.naive_balance.

Each micro-batch takes what is there. Where one input is ahead, the sum over all accounts is not 0.
"""

from pace import CHECKPOINTS, TRIGGER, finish
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


def balance(credits: DataFrame, debits: DataFrame) -> DataFrame:
    """The sum of what came in less what went out."""
    movements = credits.unionAll(debits.selectExpr("account", "-amount AS amount"))
    return movements.groupBy("account").agg({"amount": "sum"}).toDF("account", "balance")


def start(spark: SparkSession) -> StreamingQuery:
    """Start the stream; it goes on until it is stopped."""
    result = balance(
        *(spark.readStream.table(f"lake.aligned.{table}") for table in ("credits", "debits"))
    )
    stream = (
        result.writeStream.queryName("naive_balance")
        .trigger(processingTime=TRIGGER)
        .outputMode("complete")
    )
    return stream.option("checkpointLocation", f"{CHECKPOINTS}/naive_balance").toTable(
        "lake.aligned.naive_balance"
    )


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_naive_balance").getOrCreate() as spark:
        finish(start(spark))
