"""Streaming jobs that are aligned.

Each checkpoint reads every input at one barrier and commits the output with it.

`aligned_stream` promises one snapshot of the output for each barrier that all inputs completed.
They come in order, none twice and, except those that a job far behind skips, none missing, however
often the job is killed. Each snapshot names its barrier and the input snapshots that it was made
from, in the same atomic commit. A micro-batch of the query is only the clock that starts a
checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from strandline_spark.conf_keys import GROUP, JOB_NAME
from strandline_spark.consistency.aligned.checkpoints import Alignment, Checkpoints, NotAlignedError
from strandline_spark.consistency.aligned.decisions import FEW
from strandline_spark.consistency.aligned.inputs import InputsLateError
from strandline_spark.consistency.aligned.stopping import stop_when_finished
from strandline_spark.consistency.collector import Collector
from strandline_spark.consistency.table_history import TableAtError, full_name
from strandline_spark.extraction.aligned_outputs import AlignedOutput, note_aligned, starting

__all__ = ["InputsLateError", "NotAlignedError", "TableAtError", "aligned_stream"]

_QUICK = "200 milliseconds"  # without a pause the query could only be stopped within a micro-batch
Transform = Callable[[Mapping[str, DataFrame], int], DataFrame]


def aligned_stream(
    spark: SparkSession,
    inputs: Mapping[str, str] | Sequence[str],
    output: str,
    transform: Transform,
    group: str | None = None,
    *,
    changes: Collection[str] = (),
    mode: str = "overwrite",
    name: str | None = None,
    checkpoint: str | None = None,
    trigger: str = "1 second",
    available_now: bool = False,
    until_barrier: int | None = None,
    start: str = "earliest",
    timeout: float | None = 600.0,
    max_behind: int | None = FEW,
) -> StreamingQuery:
    """Start a streaming query that makes one snapshot of `output` for each barrier of its inputs.

    Args:
        spark: The session. With `spark.strandline.collector.url` the collector is asked before each
            checkpoint and informed of what the job reads and writes; where it does not answer, the
            inputs' own snapshots decide.
        inputs: Iceberg tables by the names that `transform` knows them by; of a sequence the last
            parts are the names. The output itself may be among them: it is read as the checkpoint
            before left it.
        output: The Iceberg table that is written; made by the first checkpoint if it is not there.
        transform: `transform(inputs, barrier)` gives the output's rows. It may be called again for
            the same barrier.
        group: The group whose barriers these are; `spark.strandline.group` unless given.
        changes: Names of inputs of which only the rows added since the checkpoint before are given
            (at the first checkpoint: all rows). The other inputs are given as they are at the
            barrier.
        mode: "overwrite": the rows replace the output's. "append": they are added.
        name: Of the query, and of the job after the application's; the whole name of the output
            unless given, so that two outputs never share a job.
        checkpoint: Its checkpoint location; below `spark.sql.streaming.checkpointLocation` unless
            given.
        trigger: How often a checkpoint is tried, e.g. "2 seconds".
        available_now: Make the checkpoints that are possible now, one after the other, and end.
        until_barrier: End once this barrier, or a later one, is committed.
        start: Of an output without barriers: "earliest" makes all of the inputs', "latest" begins
            at the newest.
        timeout: Seconds after which a checkpoint that waits for an input fails with
            InputsLateError, which names table and barrier. None: never.
        max_behind: A job that is more barriers behind takes the newest that all inputs have and
            skips those in between. It does so each time until it has caught up and its table joins.
            None: it takes each, however long that lasts.

    Raises:
        TableAtError: a table is missing, or has no snapshots that can be aligned.
        RefusedError: the collector does not let the job in (a second writer, a cycle, two groups);
            it gives the reason.
        TypeError, ValueError: arguments that contradict each other.
    """
    named = _named(spark, inputs)
    _check(named, changes, mode, start)
    table = full_name(spark, output)
    query_name = name or table.removeprefix("spark_catalog.")
    alignment = Alignment(
        inputs=named,
        output=table,
        transform=transform,
        group=group or spark.conf.get(GROUP, None),
        changes=frozenset(changes),
        mode=mode,
        job=_job(spark, query_name),
        from_latest=start == "latest",
        timeout=timeout,
        max_behind=max_behind,
    )
    checkpoints = Checkpoints(alignment, Collector.of(spark), until_barrier, available_now)
    checkpoints.announce(spark)
    writer = _clock(spark, _QUICK if available_now else trigger, query_name, checkpoint)
    query = _started(writer, checkpoints, query_name, alignment.written)
    stop_when_finished(query, checkpoints.finished)
    return query


def _started(
    writer: Any, checkpoints: Checkpoints, name: str, written: AlignedOutput
) -> StreamingQuery:
    """Start the query of this name.

    The emitter knows what it writes before its first event comes.
    """
    with starting(name, written):
        query: StreamingQuery = writer.foreachBatch(checkpoints).start()
        note_aligned(query.id, written)
    checkpoints.query = query
    return query


def _named(spark: SparkSession, inputs: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    if isinstance(inputs, str):
        raise TypeError(
            f"inputs: {inputs!r} is one text; give a list of tables, or names with tables"
        )
    if not isinstance(inputs, Mapping):
        shortened = {table.rpartition(".")[2]: table for table in inputs}
        if len(shortened) < len(inputs):
            raise ValueError(
                f"inputs: two of {', '.join(inputs)} end in one name; give them names of their own"
            )
        inputs = shortened
    return {name: full_name(spark, table) for name, table in inputs.items()}


def _check(inputs: Mapping[str, str], changes: Collection[str], mode: str, start: str) -> None:
    if isinstance(changes, str) or not set(changes) <= inputs.keys():
        raise ValueError(f"changes: {changes!r} must name some of {', '.join(inputs)}")
    if mode not in ("overwrite", "append"):
        raise ValueError(f"mode: {mode!r} is neither 'overwrite' nor 'append'")
    if start not in ("earliest", "latest"):
        raise ValueError(f"start: {start!r} is neither 'earliest' nor 'latest'")
    if not inputs:
        raise ValueError("inputs: an aligned job reads at least one table")


def _job(spark: SparkSession, query_name: str) -> tuple[str, str]:
    """Return the namespace and name of the job, as the emitter reports them.

    Only the template of names may be the session's.
    """
    from strandline_spark.conf import conf_of
    from strandline_spark.model.job_names import job_name

    conf = conf_of(dict(spark.sparkContext.getConf().getAll()))
    template = spark.conf.get(JOB_NAME, None) or conf.job_name
    return conf.namespace, job_name(template, conf.app_name, query_name)


def _clock(spark: SparkSession, trigger: str, name: str, checkpoint: str | None) -> Any:
    """A stream of one row a micro-batch that nobody reads.

    What makes micro-batches start, on every Spark version.
    """
    ticks = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .option("numPartitions", 1)
        .load()
    )
    writer = ticks.writeStream.queryName(name).trigger(processingTime=trigger)
    return writer.option("checkpointLocation", checkpoint) if checkpoint else writer
