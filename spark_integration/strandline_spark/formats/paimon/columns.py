"""Paimon's own commands: like Delta's they keep source and target in fields, but their assignments are Spark's."""

from __future__ import annotations

from strandline_spark.columns.expression import CONDITIONAL, FILTER, JOIN, Value
from strandline_spark.columns.expressions import value_of
from strandline_spark.columns.rules import Rule
from strandline_spark.columns.scopes import Scope, Seen, Statement
from strandline_spark.formats.delta.columns import assigned, scope_in
from strandline_spark.plans.tree import Node

_ACTIONS = ("matchedActions", "notMatchedActions", "notMatchedBySourceActions")


def _merge(resolver: Statement, node: Node, seen: Seen) -> Scope:
    below = [scope_in(resolver, node, name) for name in ("sourceTable", "targetTable")]
    inner = Seen(resolver, below, seen.outer)
    inner.decide([c for c in (node.node("mergeCondition"),) if c is not None], JOIN)
    made: dict[str, list[Value]] = {}
    for action in (action for field in _ACTIONS for action in node.nodes(field)):
        inner.decide([child for child in action.children if child.name != "Assignment"], CONDITIONAL)
        _assign([child for child in action.children if child.name == "Assignment"], made, inner)
    return assigned(made, below[1], inner)


def _update(resolver: Statement, node: Node, seen: Seen) -> Scope:
    inner = _changing(resolver, node, seen)
    made: dict[str, list[Value]] = {}
    _assign(node.nodes("assignments"), made, inner)
    return assigned(made, inner.below[0], inner)


def _delete(resolver: Statement, node: Node, seen: Seen) -> Scope:
    return _changing(resolver, node, seen).scope((), {})


def _changing(resolver: Statement, node: Node, seen: Seen) -> Seen:
    inner = Seen(resolver, [scope_in(resolver, node, "relation")], seen.outer)
    inner.decide([c for c in (node.node("condition"),) if c is not None], FILTER)
    return inner


def _assign(assignments: list[Node], made: dict[str, list[Value]], inner: Seen) -> None:
    for assignment in assignments:
        column, value = assignment.children
        made.setdefault(str(column.fields["name"]), []).append(value_of(value, inner))


COMMANDS: dict[str, Rule] = {
    "MergeIntoPaimonTable": _merge,
    "UpdatePaimonTableCommand": _update,
    "DeleteFromPaimonTableCommand": _delete,
}
