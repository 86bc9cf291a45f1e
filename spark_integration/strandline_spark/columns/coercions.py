"""Nested values that Spark takes apart and builds anew for the type of the target's column.

It casts field by field and element by element, in variables of its own names. The value is still
the column as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from strandline_spark.columns.functions import TRANSPARENT
from strandline_spark.plans.tree import Node

_ITS_OWN = {"element", "key", "value"}  # what Spark calls the variables of such lambdas
_BY_INDEX = ["elementVar", "indexVar"]  # what Delta calls those of its own


def uncoerced(node: Node) -> Node:
    """Return the node that another was built from to change its type.

    The node itself if it does something else.
    """
    rule = _REBUILT.get(node.name)
    return rule(node) or node if rule is not None else node


def _nullable_struct(node: Node) -> Node | None:
    """`IF(s IS NULL, NULL, NAMED_STRUCT('a', s.a, ...))`."""
    condition, null, struct = node.children
    if condition.name != "IsNull" or null.name != "Literal" or null.fields.get("value") is not None:
        return None
    whole = condition.children[0]
    return whole if _struct(struct) == whole else None


def _struct(node: Node) -> Node | None:
    """The struct whose fields are put together again."""
    if node.name != "CreateNamedStruct":
        return None
    fields = [bare(uncoerced(bare(value))) for value in node.children[1::2]]
    if not fields or any(field.name != "GetStructField" for field in fields):
        return None
    whole = fields[0].children[0]
    ordinals = sorted(int(field.fields["ordinal"]) for field in fields)
    again = ordinals == list(range(len(fields))) and all(
        field.children[0] == whole for field in fields
    )
    return whole if again else None


def _array(node: Node) -> Node | None:
    """`TRANSFORM(items, element -> ...)`.

    Delta's is `TRANSFORM(items, (elementVar, indexVar) -> items[indexVar])`.
    """
    items, function = node.children
    body, *variables = function.children
    names, inner = [str(variable.fields.get("name")) for variable in variables], _inner(body)
    if len(names) == 1 and names[0] in _ITS_OWN:
        return items if inner == variables[0] else None
    by_index = names == _BY_INDEX and inner.name == "GetArrayItem"
    return items if by_index and inner.children == [items, variables[1]] else None


def _map(node: Node) -> Node | None:
    """`MAP_FROM_ARRAYS(MAP_KEYS(m), TRANSFORM(MAP_VALUES(m), value -> ...))`."""
    keys, values = (_inner(child) for child in node.children)
    if (keys.name, values.name) != ("MapKeys", "MapValues"):
        return None
    return keys.children[0] if keys.children == values.children else None


def _inner(node: Node) -> Node:
    inside = bare(node)
    return _struct(inside) or bare(uncoerced(inside))


def bare(node: Node) -> Node:
    """A node without the casts and wrappers around it."""
    while node.name == "Cast" or node.name in TRANSPARENT:
        node = node.children[0]
    return node


_REBUILT: Mapping[str, Callable[[Node], Node | None]] = {
    "If": _nullable_struct,
    "ArrayTransform": _array,
    "MapFromArrays": _map,
}
