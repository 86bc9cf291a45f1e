"""The output of a command: a mention of data, and the kind of write.

And the ways in which a format describes its own commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.model.statement import Operation
from strandline_spark.plans.tree import Node


@dataclass(frozen=True, slots=True)
class Write:
    """One target of a statement.

    `new`: the table does not exist before; `unless_there`: if it does, nothing is done. `fills`:
    rows are written too. `batch`: a streaming query's micro-batch. `whole`: everything that the
    table held is replaced; `completes`: by the whole result of a query. `before`: the same table
    under the name that it had until now. `renamed`: columns of it by their old names. `part`: only
    a partition that is not there is written.
    """

    mention: Mention
    operation: Operation
    new: bool = False
    unless_there: bool = False
    fills: bool = True
    gone: str | None = (
        None  # a table that can be asked no more: what was known of it by this name counts
    )
    batch: tuple[str, int] | None = None
    whole: bool = False
    completes: bool = False
    before: Mention | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    part: bool = False


Reader = Callable[[JavaObject, Node, Jvm], list[Write]]


@dataclass(frozen=True, slots=True)
class Like:
    """The command has the methods of one of Spark's own, and is read as that one."""

    command: str


@dataclass(frozen=True, slots=True)
class InPlace:
    """MERGE, UPDATE and DELETE whose target is a plan inside the command.

    A path of methods leads to it.
    """

    operation: Operation
    target: str


Described = Reader | Like | InPlace
ReadBy = Callable[
    [JavaObject, Jvm], Sequence[Mention]
]  # what a command reads that is no plan inside it
