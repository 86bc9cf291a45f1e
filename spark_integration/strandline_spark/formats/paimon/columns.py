"""Paimon's own commands.

Like Delta's they keep source and target in fields, but their assignments are Spark's.
"""

from __future__ import annotations

from strandline_spark.columns.assignments import Assigned, assign, assigned, merged, scope_in
from strandline_spark.columns.expression import FILTER
from strandline_spark.columns.rules import Rule
from strandline_spark.columns.scopes import Scope, Seen, StatementScopes
from strandline_spark.plans.tree import Node


def _merge(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    source, target = (scope_in(resolver, node, name) for name in ("sourceTable", "targetTable"))
    return merged(node, source, target, Seen(resolver, [source, target], context.outer))


def _update(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    inner = _changing(resolver, node, context)
    assigned_values: Assigned = {}
    assign(node.nodes("assignments"), assigned_values, inner)
    return assigned(assigned_values, inner.below[0], inner)


def _delete(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    return _changing(resolver, node, context).scope((), {})


def _changing(resolver: StatementScopes, node: Node, context: Seen) -> Seen:
    inner = Seen(resolver, [scope_in(resolver, node, "relation")], context.outer)
    inner.decide([c for c in (node.node("condition"),) if c is not None], FILTER)
    return inner


COMMANDS: dict[str, Rule] = {
    "MergeIntoPaimonTable": _merge,
    "UpdatePaimonTableCommand": _update,
    "DeleteFromPaimonTableCommand": _delete,
}
