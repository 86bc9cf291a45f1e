"""Tells casts that the user wrote from those that Spark added.

The JSON of a plan does not say, so Spark's own mark on the expression is asked for, in the JVM, one cast at a time and
only for casts that a transform would show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from py4j.protocol import Py4JError

from strandline_spark.jvm import JavaObject, Jvm
from strandline_spark.plans.tree import Node, is_tree

_FIELDS = ("projectList", "aggregateExpressions", "windowExpressions")
_MOST = 300  # casts that are asked for in one plan: each takes five round trips

Place = tuple[tuple[int, ...], str, int, int]  # path of the node, field, index in it, place in the expression


class WrittenCasts:
    """Asks for the casts of one plan."""

    def __init__(self, plan: Callable[[], JavaObject], root: Node, jvm: Jvm) -> None:
        self._plan = plan  # asked for when the first cast is
        self._jvm = jvm
        self._places = dict(_places(root))
        self._nodes: dict[tuple[int, ...], JavaObject] = {}
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
        except Py4JError:
            return None

    def _written(self, place: Place) -> str | None:
        path, field, index, inside = place
        expression = getattr(self._node(path), field)().apply(index).apply(inside)
        if not expression.getTagValue(self._jvm.written_cast).isDefined():
            return None
        return _word(str(expression.evalMode().toString()))

    def _node(self, path: tuple[int, ...]) -> JavaObject:
        if path not in self._nodes:
            self._nodes[path] = self._node(path[:-1]).children().apply(path[-1]) if path else self._plan()
        return self._nodes[path]


def _word(mode: str) -> str:
    return "TRY_CAST" if mode == "TRY" else "CAST"


def _places(root: Node) -> Iterator[tuple[int, Place]]:
    waiting: list[tuple[Node, tuple[int, ...]]] = [(root, ())]
    while waiting:
        node, path = waiting.pop()
        for field in _FIELDS:
            yield from _in_field(node.fields.get(field), path, field)
        waiting.extend((child, (*path, index)) for index, child in enumerate(node.children))


def _in_field(value: Any, path: tuple[int, ...], field: str) -> Iterator[tuple[int, Place]]:
    for index, tree in enumerate(value or ()):
        if isinstance(tree, Node) or not is_tree(tree):
            continue
        for inside, entry in enumerate(tree):
            if entry["class"].endswith(".Cast"):
                yield id(entry), (path, field, index, inside)
