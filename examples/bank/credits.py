"""The additions of transfers to accounts: lake.bank.transfers -> lake.bank.credits."""

from pace import CHECKPOINTS, ROUNDS, ROWS, TRIGGER, finish, rounds_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


def credits(transfers: DataFrame) -> DataFrame:
    """One row for the payee of each transfer."""
    return transfers.selectExpr("payee AS account", "amount")


def start(spark: SparkSession) -> StreamingQuery:
    """Start the stream."""
    stream = (
        credits(rounds_of(spark, "lake.bank.transfers"))
        .writeStream.queryName("credits")
        .trigger(processingTime=TRIGGER)
    )
    return stream.option("checkpointLocation", f"{CHECKPOINTS}/credits").toTable(
        "lake.bank.credits"
    )


def run(spark: SparkSession) -> None:
    """Run the stream to its end."""
    finish(start(spark), ROUNDS * ROWS)


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_credits").getOrCreate() as spark:
        run(spark)
