"""Reads Spark's plans into `Statement`s, off the query's path.

At its start a statement is what the analysed plan says; at its end come the facts that only then
exist: the snapshots that its scans report, those that it committed, what it wrote. The optimised
and the physical plan are not touched before the end, because asking for them early would plan the
query on our account.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JVMView

from strandline_spark.columns.expression import Value
from strandline_spark.columns.generated import generated_columns
from strandline_spark.columns.lineage import Lineage, lineage_of
from strandline_spark.extraction.aligned_outputs import AlignedOutput
from strandline_spark.extraction.datasets_of_plan import (
    Parts,
    Read,
    Target,
    failed_parts_of,
    parts_of,
    refused_parts_of,
    targets_of,
)
from strandline_spark.extraction.idle_sources import IdleSources
from strandline_spark.extraction.inputs import distinct, key_of, lasting, values_of_leaves
from strandline_spark.extraction.lineage_memory import Memory
from strandline_spark.extraction.procedures import (
    STAGED,
    Procedure,
    name_of,
    procedure_of,
    source_of,
    target_of,
)
from strandline_spark.extraction.rdd_sources import sources_of_rows
from strandline_spark.extraction.unread import UNREADABLE, unread
from strandline_spark.extraction.unreported_statements import (
    RefusedWrite,
    SqlText,
    Unreported,
    as_statement,
    write_to_path,
)
from strandline_spark.extraction.writes import is_multi_insert
from strandline_spark.formats.contract import BatchSnapshot, with_snapshot
from strandline_spark.formats.done import Done, begun_at
from strandline_spark.formats.registry import formats, identified
from strandline_spark.jvm.client import JavaObject, Jvm, Known
from strandline_spark.jvm.iceberg_snapshot import ALL_CAME, Commit, Scan
from strandline_spark.model.statement import (
    Column,
    Dataset,
    Origin,
    Output,
    Snapshot,
    Statement,
)
from strandline_spark.plans.offset_log import logged_offsets
from strandline_spark.plans.physical import scans_of, statistics_of
from strandline_spark.plans.schemas import fields_of
from strandline_spark.plans.tree_source import analysed, number_of, sql_of, tree_of_plan

Offsets = tuple[str | None, str | None]  # where a source's part of a micro-batch starts and ends
_REWRITING = {"merge", "update", "delete"}
_MAKING = {"create", "replace"}
_ADDING = {"append", "overwrite"}
_DEFINING = {"drop", "rename", "alter"}
_SHORTLY = 2000  # milliseconds; a table's time may be before its statement's analysis
_MADE = 1000
_KEPT = 8  # plans that are kept for their statements' ends, with what they hold in the JVM


class UnreadablePlanError(Exception):
    """A plan could not be read; the message names its execution's plan and the reason."""


