"""The parts of a statement.

Its plan, the datasets it reads and those it writes, each with the format that knows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from strandline_spark.columns.expression import Value
from strandline_spark.extraction.failed_analysis import intended_writes
from strandline_spark.extraction.leaves import mentions_of, read_by_commands
from strandline_spark.extraction.unread import UNREADABLE, unread
from strandline_spark.extraction.writes import writes_of
from strandline_spark.formats.contract import Format
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.registry import formats, identified
from strandline_spark.formats.writes import Write
from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.model.statement import UNREAD_OUTPUT, Dataset, Operation
from strandline_spark.plans.tree import Node
from strandline_spark.plans.tree_source import Tree, tree_of_plan

_REMEMBERED = 1000  # tables
Proof = Literal["snapshot", "files", "part"] | None


@dataclass(frozen=True, slots=True)
class Read:
    """A dataset that is read."""

    mention: Mention
    format: Format
    dataset: Dataset
    queried: Mapping[int, Value] | None = (
        None  # what its columns are made of, where they are not the dataset's own
    )
    news: bool = True  # False: a source that had nothing new in the micro-batch

    @property
    def streams(self) -> bool:
        """True if it is a source of a streaming query."""
        return self.mention.offsets is not None


@dataclass(frozen=True, slots=True)
class Target:
    """A dataset that is written."""

    mention: Mention
    format: Format
    dataset: Dataset
    operation: Operation
    batch: tuple[str, int] | None
    unless_there: bool = False  # it is written only if nothing is there
    proven_by: Proof = None
    whole: bool = False  # it replaces everything that the dataset held
    completes: bool = False  # by the whole result of a streaming query
    before: Dataset | None = None  # as it was called until it was renamed
    renamed: Mapping[str, str] = field(default_factory=dict)  # columns by their old names
    met: bool = False  # an earlier statement of the application mentions it
    part: bool = False  # only a partition that is not there is written

    @property
    def nameless(self) -> bool:
        """True for a place that no catalog knows: only its content tells if it was written."""
        return self.part or (
            self.proven_by is not None
            and self.mention.catalog is None
            and self.mention.catalog_table is None
        )


@dataclass(frozen=True, eq=False)
class Parts:
    """A plan with all that it mentions."""

    plan: JavaObject
    root: Node
    reads: tuple[Read, ...]
    targets: tuple[Target, ...]
    doubtful: bool = False  # it may have found there what it would have made: its end tells
    failed: bool = False  # its analysis failed: the targets are what it would have written
    absent: str | None = None  # the name of such a target of which nothing else is known
    rows: tuple[JavaObject, ...] = ()  # LogicalRDDs
    unread: tuple[str, ...] = ()  # leaves that nothing more is known of, each with the reason


def parts_of(plan: JavaObject, jvm: Jvm, tree: Tree | None = None) -> Parts:
    """Asks the plan, for its tree too where that is not known."""
    tree = tree_of_plan(plan) if tree is None else tree
    reads, rows, faults = list[Read](), list[JavaObject](), list[str]()
    views = dict[int, tuple[str, str] | None]()
    for mention in chain(mentions_of(plan, tree, jvm), read_by_commands(plan, tree.root, jvm)):
        if mention.unread is not None:
            faults.append(mention.unread)
            continue
        if mention.rows is not None:
            rows.append(mention.rows)
            continue
        try:
            view = _view_around(mention, jvm, views, faults)
            reads += _known_reads(mention, view, jvm)
        except UNREADABLE as error:
            faults.append(unread("an input", error))
    targets = targets_of(writes_of(plan, tree.root, jvm, faults), tree.root.name, jvm, faults)
    parts = Parts(
        plan, tree.root, tuple(reads), tuple(targets), rows=tuple(rows), unread=tuple(faults)
    )
    _remember(parts, jvm)
    return parts


def failed_parts_of(
    plan: JavaObject,
    tree: Tree,
    error: JavaObject | None,
    jvm: Jvm,
    current: tuple[str, ...] | None = None,
) -> Parts:
    """Return the targets of a plan that could not be analysed, for Spark's error if it is known.

    `current`: what its names may leave out, where the session may have changed since.
    """
    faults, targets, absent = list[str](), list[Target](), list[str]()
    for intended in intended_writes(plan, tree.root, error, jvm, faults, current):
        known = targets_of([intended.write] if intended.write else [], tree.root.name, jvm, faults)
        if intended.write is not None and not known:
            reason = LookupError("only Spark's analysis knows where it lies")
            faults.append(unread(f"{UNREAD_OUTPUT} of {tree.root.name}", reason))
        if not known and intended.name is not None:
            absent.append(intended.name)
        targets += known
    return Parts(
        plan,
        tree.root,
        (),
        tuple(targets),
        failed=True,
        absent=next(iter(absent), None),
        unread=tuple(faults),
    )


def refused_parts_of(write: Write, jvm: Jvm) -> Parts:
    """Return the target of a DataFrame's write to a path that Spark refused."""
    faults, root = list[str](), Node("Save", {}, [])
    targets = targets_of([write], root.name, jvm, faults)
    if not targets:
        faults.append(unread(f"{UNREAD_OUTPUT} of a write", LookupError("unknown format")))
    return Parts(None, root, (), tuple(targets), failed=True, unread=tuple(faults))


