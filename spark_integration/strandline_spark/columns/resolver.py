"""Resolves a plan from its leaves up: what each node's output is made of.

Each node sees only what its children give it, by the ids of their columns, because a UNION uses its
first child's ids again. Steps that run code of the user over whole rows end the trail: they are
named, and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline_spark.columns.commands import COMMANDS
from strandline_spark.columns.expression import Value, constant
from strandline_spark.columns.rules import RULES, otherwise
from strandline_spark.columns.scopes import Earlier, Scope, Seen
from strandline_spark.plans.tree import Node, fold


class Resolver:
    """Resolves the plans of one statement.

    `leaves` says what an id of a leaf stands for: a column of a table, or of several that are read
    as one. `earlier` knows what earlier statements made (a checkpoint, the rows of a foreachBatch).
    """

    def __init__(
        self,
        leaves: Mapping[int, Value],
        earlier: Earlier,
        rewrites: bool = False,
    ) -> None:
        self.rewrites = rewrites  # the statement changes rows of its own target
        self._leaves = leaves
        self._earlier = earlier
        self._done: dict[int, Scope] = {}
        self._loops: dict[int, Node] = {}
        self._shared: dict[int, Scope] = {}

    def scope_of(self, plan: Node, outer: Mapping[int, Value] | None = None) -> Scope:
        """Return what a plan's root gives; `outer`.

        What a correlated subquery sees of the query around it.
        """
        self._loops.update(
            {int(n.fields["id"]): n.children[0] for n in plan.walk() if n.name == "UnionLoop"}
        )
        return fold(plan, lambda node, below: self._resolved(node, below, outer or {}))

    def _resolved(self, node: Node, below: list[Scope], outer: Mapping[int, Value]) -> Scope:
        context = Seen(self, below, outer)
        scope = (RULES.get(node.name) or COMMANDS.get(node.name, otherwise))(self, node, context)
        self._done[id(node)] = scope
        return scope

    # What the rules ask of the statement.

    def leaf(self, expr_id: int, name: str) -> Value:
        """The value of a leaf's column."""
        return self._leaves.get(expr_id) or self._earlier.value(expr_id) or constant(name)

    def rows_of(self, ids: tuple[int, ...]) -> Scope | None:
        """Return the deciding and the opaque columns of the earlier statement with this output."""
        return self._earlier.output(ids)

    def share(self, key: int, scope: Scope) -> None:
        """Remember a common table expression."""
        self._shared[key] = scope

    def shared(self, key: int) -> Scope:
        """A common table expression."""
        return self._shared.get(key, Scope())

    def anchor(self, loop: int) -> Scope:
        """The first branch of a recursive query, which is resolved before the recursive one."""
        return self._done.get(id(self._loops.get(loop)), Scope())
