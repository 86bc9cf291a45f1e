"""Two jobs over one table, each on its own trigger.

Word_value -> word_count, and word_value -> word_sum.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from words import CHECKPOINTS, DATABASE

from strandline_spark import aligned_stream


def word_count(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
    """Count each word up to the barrier."""
    return inputs["word_value"].groupBy("word").count().toDF("word", "cnt")


def word_sum(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
    """The sum of each word's values up to the barrier."""
    return inputs["word_value"].groupBy("word").sum("val").toDF("word", "val_sum")


def start(spark: SparkSession) -> list[StreamingQuery]:
    """Start both; the sums are slower."""
    jobs = ((word_count, "500 milliseconds"), (word_sum, "3 seconds"))
    return [
        aligned_stream(
            spark,
            [f"{DATABASE}.word_value"],
            f"{DATABASE}.{job.__name__}",
            job,
            group="words",
            name=job.__name__,
            checkpoint=f"{CHECKPOINTS}/{job.__name__}",
            trigger=trigger,
        )
        for job, trigger in jobs
    ]
