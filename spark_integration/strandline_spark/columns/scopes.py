"""The columns that a node of a plan gives to the one above it, and that its expressions can see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from strandline_spark.columns.expression import Ref, Value, constant, demoted, listed, merged
from strandline_spark.columns.expressions import value_of
from strandline_spark.plans.tree import Node

Indirect = Mapping[tuple[Ref, str], bool]


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that a node gives to the one above it.

    Its output in order, and what decided which rows there are.
    """

    output: tuple[tuple[int, str], ...] = ()
    values: Mapping[int, Value] = field(default_factory=dict)
    indirect: Indirect = field(default_factory=dict)
    opaque: tuple[str, ...] = ()

    def column_values(self) -> list[tuple[str, Value]]:
        """Name and value of each column of the output."""
        return [(name, self.values.get(expr_id, constant(name))) for expr_id, name in self.output]


class Earlier(Protocol):
    """The memory of earlier statements: see `plans.memory`."""

    def value(self, expr_id: int) -> Value | None:
        """Return the sources of an id."""

    def output(self, ids: tuple[int, ...]) -> Scope | None:
        """Return the deciding and the opaque columns of the statement whose output this is."""


class StatementScopes(Protocol):
    """The questions of a node to its statement; see `resolver`."""

    rewrites: bool

    def scope_of(self, plan: Node, outer: Mapping[int, Value] | None = None) -> Scope:
        """Return the columns of a plan's root."""

    def leaf(self, expr_id: int, name: str) -> Value:
        """The value of a leaf's column."""

    def rows_of(self, ids: tuple[int, ...]) -> Scope | None:
        """Return the deciding and the opaque columns of the earlier statement with this output."""

    def share(self, key: int, scope: Scope) -> None:
        """Remember a common table expression."""

    def shared(self, key: int) -> Scope:
        """A common table expression."""

    def anchor(self, loop: int) -> Scope:
        """The first branch of a recursive query."""


class Seen:
    """The columns that an expression of a node can see.

    The columns of its children, and of the query around a subquery.
    """

    def __init__(
        self, resolver: StatementScopes, below: Sequence[Scope], outer: Mapping[int, Value]
    ) -> None:
        self.resolver = resolver
        self.below = below
        self.outer = outer
        self.values: Mapping[int, Value] = _joined(below)
        self.indirect: dict[tuple[Ref, str], bool] = {}
        self.opaque: list[str] = []
        for scope in below:
            self.indirect.update(scope.indirect)
            self.opaque += scope.opaque

    def value(self, attribute: Node) -> Value:
        """Return the sources of an attribute; its name if nothing in reach defines it."""
        value_found = self.values.get(attribute.expr_id) or self.outer.get(attribute.expr_id)
        return value_found or constant(str(attribute.fields["name"]))

    def subquery(self, expression: Node) -> Value:
        """Return the value of a subquery: its column, or all of its columns."""
        scope = self.subquery_scope(expression)
        if expression.name == "Exists":  # its rows decide; what they hold does not matter
            return constant("EXISTS(...)")
        columns = [value for _, value in scope.column_values()]
        if len(columns) > 1 and expression.name == "ListQuery":
            return (listed([merged(value) for value in columns]),)
        return columns[0] if columns else constant("NULL")

    def subquery_scope(self, expression: Node) -> Scope:
        """A subquery's plan, resolved with what surrounds it in sight.

        What decided its rows decides here too.
        """
        plan = expression.node("plan")
        if plan is None:
            return Scope()
        scope = self.resolver.scope_of(plan, {**self.outer, **self.values})
        self.indirect.update(scope.indirect)
        self.opaque += scope.opaque
        return scope

    def decide(self, expressions: Iterable[Node], subtype: str) -> None:
        """Note that these expressions decide which rows there are."""
        for expression in expressions:
            self.indirect.update(demoted(value_of(expression, self), lambda _: subtype))

    def scope(self, output: Sequence[tuple[int, str]], values: Mapping[int, Value]) -> Scope:
        """The node's scope, with all that was noted on the way."""
        return Scope(tuple(output), values, self.indirect, tuple(dict.fromkeys(self.opaque)))

    def through(self) -> Scope:
        """The scope of a node that gives what its children give."""
        return self.scope([column for scope in self.below for column in scope.output], self.values)


def _joined(below: Sequence[Scope]) -> Mapping[int, Value]:
    if len(below) == 1:
        return below[0].values
    return {key: value for scope in below for key, value in scope.values.items()}
