"""A plan or an expression as nodes, from the rows that the probe writes of it.

Nothing here recurses, so that a plan of any depth can be read.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(slots=True)
class Node:
    """One node: the simple name of its class, its fields by their names, its children.

    A field that is one of the children holds its number only.
    """

    name: str
    fields: dict[str, Any]
    children: list[Node]

    def node(self, field: str) -> Node | None:
        """The tree in one field, or None where the field is absent or holds none."""
        value: Any = self.fields.get(field)
        return value if isinstance(value, Node) else None

    def nodes(self, field: str) -> list[Node]:
        """The trees of a field that holds a list of them."""
        values: Any = self.fields.get(field)
        return [value for value in values or () if isinstance(value, Node)]

    def forget(self) -> None:
        """Keep the name alone.

        After a whole tree was read its thousands of nodes are not needed any more, and
        Python's garbage collector would look at them again and again.
        """
        self.fields, self.children = {}, []

    @property
    def expr_id(self) -> int:
        """The id of an attribute or alias: what Spark resolves names to."""
        return int(self.fields["exprId"])

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def everything(self) -> Iterator[Node]:
        """Yield this node and all others, those in the fields of others too."""
        waiting = deque[Any]([self])
        while waiting:
            value = waiting.popleft()
            if isinstance(value, Node):
                for node in value.walk():
                    yield node
                    waiting += node.fields.values()
            elif isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value


def answers_with_trees(text: str) -> Any:
    """Return what the probe wrote down, with its trees as nodes."""
    shapes_text, _, body = text.partition("\n")
    shapes = [_shape(*shape) for shape in json.loads(shapes_text)]

    def read(value: dict[str, Any]) -> Any:
        if "$tree" in value:
            return _tree(value["$tree"], shapes)
        return _data_type(value["$type"]) if "$type" in value else value

    return json.loads(body, object_hook=read)


def holds_subqueries(text: str) -> bool:
    """Return whether an expression of what the probe wrote down holds a plan."""
    shapes = json.loads(text.partition("\n")[0])
    return any("plan" in fields and ".expressions." in name for _, name, *fields in shapes)


_Shape = tuple[str, tuple[str, ...]]


def _shape(number: int, class_name: str, *fields: str) -> _Shape:
    return class_name.rpartition(".")[2], fields


@lru_cache(maxsize=1000)
def _data_type(text: str) -> Any:
    return json.loads(text)


def _tree(rows: list[list[Any]], shapes: list[_Shape]) -> Node:
    """Rows stand in pre-order: read backwards, each finds its children on the stack."""
    stack: list[Node] = []
    for number, count, *values in reversed(rows):
        name, fields = shapes[number]
        children = [stack.pop() for _ in range(count)]
        stack.append(Node(name, dict(zip(fields, values, strict=True)), children))
    return stack.pop()


def fold(root: Node, combine: Callable[[Node, list[Result]], Result]) -> Result:
    """Combine each node with the results of its children, from the leaves up."""
    results: list[Result] = []
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, ready = waiting.pop()
        if not ready:
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(node.children))
            continue
        first = len(results) - len(node.children)
        below = results[first:]
        del results[first:]
        results.append(combine(node, below))
    return results.pop()
