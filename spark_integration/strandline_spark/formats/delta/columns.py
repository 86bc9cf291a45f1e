"""Delta's own commands: MERGE and UPDATE.

They keep their source, target and assignments in fields instead of children.
"""

from __future__ import annotations

from collections.abc import Iterator

from strandline_spark.columns.assignments import assigned, scope_in
from strandline_spark.columns.expression import CONDITIONAL, FILTER, JOIN, Value
from strandline_spark.columns.expressions import value_of
from strandline_spark.columns.rules import Rule
from strandline_spark.columns.scopes import Scope, Seen, StatementScopes
from strandline_spark.plans.tree import Node

_CLAUSES = ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses")


def _merge(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    below = [scope_in(resolver, node, name) for name in ("source", "target")]
    inner = Seen(resolver, below, context.outer)
    inner.decide([c for c in (node.node("condition"),) if c is not None], JOIN)
    assigned_values: dict[str, list[Value]] = {}
    for clause in _clauses(node):
        inner.decide([c for c in (clause.node("condition"),) if c is not None], CONDITIONAL)
        for action in (child for child in clause.children if child.name == "DeltaMergeAction"):
            assigned_values.setdefault(_target_name(action), []).append(
                value_of(action.children[0], inner)
            )
    return assigned(assigned_values, below[1], inner, grows=True)


def _clauses(node: Node) -> Iterator[Node]:
    for field in _CLAUSES:
        yield from node.nodes(field)


def _target_name(action: Node) -> str:
    return str(action.fields["targetColNameParts"][0])


def _update(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """Expressions by the position of the target's columns."""
    target = scope_in(resolver, node, "target")
    inner = Seen(resolver, [target], context.outer)
    inner.decide([c for c in (node.node("condition"),) if c is not None], FILTER)
    values = [value_of(expression, inner) for expression in node.nodes("updateExpressions")]
    assigned_values = {
        name: [value] for (_, name), value in zip(target.output, values, strict=False)
    }
    return assigned(assigned_values, target, inner)


def _delete(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    inner = Seen(resolver, [scope_in(resolver, node, "target")], context.outer)
    inner.decide([c for c in (node.node("condition"),) if c is not None], FILTER)
    return inner.scope((), {})


COMMANDS: dict[str, Rule] = {
    "MergeIntoCommand": _merge,
    "UpdateCommand": _update,
    "DeleteCommand": _delete,
}
