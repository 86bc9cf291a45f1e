"""Transfers between accounts, as a stream into lake.bank.transfers: one snapshot a round."""

from pace import CHECKPOINTS, ROUNDS, ROWS, TRIGGER, finish
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

ACCOUNTS = 10


def transfers(ticks: DataFrame) -> DataFrame:
    """A transfer for every tick; payer and payee always differ."""
    return ticks.selectExpr(
        "value AS id",
        f"value * 7 % {ACCOUNTS} AS payer",
        f"(value * 7 + 1 + value % {ACCOUNTS - 1}) % {ACCOUNTS} AS payee",
        "value * 31 % 97 + 1 AS amount",
        "timestamp AS at",
    )


def start(spark: SparkSession) -> StreamingQuery:
    """Start the stream."""
    ticks = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS)
        .option("numPartitions", 1)
        .load()
    )
    stream = transfers(ticks).writeStream.queryName("ingest").trigger(processingTime=TRIGGER)
    return stream.option("checkpointLocation", f"{CHECKPOINTS}/ingest").toTable(
        "lake.bank.transfers"
    )


def run(spark: SparkSession) -> None:
    """Run the stream to its end."""
    finish(start(spark), ROUNDS * ROWS)


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_ingest").getOrCreate() as spark:
        run(spark)
