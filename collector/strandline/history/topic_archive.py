"""Archive a topic directly, with Spark Structured Streaming.

It is for topics that no store should hold in full.

Secrets are taken out by the collector's own rules before anything is written. Each micro-batch
reaches the archive once: Spark's file, Delta and Iceberg sinks remember its number. What is no
event is left to the collector's dead letters.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import TYPE_CHECKING, Any

from strandline.core.openlineage.events import decoded, trimmed
from strandline.core.openlineage.facets import content_hash
from strandline.core.redaction.json import redact_json
from strandline.errors import InvalidEventError, SettingsError, StrandlineError
from strandline.history.places import place_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "hash binary, received_at bigint, event_time bigint, body binary, day date"
PER_BATCH = 20_000  # records a micro-batch: so many files a day as batches
STOP_SECONDS = 1


def records_of(spark: SparkSession, brokers: str, topic: str) -> DataFrame:
    """Read a topic as a stream of `value binary, received_at bigint`.

    Raise SettingsError where Spark has no Kafka source.
    """
    from pyspark.errors import AnalysisException

    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", PER_BATCH)
    )
    try:
        return source.load().selectExpr("value", "unix_micros(timestamp) AS received_at")
    except AnalysisException as error:
        scala = "2.12" if spark.version.startswith("3.") else "2.13"
        package = f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark.version}"
        raise SettingsError(
            [
                (
                    f"Spark {spark.version} has no Kafka source ({_first_line(error)}): "
                    f"--conf spark.jars.packages={package}"
                )
            ]
        ) from None


def started(
    spark: SparkSession, records: DataFrame, target: str, checkpoint: str, *, available_now: bool
) -> Any:
    """Start the query that writes these records to the target, and return it."""
    writer = (
        records.mapInArrow(_archived, COLUMNS)
        .writeStream.option("checkpointLocation", checkpoint)
        .queryName("strandline_archive")
        .outputMode("append")
    )
    writer = (
        writer.trigger(availableNow=True)
        if available_now
        else writer.trigger(processingTime="1 minute")
    )
    place = place_of(target)
    if place.form == "iceberg":
        if not spark.catalog.tableExists(place.address):
            spark.sql(
                f"CREATE TABLE {place.address} ({COLUMNS}) USING iceberg PARTITIONED BY (day)"
            )
        return writer.format("iceberg").option("fanout-enabled", "true").toTable(place.address)
    return writer.format(place.form).partitionBy("day").start(place.address)


def await_end(query: Any, stopping: Event) -> None:
    """Return when the query has ended by itself, or has been stopped because `stopping` is set.

    Raises StrandlineError with Spark's reason where it failed; what it has written and its position
    stay.
    """
    from pyspark.errors import PySparkException

    try:
        while not query.awaitTermination(STOP_SECONDS) and not stopping.is_set():
            pass  # a signal is only heard between two calls of the JVM
        query.stop()
    except PySparkException as error:
        raise StrandlineError(
            f"archive: the query ended: {_first_line(error)}; started again, it goes on there"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _archived(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        values, moments = batch.column(0).to_pylist(), batch.column(1).to_pylist()
        rows = [row for value, at in zip(values, moments, strict=True) if (row := _row(value, at))]
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        types = (pa.binary(), pa.int64(), pa.int64(), pa.binary())
        arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
        days = pa.array([at // 86_400_000_000 for at in columns[1]], pa.int32()).cast(pa.date32())
        names = ["hash", "received_at", "event_time", "body", "day"]
        yield pa.RecordBatch.from_arrays([*arrays, days], names)


def _row(value: bytes | None, received_at: int) -> tuple[bytes, int, int, bytes] | None:
    try:
        event, body = decoded(value or b"")
    except InvalidEventError:
        return None
    return content_hash(trimmed(value or b"")), received_at, event.at, redact_json("", body)
