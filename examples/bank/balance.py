"""The balance of each account.

Lake.bank.credits and lake.bank.debits -> lake.bank.balance, written anew each round.
"""

from pace import CHECKPOINTS, ROUNDS, ROWS, TRIGGER, finish, rounds_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


def balance(credits: DataFrame, debits: DataFrame) -> DataFrame:
    """The sum of what came in less what went out; over all accounts it is 0."""
    movements = credits.unionAll(debits.selectExpr("account", "-amount AS amount"))
    return movements.groupBy("account").agg({"amount": "sum"}).toDF("account", "balance")


def start(spark: SparkSession) -> StreamingQuery:
    """Start the stream."""
    result = balance(rounds_of(spark, "lake.bank.credits"), rounds_of(spark, "lake.bank.debits"))
    stream = (
        result.writeStream.queryName("balance")
        .trigger(processingTime=TRIGGER)
        .outputMode("complete")
    )
    return stream.option("checkpointLocation", f"{CHECKPOINTS}/balance").toTable(
        "lake.bank.balance"
    )


def run(spark: SparkSession) -> None:
    """Run the stream to its end."""
    finish(start(spark), 2 * ROUNDS * ROWS)


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_balance").getOrCreate() as spark:
        run(spark)
