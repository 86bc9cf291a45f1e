"""Common table expressions that a statement defines and never uses.

Spark keeps them in the analysed plan, reads none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from strandline_spark.plans.tree import Node

_DEFINITION, _REFERENCE = "CTERelationDef", "cteId"


def unused_nodes(root: Node) -> frozenset[int]:
    """Return the nodes (by their `id`) of definitions that nothing refers to.

    What refers to them may be unused itself.
    """
    definitions = {int(node.fields["id"]): node for node in root.walk() if node.name == _DEFINITION}
    if not definitions:
        return frozenset()
    used = _used(root, definitions)
    unused = [node for key, node in definitions.items() if key not in used]
    return frozenset(id(node) for definition in unused for node in definition.walk())


def _used(root: Node, definitions: Mapping[int, Node]) -> set[int]:
    """The definitions that the statement refers to, and those that these refer to."""
    used, waiting = set[int](), [root]
    while waiting:
        names = set(_references(waiting.pop())) - used
        used |= names
        waiting += [definitions[key] for key in names if key in definitions]
    return used


def _references(start: Node) -> Iterator[int]:
    """Yield the references in a tree, in subqueries too, without the definitions below it."""
    waiting: list[Any] = [start]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Node):
            if value.name == _DEFINITION and value is not start:
                continue
            waiting += value.children
            value = value.fields
        if isinstance(value, dict):
            if _REFERENCE in value:
                yield int(value[_REFERENCE])
            value = list(value.values())
        if isinstance(value, list):
            waiting += value
