"""The outputs and plans of Paimon's own commands."""

from __future__ import annotations

from collections.abc import Mapping

from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Described, InPlace, Like, Write
from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.plans.tree import Node


def _truncate(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """Paimon's own TRUNCATE holds the table, and its name no more."""
    return [Write(Mention(table=plan.table()), "truncate", whole=True)]


WRITES: Mapping[str, Described] = {
    "MergeIntoPaimonTable": InPlace("merge", "targetTable"),
    "UpdatePaimonTableCommand": InPlace("update", "relation"),
    "DeleteFromPaimonTableCommand": InPlace("delete", "relation"),
    "PaimonDynamicPartitionOverwriteCommand": Like("OverwritePartitionsDynamic"),
    "PaimonTruncateTableCommand": _truncate,
}
PLANS_IN: Mapping[str, tuple[str, ...]] = {
    "MergeIntoPaimonTable": ("sourceTable", "targetTable"),
    "UpdatePaimonTableCommand": ("relation",),
    "DeleteFromPaimonTableCommand": ("relation",),
}
