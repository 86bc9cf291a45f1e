"""What each transfer takes from an account: lake.bank.transfers -> lake.bank.debits."""

from pace import CHECKPOINTS, ROUNDS, ROWS, TRIGGER, finish
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


def debits(transfers: DataFrame) -> DataFrame:
    """One row for the payer of each transfer."""
    return transfers.selectExpr("payer AS account", "amount")


def start(spark: SparkSession) -> StreamingQuery:
    """Start the stream: it takes the rounds one by one, also when it has to catch up."""
    transfers = spark.readStream.option("streaming-max-files-per-micro-batch", 1).table("lake.bank.transfers")
    stream = debits(transfers).writeStream.queryName("debits").trigger(processingTime=TRIGGER)
    return stream.option("checkpointLocation", f"{CHECKPOINTS}/debits").toTable("lake.bank.debits")


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_debits").getOrCreate() as spark:
        finish(start(spark), ROUNDS * ROWS)
