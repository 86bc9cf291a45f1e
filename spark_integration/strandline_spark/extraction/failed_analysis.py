"""The targets of a statement whose analysis failed, by the names that its parsed plan gives.

Nothing of such a plan is resolved, so each target's name is resolved by itself. What it would have
read is left out: names of a plan that is not resolved may mean views, CTEs or tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from strandline_spark.extraction.leaves import DATA_LEAVES, mention_of
from strandline_spark.extraction.spark_writes import new_table
from strandline_spark.extraction.unread import UNREADABLE, unread
from strandline_spark.formats.writes import Write
from strandline_spark.jvm.client import JavaObject, Jvm, simple_name
from strandline_spark.model.statement import UNREAD_OUTPUT, Operation
from strandline_spark.plans.tree import Node
from strandline_spark.plans.tree_source import tree_of_plan

# By the name of the command: the method that gives its target, and the kind of write.
_TARGETS: Mapping[str, tuple[str, Operation]] = {
    "InsertIntoStatement": ("table", "append"),
    "AppendData": ("table", "append"),
    "OverwriteByExpression": ("table", "overwrite"),
    "OverwritePartitionsDynamic": ("table", "overwrite"),
    "MergeIntoTable": ("targetTable", "merge"),
    "UpdateTable": ("table", "update"),
    "DeleteFromTable": ("table", "delete"),
    "CreateTableAsSelect": ("name", "create"),
    "ReplaceTableAsSelect": ("name", "replace"),
}


def intended_writes(plan: JavaObject, root: Node, jvm: Jvm, faults: list[str]) -> list[Write]:
    """Return what a statement would have written; nothing for one that would only have read.

    A target that cannot be found is added to `faults`.
    """
    writes = []
    for command in _commands(plan, root, jvm):
        name = simple_name(command)
        try:
            writes.append(_write(command, name, jvm))
        except UNREADABLE as error:
            faults.append(unread(f"{UNREAD_OUTPUT} of {name}", error))
    return writes


def _commands(plan: JavaObject, root: Node, jvm: Jvm) -> Iterator[JavaObject]:
    """Yield the commands of a plan: below its CTEs, and each one of a multi-insert."""
    if root.name in _TARGETS:
        yield plan
    elif root.name == "UnresolvedWith":
        yield from _commands(plan.child(), root.children[0], jvm)
    elif root.name == "Union":
        for child, node in zip(jvm.sequence(plan.children()), root.children, strict=True):
            if node.name in _TARGETS:
                yield child


def _write(command: JavaObject, name: str, jvm: Jvm) -> Write:
    """Return the write of a command, whose target Spark resolves by itself.

    A name that means no table is an error of Spark's, one that means a view a LookupError.
    """
    method, operation = _TARGETS[name]
    if name == "InsertIntoStatement" and bool(command.overwrite()):
        operation = "overwrite"
    state = jvm.session.sessionState()
    mode = getattr(state, "executePlan$default$2")()
    target = state.executePlan(getattr(command, method)(), mode).analyzed()
    if simple_name(target) == "ResolvedIdentifier":
        return Write(new_table(target, command.tableSpec(), ()), operation, new=True)
    while simple_name(target) == "SubqueryAlias":
        target = target.child()
    node = tree_of_plan(target, jvm).root
    if node.name not in DATA_LEAVES:
        raise LookupError("its name is no table's")
    return Write(mention_of(target, node, jvm), operation)
