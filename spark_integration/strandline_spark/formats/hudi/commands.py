"""The outputs and plans of Hudi's own commands; seen in Hudi 1.2 on Spark 3.5."""

from __future__ import annotations

from collections.abc import Mapping

from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Described, InPlace, Like, Write
from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.plans.schemas import fields_of
from strandline_spark.plans.tree import Node


def _truncate(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    table = jvm.session.sessionState().catalog().getTableMetadata(plan.tableIdentifier())
    mention = Mention(fields_of(table.schema()), catalog_table=table)
    return [Write(mention, "truncate", whole=True)]


WRITES: Mapping[str, Described] = {
    "CreateHoodieTableCommand": Like("CreateTableCommand"),
    "CreateHoodieTableAsSelectCommand": Like("CreateDataSourceTableAsSelectCommand"),
    "InsertIntoHoodieTableCommand": Like("InsertIntoDataSourceCommand"),
    "MergeIntoHoodieTableCommand": InPlace("merge", "mergeInto.targetTable"),
    "UpdateHoodieTableCommand": InPlace("update", "ut.table"),
    "DeleteHoodieTableCommand": InPlace("delete", "query"),
    "TruncateHoodieTableCommand": _truncate,
}
PLANS_IN: Mapping[str, tuple[str, ...]] = {"MergeIntoHoodieTableCommand": ("mergeInto",)}
WITHOUT_COLUMNS = ("CreateHoodieTableCommand", "TruncateHoodieTableCommand")
