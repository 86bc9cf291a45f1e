"""Words with values, as a stream into word_value; and where the tables of this example are."""

import os
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

DATABASE = os.environ.get("WORDS_DATABASE", "my_catalog.words")
CHECKPOINTS = os.environ.get("WORDS_CHECKPOINTS", "checkpoints")
WORDS = "array('ebb', 'flood', 'neap', 'spring', 'slack')"


def word_values(ticks: DataFrame) -> DataFrame:
    """A word with a value for every tick."""
    return ticks.selectExpr(
        f"element_at({WORDS}, cast(value % 5 + 1 AS int)) AS word", "value % 7 AS val"
    )


def start(spark: SparkSession) -> StreamingQuery:
    """Start the generator: one barrier a second."""
    ticks = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 20)
        .option("numPartitions", 1)
        .load()
    )
    stream = (
        word_values(ticks).writeStream.queryName("word_value").trigger(processingTime="1 second")
    )
    return stream.option("checkpointLocation", f"{CHECKPOINTS}/word_value").toTable(
        f"{DATABASE}.word_value"
    )


def end(query: StreamingQuery) -> None:
    """Stop a stream between two micro-batches.

    One that waits for an input is stopped while it waits.
    """
    patience = time.monotonic() + 5
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < patience:
        time.sleep(0.02)
    query.stop()