class PlanReader:
    """Reads the plans of one application.

    Give it a session or the gateway's JVM view, and use it from one thread.
    """

    def __init__(self, spark: Any) -> None:
        self._memory = Memory()
        self._idle = IdleSources()
        self._unread: list[str] = []  # what of the statement that is being read could not be
        self._begun: OrderedDict[int, Parts] = OrderedDict()
        self._made = deque[str](maxlen=_MADE)  # snapshots of statements that Spark reported
        self._resolved: WeakKeyDictionary[Parts, tuple[Lineage, list[Dataset], str | None]] = (
            WeakKeyDictionary()
        )
        self._jvm = Jvm(spark if isinstance(spark, JVMView) else spark.sparkContext._jvm)

    @property
    def jvm(self) -> Jvm:
        """The JVM that it asks."""
        return self._jvm

    def forget(self, execution: JavaObject) -> None:
        """Lets go of the plan of an execution whose end will not come."""
        self._begun.pop(number_of(execution) or -1, None)

    def at_start(self, execution: JavaObject, planned: JavaObject = None) -> Statement:
        """The statement as analysed.

        Snapshots are hints (`observed`) but where the statement itself names them.

        `planned`: of a micro-batch, what holds the logical plan of its query, which names sources
        without news too.
        """
        return self._guarded(execution, self._started, begins=True, planned=planned)

    def at_end(self, execution: JavaObject, commits: Sequence[Commit | Scan] = ()) -> Statement:
        """The statement with what it really read and wrote.

        `commits` are those between its start and its end.
        """
        return self._guarded(execution, lambda parts: self._ended(execution, parts, commits))

    def micro_batch(
        self, execution: JavaObject, planned: JavaObject, commits: Sequence[Commit | Scan] = ()
    ) -> Statement:
        """Return a micro-batch: what it read by its sources' offsets, and what its sink committed.

        The offsets are the plan's own, or those of the query's offset log, which is there before
        the micro-batch runs. A source without news is an input at no snapshot; `planned` is as in
        `at_start`.
        """
        return self._guarded(
            execution,
            lambda parts: self._batch_ended(execution, parts, commits, planned),
            planned=planned,
        )

    def earlier_batch(
        self,
        execution: JavaObject,
        batch: tuple[str, int],
        offsets: Sequence[Offsets],
        planned: JavaObject = None,
    ) -> Statement:
        """An earlier micro-batch (query id, batch id) of a query.

        Its plan of now, with that one's offsets and snapshots.

        `offsets` are (start, end) of each source, in the order of the query's offset log; `planned`
        is as in `at_start`.
        """
        with self._session_of(execution):
            return self._batch_before(
                self._fresh_parts(execution, planned, ask=True), batch, offsets, planned
            )

    def consumed(self, execution: JavaObject, offsets: Sequence[Offsets]) -> tuple[Dataset, ...]:
        """Return every source of a query with where a micro-batch ended in it.

        Sources that had nothing new are among them. `execution` has the query's own plan: a
        micro-batch's leaves out what it does not read.
        """
        return self._guarded(
            execution, lambda parts: Statement("Sources", self._sources(parts, offsets))
        ).inputs

    def _sources(self, parts: Parts, offsets: Sequence[Offsets]) -> tuple[Dataset, ...]:
        pairs = zip(parts.reads, _by_read(parts, offsets, log=True), strict=True)
        ended = [
            (read, pair[0], pair[1])
            for read, pair in pairs
            if pair is not None and pair[1] is not None
        ]
        return distinct(
            [self._ended_at(read, start, end) for read, start, end in ended if end is not None]
        )

    def checkpoints(
        self, execution: JavaObject, written: AlignedOutput, query_id: str, after: int
    ) -> dict[int, Statement]:
        """Return the commits of an aligned job's micro-batches after one.

        The key is its number. They are read from the snapshots.
        """
        with self._session_of(execution):
            output = self._named(execution.sparkSession(), written.table)
            committed = output.format.written_by_query(
                output.mention, query_id, after, written.changes, self._jvm
            )
            return {
                commit.batch_id: self._checkpoint(execution, output, commit, written)
                for commit in reversed(committed)
            }

    def _checkpoint(
        self,
        execution: JavaObject,
        output: Read,
        batch_snapshot: BatchSnapshot,
        written: AlignedOutput,
    ) -> Statement:
        inputs = [self._read_before(execution.sparkSession(), scan) for scan in batch_snapshot.of]
        outputs = (
            Output(with_snapshot(output.dataset, batch_snapshot.snapshot), written.operation),
        )
        return Statement("AlignedCheckpoint", distinct(inputs), outputs)

    def _named(self, session: JavaObject, table: str) -> Read:
        """A table as a plan that only reads it mentions it."""
        return parts_of(session.table(table).queryExecution().analyzed(), self._jvm).reads[0]

    def _read_before(self, session: JavaObject, scan: Scan) -> Dataset:
        read = self._named(session, scan.table)
        return with_snapshot(read.dataset, read.format.read(read.mention, scan, self._jvm))

    def unreported(
        self, statement: Unreported, happened: Sequence[Commit | Scan] = ()
    ) -> Statement:
        """Return what a statement did, or was to do, of which Spark reports nothing.

        `happened`: the commits since its start.
        """
        self._jvm.session = statement.session
        self._unread.clear()
        with self._jvm.as_active():
            return self._unreported(statement, happened)

    def _unreported(self, statement: Unreported, happened: Sequence[Commit | Scan]) -> Statement:
        jvm = self._jvm
        if isinstance(statement, RefusedWrite):
            parts = self._refused(statement)
        else:
            plan = jvm.session.sessionState().sqlParser().parsePlan(statement.text)
            current = statement.current_names()
            call = procedure_of(plan, current, jvm)
            if call is not None:
                return self._called(call, current, statement, happened)
            parts = failed_parts_of(plan, tree_of_plan(plan), None, jvm, current)
        return _marked(self._intended(parts), parts.unread)

    def _refused(self, write: RefusedWrite) -> Parts:
        plan = as_statement(write, self._jvm)
        if plan is None:
            return refused_parts_of(write_to_path(write, self._jvm), self._jvm)
        parts = failed_parts_of(plan, tree_of_plan(plan), None, self._jvm)
        return replace(parts, plan=None)  # nobody wrote its SQL

    def _called(
        self,
        call: Procedure,
        current: tuple[str, ...],
        statement: SqlText,
        happened: Sequence[Commit | Scan],
    ) -> Statement:
        """Return what a procedure did to its table; what it was to do, if it failed."""
        write = target_of(call, current, self._jvm)
        if write is None:
            return Statement("Call")
        done = statement.error is None
        commits = [call for call in happened if done and isinstance(call, Commit)]
        if write.operation == "alter":
            commits = [commit for commit in commits if STAGED in commit.summary]
        outputs, inputs, columns = list[Output](), list[Dataset](), tuple[Column, ...]()
        for target in targets_of([write], "Call", self._jvm, self._unread):
            outputs = [self._filled(target, commits, int(statement.at))]
            if write.operation == "alter":
                inputs = self._picked(target, outputs[0], commits)
            elif done:
                inputs = self._brought_in(call, current, target)
                columns = _same_columns(inputs, target.dataset)
        called = Statement(
            "AlterTable" if outputs and outputs[0].operation == "alter" else "Call",
            tuple(inputs),
            tuple(outputs),
            columns,
            sql=statement.text if outputs else None,
            absent=name_of(write.mention) if not outputs else None,
        )
        return _marked(called, tuple(self._unread))

    def _picked(self, target: Target, output: Output, commits: Sequence[Commit]) -> list[Dataset]:
        """Return the table at the staged snapshot whose rows a commit has once more."""
        made = {snapshot.snapshot_id for snapshot in output.dataset.snapshots}
        reads = [Scan(c.table, c.summary[STAGED]) for c in commits if c.snapshot_id in made]
        snapshots = [target.format.read(target.mention, scan, self._jvm) for scan in reads]
        return [with_snapshot(target.dataset, snapshot) for snapshot in snapshots]

    def _brought_in(
        self, call: Procedure, current: tuple[str, ...], target: Target
    ) -> list[Dataset]:
        """Return the table or the folder whose files a procedure took."""
        try:
            source = source_of(call, current, self._jvm)
            if source is None:  # the table itself, which has other metadata from now on
                return [replace(target.dataset, snapshots=())]
            if isinstance(source, str):
                return [self._named(self._jvm.session, source).dataset]
            knowing = identified(source, self._jvm)
            return [knowing[1]] if knowing is not None else []
        except UNREADABLE as error:
            self._unread.append(unread("an input", error))
            return []

    def _filled(self, target: Target, commits: Sequence[Commit], called_at: int) -> Output:
        """Return the output of a procedure; one that commits nothing sets its table's snapshot."""
        all_came = self._jvm.kept.get(ALL_CAME, lambda: True)
        commits = [commit for commit in commits if commit.snapshot_id not in self._made]
        beside = self._beside(target)
        done = Done(None, "append", commits, beside, all_came, called_at)
        snapshot = target.format.written(target.mention, done, self._jvm) if commits else None
        if snapshot is None:
            return Output(target.dataset, target.operation)
        operation = "append" if target.operation == "alter" else target.operation
        dataset = with_snapshot(target.dataset, _judged(target, snapshot))
        ids = {commit.snapshot_id: commit.statistics for commit in commits}
        return Output(dataset, operation, ids.get(snapshot.snapshot_id, {}))

    def _guarded(
        self,
        execution: JavaObject,
        read: Callable[[Parts], Statement],
        begins: bool = False,
        planned: JavaObject = None,
    ) -> Statement:
        with self._session_of(execution):
            self._unread.clear()
            parts = self._parts(execution, begins, planned)
            return _marked(read(parts), (*parts.unread, *self._unread))

    @contextmanager
    def _session_of(self, execution: JavaObject) -> Iterator[None]:
        """Ask the JVM within that execution's session.

        What cannot be asked is an unreadable plan.
        """
        try:
            self._jvm.session = Known(lambda: execution.sparkSession())
            yield
        except UNREADABLE as error:
            raise UnreadablePlanError(
                f"plan not readable: {type(error).__name__}: {error}"
            ) from error

    def _parts(self, execution: JavaObject, begins: bool, planned: JavaObject) -> Parts:
        """The parts of a plan, which at a statement's end are those that it began with."""
        number = number_of(execution) if not begins else None
        if number is not None and number in self._begun:
            return self._begun.pop(number)
        parts = self._fresh_parts(execution, planned)
        if begins and (number := number_of(execution)) is not None:
            self._begun[number] = parts
            if len(self._begun) > _KEPT:
                self._begun.popitem(last=False)
        return parts

    def _fresh_parts(self, execution: JavaObject, planned: JavaObject, ask: bool = False) -> Parts:
        """The parts of a plan, with the sources of its query that had no news.

        See `IdleSources.added_to` for `ask`.
        """
        read = analysed(execution)
        self._jvm.session_id = read.session
        if read.failed:
            with self._jvm.as_active():
                return failed_parts_of(read.plan, read.tree, read.error, self._jvm)
        parts = parts_of(read.plan, self._jvm, read.tree)
        parts = self._idle.added_to(
            parts, lambda: parts_of(planned.analyzed(), self._jvm).reads, ask
        )
        self._idle.remember(read for read in parts.reads if read.news)
        return self._effective(execution, parts)

    def _effective(self, execution: JavaObject, parts: Parts) -> Parts:
        """The parts; of a statement that finds the table there which it would have made, none.

        It does nothing.
        """
        if not any(target.unless_there for target in parts.targets):
            return parts
        begun = begun_at(execution)
        tables = [target for target in parts.targets if not target.part]
        times = [target.format.made_at(target.mention, self._jvm) for target in tables]
        made = [(target, at) for target, at in zip(tables, times, strict=True) if at is not None]
        if begun is not None and any(_was_there(target, at, begun) for target, at in made):
            return replace(parts, reads=(), targets=())
        nameless = any(target.nameless for target in parts.targets)
        return replace(parts, doubtful=nameless or bool(made))

    def _started(self, parts: Parts) -> Statement:
        renames = any(target.before is not None for target in parts.targets)
        if parts.doubtful or renames:  # whether it does anything is known at its end
            return Statement(parts.root.name)
        if parts.failed:
            return self._intended(parts)
        inputs = [
            self._attempted(read.dataset, partial(self._hinted, read)) for read in parts.reads
        ]
        outputs = [Output(target.dataset, target.operation) for target in parts.targets]
        return self._statement(parts, inputs, outputs)

    def _ended(
        self, execution: JavaObject, parts: Parts, happened: Sequence[Commit | Scan]
    ) -> Statement:
        if parts.failed:
            return self._intended(parts)
        reports, scans = (
            self._reports(execution, parts),
            [call for call in happened if isinstance(call, Scan)],
        )
        inputs = [
            self._attempted(read.dataset, partial(self._at, read, reports, scans))
            for read in parts.reads
        ]
        outputs = self._outputs(parts, execution, happened)
        if parts.doubtful and not all(map(_proven, parts.targets, outputs)):
            return Statement(parts.root.name)
        statement = self._grown(self._statement(parts, inputs, outputs), parts)
        by_part = any(target.proven_by == "part" for target in parts.targets)
        return replace(statement, if_filled=parts.doubtful and by_part)

    def _grown(self, statement: Statement, parts: Parts) -> Statement:
        """Return a statement that added columns to its table.

        With the columns that the table has now.
        """
        if len(statement.outputs) != 1 or statement.outputs[0].dataset.table is None:
            return statement
        (output,) = statement.outputs
        own = {field.name.lower() for field in output.dataset.schema}
        lineage = self._resolved[parts][0] if parts in self._resolved else Lineage()
        if not own or all(name.lower() in own for name in lineage.filled):
            return statement
        try:
            table = self._jvm.session.table(output.dataset.table)
            dataset = replace(output.dataset, schema=fields_of(table.schema()))
        except UNREADABLE as error:
            self._unread.append(unread("the columns that were added", error))
            return statement
        return replace(statement, outputs=(replace(output, dataset=dataset),))

    def _intended(self, parts: Parts) -> Statement:
        """Return a statement whose analysis failed, with what it would have written."""
        outputs = [Output(target.dataset, target.operation) for target in parts.targets]
        return Statement(
            parts.root.name,
            outputs=tuple(outputs),
            sql=sql_of(parts.plan) if outputs and parts.plan is not None else None,
            absent=parts.absent,
        )

    def _batch_ended(
        self,
        execution: JavaObject,
        parts: Parts,
        happened: Sequence[Commit | Scan],
        planned: JavaObject,
    ) -> Statement:
        scans = self._reports(execution, parts)
        unknown = any(read.mention.offsets == (None, None) for read in parts.reads)
        offsets = _by_read(parts, logged_offsets(execution, self._jvm) if unknown else ())
        reads = self._with_starts(parts.reads, offsets, planned)
        inputs = [
            self._attempted(read.dataset, partial(self._streamed, read, pair, scans))
            for read, pair in zip(reads, offsets, strict=True)
        ]
        return self._statement(parts, inputs, self._outputs(parts, execution, happened))

    def _batch_before(
        self,
        parts: Parts,
        batch: tuple[str, int],
        offsets: Sequence[Offsets],
        planned: JavaObject,
    ) -> Statement:
        offsets_of_reads = _by_read(parts, offsets, log=True)
        reads = self._with_starts(parts.reads, offsets_of_reads, planned)
        inputs = [
            self._streamed(read, pair, ()) if pair is not None else read.dataset
            for read, pair in zip(reads, offsets_of_reads, strict=True)
        ]
        outputs = []
        for target in parts.targets:
            snapshot = target.format.written_by_batch(target.mention, batch, (), self._jvm)
            dataset = with_snapshot(target.dataset, _judged(target, snapshot))
            outputs.append(Output(dataset, target.operation))
        return self._statement(parts, inputs, outputs)

    def _with_starts(
        self, reads: Sequence[Read], offsets: Sequence[Offsets | None], planned: JavaObject
    ) -> Sequence[Read]:
        """Return the sources of a micro-batch with the options that say where its query began.

        Only the query's own plan has those of Spark's older sources. They matter in the first
        micro-batch alone.
        """
        first = any(
            pair is not None
            and pair[0] is None
            and read.format.versioned
            and not read.mention.options
            for read, pair in zip(reads, offsets, strict=True)
        )
        if not first or planned is None:
            return reads
        try:
            own = {
                read.mention.slot: read.mention.options
                for read in parts_of(planned.analyzed(), self._jvm).reads
                if read.streams
            }
        except (*UNREADABLE, AttributeError) as error:
            self._unread.append(unread("the start of a stream", error))
            return reads
        return [
            replace(read, mention=replace(read.mention, options=own[read.mention.slot]))
            if read.streams and not read.mention.options and read.mention.slot in own
            else read
            for read in reads
        ]

    def _statement(self, parts: Parts, inputs: list[Dataset], outputs: list[Output]) -> Statement:
        if is_multi_insert(parts.root):  # the columns of a statement are those of one output
            plans, sql = self._jvm.sequence(parts.plan.children()), sql_of(parts.plan)
            branches = tuple(
                replace(self._branch(plan, inputs, outputs), sql=sql) for plan in plans
            )
            return Statement(parts.root.name, distinct(inputs), tuple(outputs), branches=branches)
        if parts not in self._resolved:
            sql = sql_of(parts.plan) if outputs else None
            self._resolved[parts] = *self._lineage_or_none(parts, inputs, outputs), sql
            parts.root.forget()
        lineage, earlier, sql = self._resolved[parts]
        if lineage.given is not None:
            self._memory.keep(lineage.given, [*lasting(parts, inputs), *earlier])
        all_inputs = distinct([*inputs, *earlier])
        return Statement(
            parts.root.name,
            all_inputs,
            tuple(outputs),
            lineage.columns,
            lineage.indirect,
            lineage.opaque,
            sql=sql,
        )

    def _branch(self, plan: JavaObject, inputs: list[Dataset], outputs: list[Output]) -> Statement:
        """One insert of several, with what the whole statement knows of its datasets."""
        parts = parts_of(plan, self._jvm)
        read, wrote = (
            {key_of(dataset): dataset for dataset in inputs},
            {key_of(output.dataset): output for output in outputs},
        )
        own = [read.get(key_of(read_.dataset), read_.dataset) for read_ in parts.reads]
        written = [
            wrote[key] for target in parts.targets if (key := key_of(target.dataset)) in wrote
        ]
        return self._statement(parts, own, written)

    def _lineage_or_none(
        self, parts: Parts, inputs: list[Dataset], outputs: list[Output]
    ) -> tuple[Lineage, list[Dataset]]:
        try:
            return self._lineage(parts, inputs, outputs)
        except UNREADABLE as error:
            self._unread.append(unread("the columns", error))
            return Lineage(), []

    def _lineage(
        self, parts: Parts, inputs: list[Dataset], outputs: list[Output]
    ) -> tuple[Lineage, list[Dataset]]:
        """The columns, and the datasets that earlier statements read for them."""
        leaves = values_of_leaves(parts.reads)
        rewritten = (
            key_of(outputs[0].dataset) if outputs and outputs[0].operation in _REWRITING else None
        )
        recalled = self._memory.recall()
        lineage = lineage_of(
            parts.root,
            leaves,
            recalled,
            rewritten,
            partial(self._generated, parts),
        )
        earlier = recalled.sources(lineage.origins, inputs)
        if "LogicalRDD" in lineage.opaque:
            earlier += self._read_by_rdds(parts.rows)
        return lineage, earlier

    def _read_by_rdds(self, relations: Sequence[JavaObject]) -> list[Dataset]:
        """Return the sources of RDDs.

        Only of those whose rows no earlier statement is known to have given.
        """
        datasets = []
        for relation in relations:
            try:
                tables, folders = sources_of_rows(relation, self._jvm)
                datasets += [self._named(self._jvm.session, table).dataset for table in tables]
                knowing = [identified(folder, self._jvm) for folder in folders]
            except UNREADABLE as error:
                self._unread.append(unread("what an RDD was made from", error))
                continue
            datasets += [known[1] for known in knowing if known is not None]
        return datasets

    def _generated(
        self, parts: Parts, values: Sequence[tuple[str, Value]]
    ) -> Iterator[tuple[str, Value]]:
        """The columns that the target fills by itself."""
        if len(parts.targets) != 1 or parts.targets[0].operation not in _ADDING:
            return iter(())
        mention = parts.targets[0].mention
        schema, expressions = parts.targets[0].format.generated(mention, self._jvm)
        return generated_columns(expressions, schema, values, self._jvm)

    def _attempted(self, dataset: Dataset, read: Callable[[], Dataset]) -> Dataset:
        """The dataset at its snapshot; without one where that cannot be read."""
        try:
            return read()
        except UNREADABLE as error:
            self._unread.append(unread(f"the snapshot of {dataset.table or dataset.name}", error))
            return dataset

    def _hinted(self, read: Read) -> Dataset:
        """Return the facts that are known before anything is read.

        Of a stream nothing is, because its offsets decide.
        """
        hint = None if read.streams else read.format.snapshot_at_start(read.mention, self._jvm)
        return with_snapshot(read.dataset, hint)

    def _outputs(
        self, parts: Parts, execution: JavaObject, happened: Sequence[Commit | Scan]
    ) -> list[Output]:
        commits = [commit for commit in happened if isinstance(commit, Commit)]
        return [self._attempted_output(target, execution, commits) for target in parts.targets]

    def _attempted_output(
        self, target: Target, execution: JavaObject, commits: Sequence[Commit]
    ) -> Output:
        try:
            return self._output(target, execution, commits)
        except UNREADABLE as error:
            self._unread.append(
                unread(f"the snapshot of {target.dataset.table or target.dataset.name}", error)
            )
            return Output(target.dataset, target.operation)

    def _output(self, target: Target, execution: JavaObject, commits: Sequence[Commit]) -> Output:
        if target.operation in _DEFINING:  # no rows are written
            return Output(
                target.dataset, target.operation, before=target.before, renamed=target.renamed
            )
        if target.batch is not None and target.format.names_batches:
            snapshot = target.format.written_by_batch(
                target.mention, target.batch, commits, self._jvm
            )
        else:
            all_came = self._jvm.kept.get(ALL_CAME, lambda: True)
            done = Done(execution, target.operation, commits, self._beside(target), all_came)
            snapshot = target.format.written(target.mention, done, self._jvm)
        if snapshot is not None:
            self._made.append(snapshot.snapshot_id)
        statistics = self._statistics(target, execution, snapshot, commits)
        dataset = with_snapshot(target.dataset, _judged(target, snapshot))
        schema = target.format.written_schema(target.mention, self._jvm)
        dataset = replace(dataset, schema=tuple(schema) or dataset.schema)
        return Output(dataset, target.operation, statistics)

    def _beside(self, target: Target) -> bool:
        """Return whether a statement that has begun and not ended writes the same table.

        The one that makes it is around this.
        """
        others = (
            target
            for parts in self._begun.values()
            for target in parts.targets
            if target.operation not in _MAKING
        )
        return any(key_of(other.dataset) == key_of(target.dataset) for other in others)

    def _statistics(
        self,
        target: Target,
        execution: JavaObject,
        snapshot: Snapshot | None,
        commits: Sequence[Commit],
    ) -> dict[str, int]:
        """Return the commit's own count, else what the write's metrics counted.

        The commit's own only where the commit is known for certain.
        """
        if snapshot is None or snapshot.observed:
            return statistics_of(execution)
        for commit in commits:
            if commit.snapshot_id == snapshot.snapshot_id:
                return commit.statistics
        counted = target.format.statistics(target.mention, snapshot, self._jvm)
        return counted or statistics_of(execution)

    def _reports(self, execution: JavaObject, parts: Parts) -> list[Scan]:
        """Return what the scans of those formats say that are read and whose scans say anything."""
        telling = [
            format_
            for format_ in formats()
            if format_.scans_tell and any(format_ is read.format for read in parts.reads)
        ]
        reports = []
        for scan in scans_of(execution.executedPlan()) if telling else ():
            reports += [
                report
                for format_ in telling
                if (report := format_.scanned(scan, self._jvm)) is not None
            ][:1]
        return reports

    def _at(self, read: Read, reports: Sequence[Scan], scans: Sequence[Scan] = ()) -> Dataset:
        """A dataset with what was read of it, the newest last.

        By the reports of the statement's own scans; else by the scans that were reported, for
        whichever statement, while it ran. If those differ, the first is a guess.
        """
        if own := self._read_by(read, reports):
            return replace(
                read.dataset,
                snapshots=tuple(sorted(own, key=lambda snapshot: snapshot.committed_at or "")),
            )
        if snapshots := self._read_by(read, scans):
            return with_snapshot(read.dataset, replace(snapshots[0], observed=len(snapshots) > 1))
        return with_snapshot(read.dataset, read.format.snapshot_unseen(read.mention, self._jvm))

    def _read_by(self, read: Read, scans: Sequence[Scan]) -> list[Snapshot]:
        snapshots = (
            read.format.read(read.mention, scan, self._jvm) for scan in dict.fromkeys(scans)
        )
        return [snapshot for snapshot in snapshots if snapshot is not None]

    def _streamed(self, read: Read, offsets: Offsets | None, scans: Sequence[Scan]) -> Dataset:
        if offsets is None or offsets[1] is None:
            return replace(read.dataset, streamed=True) if read.streams else self._at(read, scans)
        if not read.news or offsets[0] == offsets[1]:
            return replace(read.dataset, streamed=True)
        return self._ended_at(read, offsets[0], offsets[1])

    def _ended_at(self, read: Read, start: str | None, end: str) -> Dataset:
        """A streamed source with where a micro-batch ended in it, also where it had nothing new."""
        return replace(
            with_snapshot(read.dataset, read.format.streamed(read.mention, start, end, self._jvm)),
            streamed=True,
        )


