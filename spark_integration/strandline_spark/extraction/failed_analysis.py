"""The targets of a statement whose analysis failed.

Spark's error often holds the plan as far as it was analysed, or the whole name of the table: they
say which table a name meant at that moment. Else each target is resolved by itself. What the
statement would have read is left out: names of a plan that is not resolved may mean views, CTEs or
tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from strandline_spark.extraction.leaves import DATA_LEAVES, mention_of
from strandline_spark.extraction.spark_writes import new_table
from strandline_spark.extraction.unread import UNREADABLE, unread
from strandline_spark.formats.writes import Write
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm, dotted, optional, simple_name
from strandline_spark.model.names import qualified
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


@dataclass(frozen=True, slots=True)
class Intended:
    """The write that one command was to make; None where its target cannot be found.

    `name`: the target's whole name, where the statement gives it.
    """

    write: Write | None
    name: str | None


def intended_writes(
    plan: JavaObject,
    root: Node,
    error: JavaObject,
    jvm: Jvm,
    faults: list[str],
    current: tuple[str, ...] | None = None,
) -> list[Intended]:
    """Return what a statement would have written; nothing for one that would only have read.

    A target that cannot be found is added to `faults`. `error`: Spark's, if it is known.
    `current`: the catalog and the namespace of that moment, if the session may have others by now.
    """
    commands = list(_commands(plan, root, jvm))
    if current is not None:
        return [
            _intended(command, _in_catalog(command, current, jvm), jvm, faults)
            for command in commands
        ]
    if not commands or error is None:
        return [_intended(command, None, jvm, faults) for command in commands]
    reached = _reached(error)
    if reached is not None:
        analysed = list(_commands(reached, tree_of_plan(reached).root, jvm))
        if len(analysed) == len(commands):
            return [_intended(command, None, jvm, faults) for command in analysed]
    named = _named(error, jvm) if len(commands) == 1 else None
    return [_intended(command, named, jvm, faults) for command in commands]


def _commands(plan: JavaObject, root: Node, jvm: Jvm) -> Iterator[JavaObject]:
    """Yield the commands of a plan: below its CTEs, and each one of a multi-insert."""
    if root.name in _TARGETS:
        yield plan
    elif root.name == "UnresolvedWith":
        yield from _commands(plan.child(), root.children[0], jvm)
    elif root.name == "WithCTE":
        yield from _commands(plan.plan(), root.children[-1], jvm)
    elif root.name == "Union":
        for child, node in zip(jvm.sequence(plan.children()), root.children, strict=True):
            if node.name in _TARGETS:
                yield child


def _in_catalog(command: JavaObject, current: tuple[str, ...], jvm: Jvm) -> JavaObject | None:
    """Return the target of a command by its whole name; None where that is no relation."""
    target = getattr(command, _TARGETS[simple_name(command)][0])()
    while simple_name(target) == "SubqueryAlias":
        target = target.child()
    if simple_name(target) != "UnresolvedRelation":
        return None
    parts = whole_name(jvm.sequence(target.multipartIdentifier()), jvm, current)
    return jvm.session.sessionState().sqlParser().parsePlan(f"TABLE {quoted(parts)}")


def _reached(error: JavaObject) -> JavaObject | None:
    """Return the plan as far as it was analysed when the error was found."""
    try:
        return optional(error.plan())
    except (*JAVA_FAILED, TypeError):  # an error that holds no plan
        return None


def _named(error: JavaObject, jvm: Jvm) -> JavaObject | None:
    """Return the table that an error names by its whole name, as an unresolved relation."""
    try:
        name = error.getMessageParameters().get("tableName")
        parser = jvm.session.sessionState().sqlParser()
        if name is None or parser.parseMultipartIdentifier(name).size() < 3:
            return None
        return parser.parsePlan(f"TABLE {name}")
    except (*JAVA_FAILED, TypeError):
        return None


def _intended(
    command: JavaObject, named: JavaObject | None, jvm: Jvm, faults: list[str]
) -> Intended:
    """Return the write of a command, whose target Spark resolves by itself.

    A name that means no table is an error of Spark's, one that means a view a LookupError.
    """
    kind = simple_name(command)
    method, operation = _TARGETS[kind]
    name = None
    try:
        if kind == "InsertIntoStatement" and bool(command.overwrite()):
            operation = "overwrite"
        target = getattr(command, method)() if named is None else named
        name = _name_of(target, jvm)
        state = jvm.session.sessionState()
        target = state.executePlan(target, getattr(state, "executePlan$default$2")()).analyzed()
        if simple_name(target) == "ResolvedIdentifier":
            mention = new_table(target, command.tableSpec(), ())
            return Intended(Write(mention, operation, new=True), _name_of(target, jvm))
        while simple_name(target) == "SubqueryAlias":
            target = target.child()
        node = tree_of_plan(target).root
        if node.name not in DATA_LEAVES:
            raise LookupError("its name is no table's")
        return Intended(Write(mention_of(target, node, jvm), operation), name)
    except UNREADABLE as error:
        faults.append(unread(f"{UNREAD_OUTPUT} of {kind}", error))
        return Intended(None, name)


def _name_of(target: JavaObject, jvm: Jvm) -> str | None:
    """Return the whole name of a target that is not resolved, or is to be made."""
    while (kind := simple_name(target)) == "SubqueryAlias":
        target = target.child()
    if kind == "ResolvedIdentifier":
        return f"{target.catalog().name()}.{dotted(target.identifier())}"
    if kind == "UnresolvedRelation":
        return qualified(*whole_name(jvm.sequence(target.multipartIdentifier()), jvm))
    if kind == "UnresolvedIdentifier":
        return qualified(*whole_name(jvm.sequence(target.nameParts()), jvm))
    return None


def whole_name(
    parts: list[JavaObject], jvm: Jvm, current: tuple[str, ...] | None = None
) -> list[str]:
    """Return the parts of a table's name with those that the session leaves out.

    `current`: the catalog and the namespace that stand for them, the session's unless given.
    """
    names = [str(part) for part in parts]
    manager = jvm.session.sessionState().catalogManager()
    if len(names) > 1 and _is_catalog(names[0], manager):
        return names
    if current is None:
        current = str(manager.currentCatalog().name()), *map(str, manager.currentNamespace())
    return [*(current if len(names) == 1 else current[:1]), *names]


def quoted(parts: list[str]) -> str:
    """Return a name for SQL, each part in backquotes."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _is_catalog(name: str, manager: JavaObject) -> bool:
    """Return whether a name is a catalog's, also one's that cannot be made."""
    try:
        return bool(manager.isCatalogRegistered(name))
    except JAVA_FAILED:
        return True
