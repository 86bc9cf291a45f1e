"""The checkpoints of one aligned job.

Each micro-batch makes the next one, once, whatever happened before.

Where the job stands is read from the output table and from nowhere else: its last barrier. So a job
killed between the commit and the end of its micro-batch, a lost checkpoint folder and a table that
was rolled back all go on rightly.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.streaming import StreamingQuery

from strandline_spark.consistency.aligned.decisions import FEW, Decision
from strandline_spark.consistency.aligned.inputs import Inputs, inputs_once_there
from strandline_spark.consistency.collector import (
    Collector,
    CollectorAwayError,
    ConsistencyError,
    UnknownTableError,
)
from strandline_spark.consistency.table_history import (
    MissingTableError,
    NotOnlyAppendsError,
    Point,
    TableHistory,
)
from strandline_spark.extraction.aligned_outputs import AlignedOutput
from strandline_spark.jvm.iceberg_snapshot import BARRIER, BATCH, GENERATION, GROUP, INPUTS, QUERY
from strandline_spark.model.statement import Operation

_LOG = logging.getLogger("strandline")
SKIPPED = "strandline.skipped"
_TRIES = 3


class NotAlignedError(Exception):
    """The output is not what an aligned job left there.

    The message names table, barrier and snapshots.
    """


class RolledBackError(NotAlignedError):
    """The output was rolled back while the job ran.

    This run's state is of before, so it commits nothing more.
    """


@dataclass(frozen=True, slots=True)
class Alignment:
    """The properties of an aligned job."""

    inputs: Mapping[str, str]
    output: str
    transform: Callable[[Mapping[str, DataFrame], int], DataFrame]
    group: str | None
    changes: frozenset[str]
    mode: str
    job: tuple[str, str]
    from_latest: bool
    timeout: float | None
    max_behind: int | None = FEW

    @property
    def sources(self) -> dict[str, str]:
        """The inputs without the output's own earlier state."""
        return {name: table for name, table in self.inputs.items() if table != self.output}

    @property
    def written(self) -> AlignedOutput:
        """The values by which the emitter finds a checkpoint again."""
        operation: Operation = "append" if self.mode == "append" else "overwrite"
        return AlignedOutput(
            self.output, operation, frozenset(self.inputs[name] for name in self.changes)
        )


@dataclass(frozen=True, slots=True)
class AlignedBatch:
    """One micro-batch of the query that serves as the clock."""

    session: SparkSession
    inputs: Inputs
    output: TableHistory | None
    id: tuple[str, int] | None

    @property
    def last(self) -> Point | None:
        """The output's newest checkpoint."""
        return self.output.last_carrier() if self.output is not None else None

    @property
    def position(self) -> int | None:
        """Its barrier."""
        return self.last.barrier if self.last is not None else None