def _same_columns(sources: Sequence[Dataset], target: Dataset) -> tuple[Column, ...]:
    """Return the columns of files that became another table's, which finds them by their names."""
    origins = {
        field.name: Origin(key_of(source), field.name, "DIRECT", "IDENTITY")
        for source in sources
        if key_of(source) != key_of(target)
        for field in source.schema
    }
    return tuple(
        Column(field.name, (origins[field.name],))
        for field in target.schema
        if field.name in origins
    )


def _judged(target: Target, snapshot: Snapshot | None) -> Snapshot | None:
    """Return a snapshot that was written, with whether it replaced its whole table.

    Plan and commit must agree. Totals cannot tell the first overwrite of a partition from that of a
    table, and a plan does not know what another writer has added meanwhile.
    """
    if snapshot is None or target.operation == "restore":
        return snapshot
    rows = 0 if target.operation == "truncate" else snapshot.number_of_rows
    replaces = target.whole and snapshot.replaces_table
    return replace(
        snapshot,
        replaces_table=replaces,
        was_empty=snapshot.was_empty and not replaces,
        completes=target.completes,
        number_of_rows=rows,
    )


def _by_read(
    parts: Parts, offsets_of_slots: Sequence[Offsets], log: bool = False
) -> list[Offsets | None]:
    """The offsets of each read: the plan's own, else those given for its source.

    None for a read that is no stream.
    """
    return [_offsets_of(read, offsets_of_slots, log) for read in parts.reads]


def _offsets_of(read: Read, offsets_of_slots: Sequence[Offsets], log: bool) -> Offsets | None:
    own, slot = read.mention.offsets, read.mention.slot
    if own is None:
        return None
    outside = offsets_of_slots[slot] if slot < len(offsets_of_slots) else (None, None)
    return outside if log or own == (None, None) else own


def _marked(statement: Statement, unread: tuple[str, ...]) -> Statement:
    """The statement with the parts that could not be read.

    A multi-insert is reported as its branches.
    """
    if not unread:
        return statement
    branches = tuple(replace(branch, unread=unread) for branch in statement.branches)
    return replace(statement, unread=unread, branches=branches)


def _was_there(target: Target, made_at: int, begun: int) -> bool:
    """Return whether a table is older than a statement; one that was met may be so by little."""
    if target.met:
        return made_at + (999 if made_at % 1000 == 0 else 0) < begun  # Hive keeps seconds
    return made_at < begun - _SHORTLY


def _proven(target: Target, output: Output) -> bool:
    """Return true if its trace proves that a write to an empty place was done."""
    if target.proven_by == "snapshot":
        return bool(output.dataset.snapshots)
    return target.proven_by != "files" or bool(output.statistics.get("fileCount"))
