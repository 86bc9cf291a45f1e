"""The parts of a statement: its plan, the datasets it reads and those it writes, each with the format that knows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from strandline_spark.formats import Format, formats, known
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm import JavaObject, Jvm
from strandline_spark.plans.mentions import mentions_of
from strandline_spark.plans.roots import Tree, tree_of_plan
from strandline_spark.plans.tree import Node
from strandline_spark.plans.writes import Write, writes_of
from strandline_spark.statement import Dataset, Operation


@dataclass(frozen=True, slots=True)
class Read:
    """A dataset that is read."""

    mention: Mention
    format: Format
    dataset: Dataset

    @property
    def streams(self) -> bool:
        """Whether it is a source of a streaming query."""
        return self.mention.offsets is not None


@dataclass(frozen=True, slots=True)
class Target:
    """A dataset that is written."""

    mention: Mention
    format: Format
    dataset: Dataset
    operation: Operation
    batch: tuple[str, int] | None
    unless_there: bool = False  # it is written only if the table is not there


@dataclass(frozen=True, eq=False)
class Parts:
    """A plan with all that it mentions."""

    plan: JavaObject
    root: Node
    reads: tuple[Read, ...]
    targets: tuple[Target, ...]


def parts_of(plan: JavaObject, jvm: Jvm, tree: Tree | None = None) -> Parts:
    """Asks the plan, for its tree too where that is not known."""
    tree = tree_of_plan(plan, jvm) if tree is None else tree
    found = ((mention, known(mention, jvm)) for mention in mentions_of(plan, tree, jvm))
    reads = [read for mention, knowing in found if knowing is not None for read in _reads(mention, *knowing, jvm)]
    targets = (_target(write, jvm) for write in writes_of(plan, tree.root, jvm))
    return Parts(plan, tree.root, tuple(reads), tuple(target for target in targets if target is not None))


def _reads(mention: Mention, one: Format, dataset: Dataset, jvm: Jvm) -> Iterator[Read]:
    yield Read(mention, one, dataset)
    for other in one.others_of(mention, jvm):
        yield Read(replace(mention, columns=(), offsets=None), one, other)


def _target(write: Write, jvm: Jvm) -> Target | None:
    new = write.new and write.mention.table is None
    knowing = _will_know(write.mention, jvm) if new else known(write.mention, jvm)
    if knowing is None:
        return None
    return Target(write.mention, *knowing, write.operation, write.batch, write.unless_there)


def _will_know(mention: Mention, jvm: Jvm) -> tuple[Format, Dataset] | None:
    for one in formats():
        dataset = one.named(mention, jvm)
        if dataset is not None:
            return one, dataset
    return None