class Checkpoints:
    """The callback of foreachBatch.

    `finished` is set when the last checkpoint that was asked for is there.
    """

    def __init__(
        self,
        alignment: Alignment,
        collector: Collector | None,
        until_barrier: int | None,
        available_now: bool,
    ) -> None:
        self._job = alignment
        self._collector = collector
        self._until = until_barrier
        self._bounded = not available_now  # else: whether the end was looked up
        self._inputs: Inputs | None = None
        self._output: TableHistory | None = None
        self._generation: int | None = None  # the output's, when the run began
        self._least = 1
        self._committed = False
        self.query: StreamingQuery | None = None
        self.finished = threading.Event()

    def announce(self, spark: SparkSession) -> None:
        """Tell the collector what the job reads and writes.

        Look at the inputs once, so that faults are reported at the start.
        """
        try:
            Inputs(spark, self._job.sources, self._job.group, self._job.job, None).refresh()
        except MissingTableError as error:
            if not self._bounded:  # what is possible now is nothing
                raise
            _LOG.warning("strandline: job %s waits for an input: %s", self._job.job[1], error)
        if self._collector is None:
            return
        namespace, name = self._job.job
        for table in (*self._job.sources.values(), self._job.output):
            try:
                self._collector.register(
                    name, namespace, table, table == self._job.output, self._job.group
                )
            except (
                CollectorAwayError,
                UnknownTableError,
            ):  # it learns of both from the first events
                continue
        with suppress(ConsistencyError):  # a job of which it has not heard yet
            question = {"namespace": namespace, "name": name, "position": None}
            self._least = int(
                self._collector.ask("POST", "/api/v2/jobs/decision", question).get("generation", 1)
            )
        output = _found(spark, self._job.output)
        # The run begins here: a rollback before its first micro-batch ends it as one after that
        # does.
        self._generation = max(output.generation if output is not None else 1, self._least)

    def __call__(self, ticks: DataFrame, batch_id: int) -> None:
        """Make the next checkpoint, if this micro-batch has not made one already."""
        batch = self._micro_batch(ticks.sparkSession, batch_id)
        self._check_generation(batch)
        self._look_up_the_end(batch)
        if self._is_over(batch.position):
            if not self._committed and not self.finished.is_set():
                _LOG.warning("strandline: job %s: %s", self._job.job[1], self._nothing_done(batch))
            self.finished.set()
        if self.finished.is_set() or (
            batch.id is not None and batch.last is not None and batch.last.batch == batch.id
        ):
            return
        decision = self._decision(batch)
        if decision is not None:
            self._make(batch, decision)

    def _check_generation(self, batch: AlignedBatch) -> None:
        now = max(batch.output.generation if batch.output is not None else 1, self._least)
        if self._generation is None:
            self._generation = now
        elif now > self._generation:
            raise RolledBackError(
                f"{self._job.output} was rolled back to generation {now} and this run of job "
                f"{self._job.job[1]} is of {self._generation}: start it again"
            )

    def _micro_batch(self, session: SparkSession, batch_id: int) -> AlignedBatch:
        if self._inputs is None:  # one session serves all micro-batches of a query
            job = self._job
            ask = partial(
                Inputs, session, job.sources, job.group, job.job, self._collector, job.max_behind
            )
            self._inputs = inputs_once_there(ask, job.job[1], job.timeout, self._goes_on)
        query_id = session.sparkContext.getLocalProperty("sql.streaming.queryId")
        return AlignedBatch(
            session,
            self._inputs,
            self._output_in(session),
            (query_id, batch_id) if query_id else None,
        )

    def _output_in(self, session: SparkSession) -> TableHistory | None:
        if self._output is None:
            self._output = _found(session, self._job.output)
        else:
            self._output.refresh()
        return self._output

    def _nothing_done(self, batch: AlignedBatch) -> str:
        at = f"after barrier {batch.position}" if batch.position is not None else "at any barrier"
        newest = batch.inputs.newest_common()
        until = (
            f"the newest that all inputs have is {newest}"
            if newest is not None
            else "no barrier is common to all inputs"
        )
        return f"there was no checkpoint to make {at} ({until})"

    def _look_up_the_end(self, batch: AlignedBatch) -> None:
        if self._bounded:
            return
        batch.inputs.refresh()
        newest = batch.inputs.newest_common()
        ends = [barrier for barrier in (self._until, newest or 0) if barrier is not None]
        self._until, self._bounded = min(ends), True

    def _is_over(self, position: int | None) -> bool:
        return self._until is not None and (position or 0) >= self._until

    def _decision(self, batch: AlignedBatch) -> Decision | None:
        position = batch.position
        if position is None and self._job.from_latest:
            first = batch.inputs.wait(None, self._job.timeout, self._goes_on)
            newest = batch.inputs.newest_common()
            position = newest - 1 if first is not None and newest is not None else None
        decision = batch.inputs.wait(position, self._job.timeout, self._goes_on)
        return (
            replace(decision, abort=())
            if decision is not None and batch.position is None
            else decision
        )

    def _goes_on(self) -> bool:
        return self.query is None or bool(self.query.isActive)

    def _make(self, batch: AlignedBatch, decision: Decision) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                self._commit(batch, decision)
                break
            except Exception as error:
                if (
                    attempt == _TRIES
                    or "ValidationException" not in str(error)
                    or self._moved(batch)
                ):
                    raise
        self._committed = True
        self._check_once(batch.session, decision.barrier)
        if self._is_over(decision.barrier):
            self.finished.set()

    def _moved(self, batch: AlignedBatch) -> bool:
        """Return whether somebody else made a checkpoint meanwhile.

        Compaction and deletes do not count.
        """
        before = batch.position
        if batch.output is not None:
            batch.output.refresh()
            self._check_generation(batch)
        return batch.position != before

    def _commit(self, batch: AlignedBatch, decision: Decision) -> None:
        assert decision.barrier is not None
        frames = {
            name: self._frame(batch, name, table, decision)
            for name, table in self._job.inputs.items()
        }
        rows = self._job.transform(frames, decision.barrier)
        if batch.output is not None:
            batch.output.refresh_properties()
        self._check_generation(batch)
        writer = rows.writeTo(self._job.output)
        for key, value in self._properties(batch, decision).items():
            writer = writer.option(f"snapshot-property.{key}", value)
        if batch.output is None:
            writer.using("iceberg").create()
        elif batch.output.newest is None and self._job.mode == "append":
            writer.append()
        else:
            if (
                batch.output.newest is not None
            ):  # a second instance that overtook this one, or a rollback, makes it fail
                writer = writer.option("validate-from-snapshot-id", batch.output.newest.snapshot_id)
                writer = writer.option("isolation-level", "serializable")
            writer.overwrite(lit(self._job.mode == "overwrite"))  # overwriting nothing is an append

    def _frame(self, batch: AlignedBatch, name: str, table: str, decision: Decision) -> DataFrame:
        if table == self._job.output:
            return self._own_state(batch)
        snapshot = decision.snapshots[table]
        if name not in self._job.changes:
            return batch.inputs.at(table, snapshot)
        before = batch.last.inputs.get(table) if batch.last is not None else None
        if batch.last is not None and before is None:
            raise NotAlignedError(
                f"{self._job.output}: snapshot {batch.last.snapshot_id} (barrier "
                f"{batch.last.barrier}) does not say which snapshot of {table} it was made from, "
                "so its changes since then are unknown: read its state"
            )
        try:
            return batch.inputs.since(table, before, snapshot)
        except NotOnlyAppendsError as error:
            position, job = batch.position or 0, self._job.job[1]
            raise NotOnlyAppendsError(
                f"{error}. Start the job without {name} in changes=, or let it begin anew: "
                f"strandline rollback {quote(self._job.output)} {position} "
                f"--lost-state {quote(job)}"
            ) from error

    def _own_state(self, batch: AlignedBatch) -> DataFrame:
        if batch.output is None:
            raise MissingTableError(
                f"{self._job.output}: a job that reads its own output needs the table to be there"
            )
        return (
            batch.output.at(batch.last.snapshot_id)
            if batch.last is not None
            else batch.output.now().limit(0)
        )

    def _properties(self, batch: AlignedBatch, decision: Decision) -> dict[str, str]:
        properties = {
            BARRIER: str(decision.barrier),
            INPUTS: json.dumps(dict(decision.snapshots), sort_keys=True),
        }
        if self._job.group:
            properties[GROUP] = self._job.group
        if self._generation is not None:
            properties[GENERATION] = str(self._generation)
        if decision.abort:
            properties[SKIPPED] = ",".join(map(str, decision.abort))
        if batch.id is not None:
            properties |= {QUERY: batch.id[0], BATCH: str(batch.id[1])}
        return properties

    def _check_once(self, session: SparkSession, barrier: int | None) -> None:
        """Iceberg lets two writers append.

        The second instance of a job sees it at once and stops.
        """
        output = self._output_in(session)
        carriers = [
            point.snapshot_id
            for point in (output.main() if output else ())
            if point.barrier == barrier
        ]
        if len(carriers) != 1:
            raise NotAlignedError(
                f"{self._job.output}: barrier {barrier} is carried by {len(carriers)} snapshots "
                f"({', '.join(carriers) or 'none'}): "
                f"does a second instance of job {self._job.job[1]} run?"
            )


def _found(session: SparkSession, table: str) -> TableHistory | None:
    try:
        return TableHistory(session, table)
    except MissingTableError:
        return None
