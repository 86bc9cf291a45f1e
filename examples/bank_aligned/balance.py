"""The balance of each account, barrier by barrier.

Lake.aligned.credits and lake.aligned.debits -> lake.aligned.balance.
"""

from collections.abc import Mapping

from pace import CHECKPOINTS, DATABASE, ROUNDS, SECONDS, START, TRIGGER, finish
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from strandline_spark import aligned_stream


def balance(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
    """The sum of what came in less what went out; over all accounts it is 0."""
    movements = inputs["credits"].unionAll(
        inputs["debits"].selectExpr("account", "-amount AS amount")
    )
    return movements.groupBy("account").agg({"amount": "sum"}).toDF("account", "balance")


def start(spark: SparkSession, until: int | None = ROUNDS) -> StreamingQuery:
    """Start the stream: both inputs are read as they are at the barrier, whichever job is ahead."""
    return aligned_stream(
        spark,
        [f"{DATABASE}.credits", f"{DATABASE}.debits"],
        f"{DATABASE}.balance",
        balance,
        group="bank",
        name="balance",
        checkpoint=f"{CHECKPOINTS}/balance",
        trigger=TRIGGER,
        until_barrier=until,
        start=START,
        timeout=SECONDS,
    )


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_balance").getOrCreate() as spark:
        finish(start(spark))
