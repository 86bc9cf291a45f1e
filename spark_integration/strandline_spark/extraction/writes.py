"""What a plan writes, whichever kind of command it is."""

from __future__ import annotations

from strandline_spark.extraction.spark_writes import READERS, Write
from strandline_spark.extraction.v1_commands import COMMANDS
from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.plans.tree import Node


def writes_of(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """What a plan writes; nothing for a plan that only reads."""
    read = READERS.get(root.name) or COMMANDS.get(root.name)
    if read is None and is_multi_insert(root):
        children = jvm.sequence(plan.children())
        return [
            write for child, node in zip(children, root.children, strict=True) for write in writes_of(child, node, jvm)
        ]
    return read(plan, root, jvm) if read is not None else []


def is_multi_insert(root: Node) -> bool:
    """`FROM t INSERT INTO a SELECT ... INSERT INTO b SELECT ...` is a union of what it writes."""
    known = READERS.keys() | COMMANDS.keys()
    return root.name == "Union" and bool(root.children) and all(child.name in known for child in root.children)
