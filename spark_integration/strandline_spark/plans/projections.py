"""The rows that an Expand makes of each row, where Spark's JSON of a plan leaves them out.

It writes those of SQL's UNPIVOT, and not those of DataFrame.unpivot, whose list is of another
class: there the node itself is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from strandline_spark.jvm.client import JAVA_FAILED, JavaObject
from strandline_spark.plans.tree import Node, is_tree, tree_of

LEFT_OUT = '"projections":null'  # how the JSON of such a node is recognized
_MOST = 5000  # expressions: each takes two round trips
_INSIDE = ("query", "plan")  # where a command keeps its query

Asked = Callable[[], JavaObject]


def fill_projections(root: Node, plan: Asked) -> None:
    """Put into each Expand of a plan's tree what the plan's own node says."""
    for node, node_asked in _nodes(root, plan):
        if node.name == "Expand" and node.fields.get("projections") is None:
            node.fields["projections"] = _projections(node_asked)


def _nodes(root: Node, plan: Asked) -> Iterator[tuple[Node, Asked]]:
    """Each node of a tree with how the plan's own node is got."""
    waiting = [(root, plan)]
    while waiting:
        node, asked = waiting.pop()
        yield node, asked
        waiting += [
            (child, partial(_child, asked, index)) for index, child in enumerate(node.children)
        ]
        for name in _INSIDE:
            if is_tree(node.fields.get(name)):
                node.fields[name] = tree_of(node.fields[name])
                waiting.append((node.fields[name], partial(_field, asked, name)))


def _child(parent: Asked, index: int) -> JavaObject:
    return parent().children().apply(index)


def _field(parent: Asked, name: str) -> JavaObject:
    return getattr(parent(), name)()


def _projections(node_of: Asked) -> list[list[Any]] | None:
    try:
        rows = node_of().projections()
        count, width = int(rows.size()), int(rows.head().size()) if not rows.isEmpty() else 0
        if count * width > _MOST:
            return None
        return [
            [json.loads(row.apply(index).toJSON()) for index in range(width)]
            for row in _each(rows, count)
        ]
    except JAVA_FAILED:
        return None


def _each(sequence: JavaObject, count: int) -> Iterator[JavaObject]:
    return (sequence.apply(index) for index in range(count))
