"""Tells casts that the user wrote from those that Spark added.

The JSON of a plan does not say, so the JVM is asked for Spark's own mark on the expression. That is
done one cast at a time, and only for casts that a transform would show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm
from strandline_spark.plans.tree import Node, is_tree, tree_of

_FIELDS = (
    *(
        "projectList",
        "aggregateExpressions",
        "windowExpressions",
        "generator",
        "right",
        "projections",
    ),
    *("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions"),
    *("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses"),  # Delta's
)
_MOST = 300  # casts that are asked for in one plan: each takes five round trips


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an expression.

    The subquery its plan is of, the node's path, the field, indexes in it, place in the tree.
    """

    subquery: Place | None
    path: tuple[int, ...]
    field: str
    indexes: tuple[int, ...]
    inside: int


class WrittenCasts:
    """Asks for the casts of one plan."""

    def __init__(self, plan: Callable[[], JavaObject], root: Node, jvm: Jvm) -> None:
        self._plan = plan  # asked for when the first cast is
        self._jvm = jvm
        self._root = root
        self._nodes: dict[tuple[Place | None, tuple[int, ...]], JavaObject] = {}
        self._asked = 0

    def __call__(self, cast: Node) -> str | None:
        """CAST or TRY_CAST as the user wrote it, None for a cast of Spark's own."""
        if "written" in cast.fields:
            return _word(cast.fields["mode"]) if cast.fields["written"] else None
        place = self._places.get(id(cast.fields))
        if place is None or self._asked >= _MOST:
            return None
        self._asked += 1
        try:
            return self._written(place)
        except JAVA_FAILED:
            return None

    @cached_property
    def _places(self) -> dict[int, Place]:
        return dict(_places(self._root))

    def _written(self, place: Place) -> str | None:
        expression = self._expression(place)
        if not expression.getTagValue(self._jvm.written_cast).isDefined():
            return None
        return _word(str(expression.evalMode().toString()))

    def _expression(self, place: Place) -> JavaObject:
        value = getattr(self._node(place.subquery, place.path), place.field)()
        for index in (*place.indexes, place.inside):
            value = value.apply(index)
        return value

    def _node(self, subquery: Place | None, path: tuple[int, ...]) -> JavaObject:
        if (subquery, path) not in self._nodes:
            self._nodes[subquery, path] = self._found(subquery, path)
        return self._nodes[subquery, path]

    def _found(self, subquery: Place | None, path: tuple[int, ...]) -> JavaObject:
        if path:
            return self._node(subquery, path[:-1]).children().apply(path[-1])
        return self._plan() if subquery is None else self._expression(subquery).plan()


def _word(mode: str) -> str:
    return "TRY_CAST" if mode == "TRY" else "CAST"


def _places(root: Node, subquery: Place | None = None) -> Iterator[tuple[int, Place]]:
    waiting: list[tuple[Node, tuple[int, ...]]] = [(root, ())]
    while waiting:
        node, path = waiting.pop()
        for field in _FIELDS:
            for indexes, tree in _trees(node.fields.get(field)):
                for inside, inner in enumerate(tree_of(tree).walk()):
                    yield from _in_expression(inner, Place(subquery, path, field, indexes, inside))
        waiting.extend((child, (*path, index)) for index, child in enumerate(node.children))


def _trees(value: Any, indexes: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if is_tree(value):
        yield indexes, value
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _trees(inner, (*indexes, index))


def _in_expression(node: Node, place: Place) -> Iterator[tuple[int, Place]]:
    if node.name == "Cast":
        yield id(node.fields), place
    plan = node.node("plan")
    if plan is not None:
        yield from _places(plan, place)
