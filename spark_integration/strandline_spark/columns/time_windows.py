"""WINDOW and SESSION_WINDOW.

Spark replaces them by a struct of the arithmetic that finds a row's window.
"""

from __future__ import annotations

from collections.abc import Iterator

from strandline_spark.columns.coercions import bare
from strandline_spark.plans.tree import Node

_UNITS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


def unfolded(node: Node) -> Node:
    """The call that a struct of a start and an end stands for.

    The node itself, if it is no window.
    """
    if (
        node.name != "CreateNamedStruct"
        or len(node.children) != 4
        or not _is_made(node.children[1])
    ):
        return node
    start, end = bare(node.children[1]), bare(node.children[3])
    if len(end.children) != 2 or bare(end.children[0]) != start:
        return node
    if (
        start.name == "Subtract"
        and start.children[0].children[1:]
        and start.children[0].children[1].name == "CaseWhen"
    ):
        return Node("TimeWindow", {}, [bare(start.children[0].children[0]), *_lengths(start, end)])
    return Node("SessionWindow", {}, [start, bare(end.children[1])])


def _is_made(node: Node) -> bool:
    """Return whether a field is one of Spark's: nobody can write such a conversion."""
    return "PreciseTimestampConversion" in {node.name, *(child.name for child in node.children)}


def _lengths(start: Node, end: Node) -> Iterator[Node]:
    """Yield the length, distance and start of the windows, but for those that Spark fills in."""
    rest = start.children[0].children[1].children[-1]
    length, slide = _number(end.children[1]), _number(rest.children[1])
    offset = _number(rest.children[0].children[1])
    yield _text(length)
    if slide != length or offset:
        yield _text(slide)
    if offset:
        yield _text(offset)


def _number(literal: Node) -> int:
    return int(bare(literal).fields["value"])


def _text(length: int) -> Node:
    unit, size = next((unit, size) for unit, size in _UNITS.items() if length % size == 0)
    count = length // size
    return Node(
        "Literal", {"value": f"{count} {unit}{'' if count == 1 else 's'}", "dataType": "string"}, []
    )
