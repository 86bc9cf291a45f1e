"""The query of a statement that fills its target, and the names of the target's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline_spark.columns.commands import COMMANDS, WITHOUT_COLUMNS
from strandline_spark.columns.expression import Value
from strandline_spark.columns.scopes import Scope
from strandline_spark.plans.schemas import is_metadata
from strandline_spark.plans.tree import Node, is_tree

_ROW_LEVEL = {"ReplaceData", "WriteDelta"}
_WITHOUT_COLUMNS = {
    "DeleteFromTable",
    "DropTable",
    "TruncateTable",
    "CreateTable",
    "ReplaceTable",
    "LoadDataCommand",
    "AlterTableAddPartitionCommand",
    "AlterTableSetLocationCommand",
}
_QUERIES = ("query", "plan")


@dataclass(frozen=True, slots=True)
class Filling:
    """A query, the field of the command that holds it (None.

    The root itself, or its only child), the target's names.
    """

    query: Node
    field: str | None
    names: tuple[str, ...] | None = None
    by_name: bool = False
    child: bool = False
    grows: bool = False  # columns that the target does not have are added to it


def filling_of(root: Node, named: Sequence[str] = ()) -> Filling | None:
    """The query that fills a statement's target.

    For a statement that only reads, the statement itself.

    `named`: the names that the statement itself gives the columns, where the plan's JSON has lost
    them.
    """
    if root.name in _WITHOUT_COLUMNS | WITHOUT_COLUMNS:
        return None
    if root.name in COMMANDS:
        return Filling(root, None)
    if root.name in _ROW_LEVEL and root.children:
        return Filling(root.children[0], None, _table_columns(root), by_name=True, child=True)
    return _filling_of_command(root, named) if _is_command(root) else Filling(root, None)


def _filling_of_command(root: Node, named: Sequence[str]) -> Filling | None:
    field = next((name for name in _QUERIES if is_tree(root.fields.get(name))), None)
    if field is not None:
        query = root.node(field)
        return Filling(query, field, tuple(named) or _names(root)) if query is not None else None
    by_name = root.fields.get("isByName") is True
    return (
        Filling(root.children[0], None, _names(root), by_name, child=True, grows=by_name)
        if root.children
        else None
    )


def _is_command(root: Node) -> bool:
    name = root.name
    writes = name in {
        "AppendData",
        "OverwriteByExpression",
        "OverwritePartitionsDynamic",
        "CacheTableAsSelect",
    }
    return (
        writes
        or name.endswith(("Command", "AsSelect"))
        or name.startswith(("Insert", "WriteTo", "Create", "Save"))
    )


def _names(root: Node) -> tuple[str, ...] | None:
    for names in (_listed(root.fields.get("outputColumnNames")), _table_columns(root)):
        if names:
            return names
    return None


def _listed(value: object) -> tuple[str, ...]:
    """`[a, b]` as a list, or as Spark's text of one."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    if isinstance(value, str) and value.startswith("["):
        return tuple(name.strip() for name in value[1:-1].split(","))
    return ()


def _table_columns(root: Node) -> tuple[str, ...]:
    for field in ("table", "logicalRelation"):
        node = root.node(field)
        if node is not None:
            attributes = node.nodes("output")
            return tuple(str(a.fields["name"]) for a in attributes if not is_metadata(a.fields))
    return ()


def columns_in(filling: Filling, scope: Scope) -> list[tuple[str, Value]]:
    """Name and value of each column of the target."""
    given = scope.column_values()
    if filling.names is None:
        return given
    if filling.by_name:
        values = {name.lower(): value for name, value in given}
        known = [(name, values[name.lower()]) for name in filling.names if name.lower() in values]
        there = {name.lower() for name in filling.names}
        added = [(name, value) for name, value in given if name.lower() not in there]
        return [*known, *added] if filling.grows else known
    if len(filling.names) != len(given):
        return given
    return [(name, value) for name, (_, value) in zip(filling.names, given, strict=True)]
