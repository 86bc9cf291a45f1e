"""The additions of transfers to accounts, barrier by barrier.

Lake.bank.transfers -> lake.aligned.credits.
"""

from collections.abc import Mapping

from pace import CHECKPOINTS, DATABASE, ROUNDS, SECONDS, START, TRIGGER, finish
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from strandline_spark import aligned_stream


def credits(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
    """One row for the payee of each transfer of this barrier."""
    return inputs["transfers"].selectExpr("payee AS account", "amount")


def start(spark: SparkSession, until: int | None = ROUNDS) -> StreamingQuery:
    """Start the stream, up to a barrier if one is given."""
    return aligned_stream(
        spark,
        ["lake.bank.transfers"],
        f"{DATABASE}.credits",
        credits,
        group="bank",
        changes=["transfers"],
        mode="append",
        name="credits",
        checkpoint=f"{CHECKPOINTS}/credits",
        trigger=TRIGGER,
        until_barrier=until,
        start=START,
        timeout=SECONDS,
    )


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_credits").getOrCreate() as spark:
        finish(start(spark))