def targets_of(writes: list[Write], kind: str, jvm: Jvm, faults: list[str]) -> list[Target]:
    """Return what writes are to, where a format knows it; what cannot be read joins `faults`."""
    targets = list[Target]()
    for write in writes:
        try:
            target = _target(write, jvm)
        except UNREADABLE as error:
            faults.append(unread(f"{UNREAD_OUTPUT} of {kind}", error))
            continue
        if target is not None:
            targets.append(target)
    return targets


def _known_reads(mention: Mention, view: tuple[str, str] | None, jvm: Jvm) -> list[Read]:
    knowing = identified(mention, jvm)
    if knowing is None:
        return []
    reads = _reads(mention, *knowing, jvm)
    return [replace(read, dataset=replace(read.dataset, through=(view,))) for read in reads]


def _view_around(
    mention: Mention, jvm: Jvm, known: dict[int, tuple[str, str] | None], faults: list[str]
) -> tuple[str, str] | None:
    """Return namespace and name of the innermost known view whose query mentions it.

    A view that cannot be identified joins `faults`, once.
    """
    view = mention.within
    while view is not None:
        if id(view) not in known:
            knowing = None
            try:
                knowing = identified(view, jvm) if view.unread is None else None
            except UNREADABLE as error:
                faults.append(unread("a view around an input", error))
            known[id(view)] = (knowing[1].namespace, knowing[1].name) if knowing else None
        if (view_found := known[id(view)]) is not None:
            return view_found
        view = view.within
    return None


def _remember(parts: Parts, jvm: Jvm) -> None:
    """Remember tables for a DROP that is over before it can be looked at.

    After a RENAME names mean other tables, and with a namespace all its tables may go.
    """
    if "Rename" in parts.root.name or parts.root.name in {"DropNamespace", "DropDatabaseCommand"}:
        jvm.tables.clear()
    named = [(read.format, read.dataset) for read in parts.reads] + [
        (target.format, target.dataset) for target in parts.targets
    ]
    for mention, dataset in named:
        if dataset.table is not None:
            jvm.tables[dataset.table] = mention, dataset
            jvm.tables.move_to_end(dataset.table)
    for target in parts.targets:
        if target.operation == "drop":
            jvm.tables.pop(str(target.dataset.table), None)
    while len(jvm.tables) > _REMEMBERED:
        jvm.tables.popitem(last=False)


def _reads(mention: Mention, format_: Format, dataset: Dataset, jvm: Jvm) -> Iterator[Read]:
    queried = format_.queried(mention, jvm)
    yield Read(mention, format_, dataset, queried)
    columns = mention.columns if queried is None else ()
    for other in format_.others_of(mention, jvm):
        yield Read(replace(mention, columns=columns, offsets=None), format_, other)


def _target(write: Write, jvm: Jvm) -> Target | None:
    new = write.new and write.mention.table is None
    knowing: tuple[Format, Dataset] | None
    if write.gone is not None:
        knowing = jvm.tables.get(write.gone)
    else:
        knowing = _will_know(write.mention, jvm) if new else identified(write.mention, jvm)
    if knowing is None:
        return None
    return Target(
        write.mention,
        *knowing,
        write.operation,
        write.batch,
        write.unless_there,
        _proof(write, knowing[0]),
        write.whole,
        write.completes,
        _dataset_before(write, jvm),
        write.renamed,
        knowing[1].table in jvm.tables,
        write.part,
    )


def _dataset_before(write: Write, jvm: Jvm) -> Dataset | None:
    """Return the renamed dataset, under its old name."""
    knowing = identified(write.before, jvm) if write.before is not None else None
    return knowing[1] if knowing is not None else None


def _proof(write: Write, format_: Format) -> Proof:
    """Return the trace of a write that is done only if nothing is there."""
    if not (write.unless_there and write.fills):
        return None
    if format_.scans_tell:
        return "snapshot"
    if write.part or write.mention.provider == "files":
        return "files"
    in_catalog = write.mention.catalog_table is not None or write.mention.catalog is not None
    return "part" if in_catalog else None  # a nested execution fills a table that was made


def _will_know(mention: Mention, jvm: Jvm) -> tuple[Format, Dataset] | None:
    for format_ in formats():
        dataset = format_.named(mention, jvm)
        if dataset is not None:
            return format_, dataset
    return None
