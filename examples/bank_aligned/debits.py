"""The subtractions of transfers from accounts, barrier by barrier.

Lake.bank.transfers -> lake.aligned.debits.
"""

from collections.abc import Mapping

from pace import CHECKPOINTS, DATABASE, ROUNDS, SECONDS, SLOW_TRIGGER, START, finish
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from strandline_spark import aligned_stream


def debits(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
    """One row for the payer of each transfer of this barrier."""
    return inputs["transfers"].selectExpr("payer AS account", "amount")


def start(spark: SparkSession, until: int | None = ROUNDS) -> StreamingQuery:
    """Start the stream, up to a barrier if one is given."""
    return aligned_stream(
        spark,
        ["lake.bank.transfers"],
        f"{DATABASE}.debits",
        debits,
        group="bank",
        changes=["transfers"],
        mode="append",
        name="debits",
        checkpoint=f"{CHECKPOINTS}/debits",
        trigger=SLOW_TRIGGER,
        until_barrier=until,
        start=START,
        timeout=SECONDS,
    )


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_debits").getOrCreate() as spark:
        finish(start(spark))
