"""A plan or expression as Spark's `toJSON` gives it, turned into nodes.

Spark writes a tree as a flat list in pre-order, each entry with its number of children; plans
inside expressions and commands are lists inside the entries. Nothing here recurses, so that a plan
of any depth can be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(slots=True)
class Node:
    """One node: the simple name of its class, its fields as Spark wrote them, its children."""

    name: str
    fields: dict[str, Any]
    children: list[Node]

    def node(self, field: str) -> Node | None:
        """The tree in one field, or None where the field is absent or holds none."""
        value: Any = self.fields.get(field)
        return tree_of(value) if is_tree(value) else None

    def nodes(self, field: str) -> list[Node]:
        """The trees of a field that holds a list of them."""
        return [tree_of(value) for value in self.fields.get(field) or () if is_tree(value)]

    def forget(self) -> None:
        """Keep the name alone.

        After a whole tree was read its thousands of nodes are not needed any more, and
        Python's garbage collector would look at them again and again.
        """
        self.fields, self.children = {}, []

    @property
    def expr_id(self) -> int:
        """The id of an attribute or alias: what Spark resolves names to."""
        return int(self.fields["exprId"]["id"])

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


def is_tree(value: object) -> bool:
    """Return whether a field's value is a tree.

    One that is read already, or a list of entries that name their class.
    """
    if isinstance(value, Node):
        return True
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and "num-children" in value[0]
    )


def tree_of(flat: Node | Sequence[dict[str, Any]]) -> Node:
    """The tree of a list in pre-order.

    Reading it backwards, each entry finds its children on the stack.
    """
    if isinstance(flat, Node):
        return flat
    stack: list[Node] = []
    for entry in reversed(flat):
        children = [stack.pop() for _ in range(entry["num-children"])]
        stack.append(Node(entry["class"].rpartition(".")[2], entry, children))
    return stack.pop()


def parsed(text: str) -> Node:
    """The tree of a plan's JSON."""
    return tree_of(json.loads(text))


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
