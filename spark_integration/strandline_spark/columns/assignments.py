"""Assignments of values to a target's columns.

Table formats' own MERGE and UPDATE commands hold them.
"""

from __future__ import annotations

from strandline_spark.columns.expression import CONDITIONAL, JOIN, Value
from strandline_spark.columns.expressions import value_of
from strandline_spark.columns.rules import each_once
from strandline_spark.columns.scopes import Scope, Seen, StatementScopes
from strandline_spark.plans.tree import Node

Assigned = dict[str, list[Value]]
_ACTIONS = ("matchedActions", "notMatchedActions", "notMatchedBySourceActions")


def scope_in(resolver: StatementScopes, node: Node, field: str) -> Scope:
    """The scope of a plan that a command keeps in a field."""
    plan = node.node(field)
    return resolver.scope_of(plan) if plan is not None else Scope()


def assigned(assignments: Assigned, target: Scope, inner: Seen, *, grows: bool = False) -> Scope:
    """Return the scope of a command that sets columns of its target.

    Columns that the target does not have come last, if the command adds them (`grows`).
    """
    values: Assigned = {}
    for name, own in assignments.items():
        values.setdefault(name.lower(), []).extend(own)
    output = [(expr_id, name) for expr_id, name in target.output if name.lower() in values]
    if grows:
        there = {name.lower() for _, name in target.output}
        added = {name.lower(): name for name in assignments if name.lower() not in there}
        output += [(-number, name) for number, name in enumerate(added.values(), 1)]
    return inner.scope(
        output, {expr_id: each_once(values[name.lower()]) for expr_id, name in output}
    )


def assign(assignments: list[Node], assigned_values: Assigned, inner: Seen) -> None:
    """Add the values of Spark's own assignments, by the names of their columns.

    A field of a struct that is set is a part of its column.
    """
    for assignment in assignments:
        column, value = assignment.children
        while column.children:
            column = column.children[0]
        assigned_values.setdefault(str(column.fields["name"]), []).append(value_of(value, inner))


def merged(node: Node, source: Scope, target: Scope, inner: Seen) -> Scope:
    """The scope of a MERGE with the fields of Spark's own.

    Its condition, and actions of assignments.
    """
    inner.decide([c for c in (node.node("mergeCondition"),) if c is not None], JOIN)
    assigned_values: Assigned = {}
    for action in (action for field in _ACTIONS for action in node.nodes(field)):
        inner.decide(
            [child for child in action.children if child.name != "Assignment"], CONDITIONAL
        )
        assign(
            [child for child in action.children if child.name == "Assignment"],
            assigned_values,
            inner,
        )
    return assigned(assigned_values, target, inner)
