"""Reads Spark's plans into `Statement`s, off the query's path.

At its start a statement is what the analysed plan says; at its end come the facts that only then exist: the snapshots
that its scans report, those that it committed, what it wrote. The optimised and the physical plan are not touched
before the end, because asking for them early would plan the query on our account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from py4j.java_gateway import JVMView
from py4j.protocol import Py4JError

from strandline_spark.columns.lineage import lineage_of
from strandline_spark.columns.terms import Ref
from strandline_spark.formats import Format, formats, known, with_snapshot
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm import JavaObject, Jvm
from strandline_spark.plans.memory import Memory
from strandline_spark.plans.mentions import mentions_of
from strandline_spark.plans.physical import scans_of, statistics_of
from strandline_spark.plans.tree import Node, parsed
from strandline_spark.plans.writes import Write, writes_of
from strandline_spark.snapshots import Commit, Scan
from strandline_spark.statement import Dataset, Output, Snapshot, Statement

Offsets = tuple[str | None, str | None]  # where a source's part of a micro-batch starts and ends


class UnreadablePlanError(Exception):
    """A plan could not be read; the message names its execution's plan and the reason."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A mention of data that is read, with the format and dataset it belongs to."""

    mention: Mention
    format: Format
    dataset: Dataset


class PlanReader:
    """Reads the plans of one application; give it a session or the gateway's JVM view, and use it from one thread."""

    def __init__(self, spark: Any) -> None:
        self._memory = Memory()
        self._jvm = Jvm(spark if isinstance(spark, JVMView) else spark.sparkContext._jvm)

    def at_start(self, execution: JavaObject) -> Statement:
        """The statement as analysed. Snapshots are hints (`observed`) but where the statement itself names them."""
        return self._guarded(execution, self._started)

    def at_end(self, execution: JavaObject, commits: Sequence[Commit | Scan] = ()) -> Statement:
        """The statement with what it really read and wrote; `commits` are those between its start and its end."""
        return self._guarded(execution, lambda plan: self._ended(execution, plan, commits))

    def micro_batch(
        self, execution: JavaObject, progress: Mapping[str, Any] | None, commits: Sequence[Commit | Scan] = ()
    ) -> Statement:
        """A micro-batch: what its sources' offsets say was read, and what its sink committed for this batch."""
        return self._guarded(execution, lambda plan: self._batch_ended(execution, plan, commits))

    def earlier_batch(self, execution: JavaObject, batch: tuple[str, int], offsets: Sequence[Offsets]) -> Statement:
        """An earlier micro-batch (query id, batch id) of a query: its plan of now, with that one's offsets and snapshots.

        `offsets` are (start, end) of each source, in the order of the query's offset log.
        """
        return self._guarded(execution, lambda plan: self._batch_before(plan, batch, offsets))

    def _guarded(self, execution: JavaObject, read: Any) -> Statement:
        try:
            self._jvm.session = execution.sparkSession()
            return read(_analysed(execution))  # type: ignore[no-any-return]
        except (Py4JError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise UnreadablePlanError(f"plan not readable: {type(error).__name__}: {error}") from error

    def _started(self, plan: JavaObject) -> Statement:
        root, reads, writes = self._read(plan)
        inputs = [with_snapshot(r.dataset, r.format.snapshot_at_start(r.mention, self._jvm)) for r in reads]
        outputs = [output for write in writes if (output := self._output(write)) is not None]
        return self._with_columns(plan, root, inputs, outputs, reads)

    def _ended(self, execution: JavaObject, plan: JavaObject, happened: Sequence[Commit | Scan]) -> Statement:
        root, reads, writes = self._read(plan)
        physical = execution.executedPlan()
        scans = [*self._reports(physical), *(one for one in happened if isinstance(one, Scan))]
        inputs = [with_snapshot(read.dataset, self._snapshot_read(read, scans)) for read in reads]
        outputs = [output for write in writes if (output := self._made(write, physical, happened)) is not None]
        return self._with_columns(plan, root, inputs, outputs, reads)

    def _batch_ended(self, execution: JavaObject, plan: JavaObject, happened: Sequence[Commit | Scan]) -> Statement:
        root, reads, writes = self._read(plan)
        physical = execution.executedPlan()
        scans = list(self._reports(physical))
        inputs = [with_snapshot(read.dataset, self._streamed(read, scans)) for read in reads]
        outputs = [output for write in writes if (output := self._made(write, physical, happened)) is not None]
        return self._with_columns(plan, root, inputs, outputs, reads)

    def _batch_before(self, plan: JavaObject, batch: tuple[str, int], offsets: Sequence[Offsets]) -> Statement:
        root, reads, writes = self._read(plan)
        streams = iter(offsets)
        inputs = []
        for read in reads:
            start, end = next(streams, (None, None)) if read.mention.offsets is not None else (None, None)
            snapshot = read.format.streamed(read.mention, start, end, self._jvm) if end is not None else None
            inputs.append(with_snapshot(read.dataset, snapshot))
        outputs = [output for write in writes if (output := self._made_before(write, batch)) is not None]
        return self._with_columns(plan, root, inputs, outputs, reads)

    def _made_before(self, write: Write, batch: tuple[str, int]) -> Output | None:
        target = self._target(write)
        if target is None:
            return None
        one, dataset = target
        snapshot = one.written_by_batch(write.mention, batch, (), self._jvm)
        return Output(with_snapshot(dataset, snapshot), write.operation)

    def _with_columns(
        self, plan: JavaObject, root: Node, inputs: list[Dataset], outputs: list[Output], reads: Sequence[_Read]
    ) -> Statement:
        leaves = {expr_id: _ref(read.dataset, name) for read in reads for expr_id, name in read.mention.columns}
        rewritten = _key(outputs[0].dataset) if outputs and outputs[0].operation in _REWRITING else None
        lineage = lineage_of(plan, root, leaves, self._memory.value, self._jvm, rewritten)
        inputs += self._memory.sources(lineage.origins, inputs)
        self._memory.keep(lineage.values or {}, inputs)
        return Statement(
            root.name, _distinct(inputs), tuple(outputs), lineage.columns, lineage.indirect, lineage.opaque
        )

    def _read(self, plan: JavaObject) -> tuple[Node, list[_Read], list[Write]]:
        root = parsed(plan.toJSON())
        found = ((mention, known(mention, self._jvm)) for mention in mentions_of(plan, self._jvm))
        reads = [_Read(mention, *format_and_dataset) for mention, format_and_dataset in found if format_and_dataset]
        return root, reads, writes_of(plan, root, self._jvm)

    def _output(self, write: Write) -> Output | None:
        dataset = self._target(write)
        return Output(dataset[1], write.operation) if dataset is not None else None

    def _target(self, write: Write) -> tuple[Format, Dataset] | None:
        if write.mention.table is not None or not write.new:
            return known(write.mention, self._jvm)
        for one in formats():
            dataset = one.named(write.mention, self._jvm)
            if dataset is not None:
                return one, dataset
        return None

    def _made(self, write: Write, physical: JavaObject, happened: Sequence[Commit | Scan]) -> Output | None:
        target = self._target(write)
        if target is None:
            return None
        one, dataset = target
        commits = [commit for commit in happened if isinstance(commit, Commit)]
        if write.batch is not None:
            snapshot = one.written_by_batch(write.mention, write.batch, commits, self._jvm)
        else:
            snapshot = one.written(write.mention, commits, self._jvm)
        return Output(with_snapshot(dataset, snapshot), write.operation, _statistics(physical, snapshot, commits))

    def _reports(self, physical: JavaObject) -> list[Scan]:
        reports = []
        for scan in scans_of(physical, self._jvm):
            reports += [report for one in formats() if (report := one.scanned(scan, self._jvm)) is not None][:1]
        return reports

    def _snapshot_read(self, read: _Read, scans: Sequence[Scan]) -> Snapshot | None:
        for scan in scans:
            snapshot = read.format.read(read.mention, scan, self._jvm)
            if snapshot is not None:
                return snapshot
        return read.format.snapshot_at_start(read.mention, self._jvm)

    def _streamed(self, read: _Read, scans: Sequence[Scan]) -> Snapshot | None:
        offsets = read.mention.offsets
        if offsets is None or offsets[1] is None:
            return self._snapshot_read(read, scans)
        return read.format.streamed(read.mention, offsets[0], offsets[1], self._jvm)


def _analysed(execution: JavaObject) -> JavaObject:
    """The analysed plan; of a statement whose analysis failed, the plan as it was parsed."""
    try:
        return execution.analyzed()
    except Py4JError:
        return execution.logical()


_REWRITING = {"merge", "update", "delete"}


def _key(dataset: Dataset) -> tuple[str, str]:
    return dataset.namespace, dataset.name


def _ref(dataset: Dataset, column: str) -> Ref:
    return Ref(_key(dataset), column, dataset.table or dataset.name)


def _distinct(datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    """Each dataset once; one that is read at several snapshots keeps them all."""
    merged: dict[tuple[str, str], Dataset] = {}
    for dataset in datasets:
        key = (dataset.namespace, dataset.name)
        earlier = merged.get(key)
        merged[key] = dataset if earlier is None else _joined(earlier, dataset)
    return tuple(merged.values())


def _joined(earlier: Dataset, later: Dataset) -> Dataset:
    snapshots = dict.fromkeys((*earlier.snapshots, *later.snapshots))
    return replace(earlier, snapshots=tuple(snapshots))


def _statistics(physical: JavaObject, snapshot: Snapshot | None, commits: Sequence[Commit]) -> dict[str, int]:
    """The commit's own count where there is a commit, else what the write's metrics counted."""
    for commit in commits:
        if snapshot is not None and commit.snapshot_id == snapshot.snapshot_id:
            return commit.statistics
    return statistics_of(physical)
