"""The query of a statement that fills its target, and the names of the target's columns."""

from __future__ import annotations

from dataclasses import dataclass

from strandline_spark.columns.commands import COMMANDS, WITHOUT_COLUMNS
from strandline_spark.columns.expression import Value
from strandline_spark.columns.scopes import Scope
from strandline_spark.plans.schemas import is_metadata
from strandline_spark.plans.tree import Node

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
    """A query, and the names of the target's columns."""

    query: Node
    names: tuple[str, ...] | None = None
    by_name: bool = False
    grows: bool = False  # columns that the target does not have are added to it


def filling_of(root: Node) -> Filling | None:
    """The query that fills a statement's target.

    For a statement that only reads, the statement itself.
    """
    if root.name in _WITHOUT_COLUMNS | WITHOUT_COLUMNS:
        return None
    if root.name in COMMANDS:
        return Filling(root)
    if root.name in _ROW_LEVEL and root.children:
        return Filling(root.children[0], _table_columns(root), by_name=True)
    return _filling_of_command(root) if _is_command(root) else Filling(root)


def _filling_of_command(root: Node) -> Filling | None:
    query = next((tree for tree in map(root.node, _QUERIES) if tree is not None), None)
    if query is not None:
        return Filling(query, _names(root))
    if not root.children:
        return None
    by_name = root.fields.get("isByName") is True
    return Filling(root.children[0], _names(root), by_name, grows=by_name)


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
    """Return the names that the command gives the columns, or those of its table."""
    of_view = [str(column["_1"]) for column in root.fields.get("userSpecifiedColumns") or ()]
    names = of_view or root.fields.get("outputColumnNames")
    return tuple(names or _table_columns(root)) or None


def _table_columns(root: Node) -> tuple[str, ...]:
    for field in ("table", "logicalRelation"):
        node = root.node(field)
        if node is not None:
            attributes = node.nodes("output")
            return tuple(str(a.fields["name"]) for a in attributes if not is_metadata(a))
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
