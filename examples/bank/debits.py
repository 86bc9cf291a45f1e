"""The subtractions of transfers from accounts: lake.bank.transfers -> lake.bank.debits."""

from pace import CHECKPOINTS, ROUNDS, ROWS, TRIGGER, finish, rounds_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


def debits(transfers: DataFrame) -> DataFrame:
    """One row for the payer of each transfer."""
    return transfers.selectExpr("payer AS account", "amount")


def start(spark: SparkSession) -> StreamingQuery:
    """Start the stream."""
    stream = (
        debits(rounds_of(spark, "lake.bank.transfers"))
        .writeStream.queryName("debits")
        .trigger(processingTime=TRIGGER)
    )
    return stream.option("checkpointLocation", f"{CHECKPOINTS}/debits").toTable("lake.bank.debits")


def run(spark: SparkSession) -> None:
    """Run the stream to its end."""
    finish(start(spark), ROUNDS * ROWS)


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_debits").getOrCreate() as spark:
        run(spark)
