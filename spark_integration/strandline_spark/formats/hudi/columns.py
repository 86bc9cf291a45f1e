"""Columns of Hudi's own commands.

They keep Spark's MERGE and UPDATE as they were analysed, in a field.

The rows that an UPDATE or DELETE writes come as their query, which also carries Hudi's own columns.
"""

from __future__ import annotations

from strandline_spark.columns.assignments import Assigned, assign, assigned, merged
from strandline_spark.columns.expression import FILTER
from strandline_spark.columns.rules import Rule
from strandline_spark.columns.scopes import Scope, Seen, StatementScopes
from strandline_spark.plans.tree import Node


def _merge(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    merge = node.node("mergeInto")
    if merge is None:
        return Scope()
    target, source = (resolver.scope_of(child) for child in merge.children)
    return merged(merge, source, target, Seen(resolver, [source, target], context.outer))


def _update(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    update = node.node("ut")
    if update is None:
        return Scope()
    target = resolver.scope_of(update.children[0])
    inner = Seen(resolver, [target], context.outer)
    inner.decide([c for c in (update.node("condition"),) if c is not None], FILTER)
    assigned_values: Assigned = {}
    assign(update.nodes("assignments"), assigned_values, inner)
    return assigned(assigned_values, target, inner)


def _delete(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """Return what decides which rows go is in its query: a filter over the table."""
    return Seen(
        resolver, [resolver.scope_of(child) for child in node.children], context.outer
    ).scope((), {})


COMMANDS: dict[str, Rule] = {
    "MergeIntoHoodieTableCommand": _merge,
    "UpdateHoodieTableCommand": _update,
    "DeleteHoodieTableCommand": _delete,
}
