"""The outputs of a plan, by any kind of command: one of Spark's, or a table format's own."""

from __future__ import annotations

from functools import lru_cache

from strandline_spark.extraction.definitions import DEFINITIONS
from strandline_spark.extraction.spark_writes import READERS
from strandline_spark.extraction.unread import UNREADABLE, unread
from strandline_spark.extraction.v1_commands import COMMANDS, in_place
from strandline_spark.formats.registry import formats
from strandline_spark.formats.writes import InPlace, Like, Reader, Write
from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.model.statement import UNREAD_OUTPUT
from strandline_spark.plans.tree import Node


def writes_of(plan: JavaObject, root: Node, jvm: Jvm, faults: list[str]) -> list[Write]:
    """Return the outputs of a plan; nothing for a plan that only reads.

    What cannot be read of it is added to `faults`.
    """
    read = readers().get(root.name)
    if read is None and is_multi_insert(root):
        pairs = zip(jvm.sequence(plan.children()), root.children, strict=True)
        return [write for child, node in pairs for write in writes_of(child, node, jvm, faults)]
    if read is None:
        return []
    try:
        return read(plan, root, jvm)
    except UNREADABLE as error:
        faults.append(unread(f"{UNREAD_OUTPUT} of {root.name}", error))
        return []


def is_multi_insert(root: Node) -> bool:
    """`FROM t INSERT INTO a SELECT ... INSERT INTO b SELECT ...` is a union of what it writes."""
    return (
        root.name == "Union"
        and bool(root.children)
        and all(child.name in readers() for child in root.children)
    )


@lru_cache(maxsize=1)
def readers() -> dict[str, Reader]:
    """By the name of the command's node: how what it writes is read."""
    readers_found = {**READERS, **COMMANDS, **DEFINITIONS}
    for name, described in [pair for format_ in formats() for pair in format_.writes.items()]:
        if isinstance(described, Like):
            readers_found[name] = readers_found[described.command]
        elif isinstance(described, InPlace):
            readers_found[name] = in_place(described)
        else:
            readers_found[name] = described
    return readers_found
