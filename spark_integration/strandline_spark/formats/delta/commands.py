"""The outputs of Delta's own commands, and those that read a table that is no plan inside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Described, InPlace, Like, ReadBy, Write
from strandline_spark.jvm.client import JavaObject, Jvm, optional, simple_name
from strandline_spark.model.statement import Operation
from strandline_spark.plans.schemas import fields_of
from strandline_spark.plans.tree import Node

VERSION = "versionAsOf"  # the option of a mention whose command names the version that it reads
_MODES: Mapping[str, Operation] = {"Overwrite": "replace"}


def _clone(plan: JavaObject) -> JavaObject | None:
    """The clone inside a command that makes a table; None if it makes one in another way."""
    query = optional(plan.query())
    return query if query is not None and simple_name(query) == "CloneTableCommand" else None


def _cloned(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """CREATE TABLE .. CLONE: a table of the rows of another, which stay where they are. Or LIKE."""
    clone = _clone(plan)
    if clone is None:
        return _like(plan, jvm) if optional(plan.query()) is None else []
    mention = Mention(
        fields_of(clone.sourceTable().schema()),
        catalog_table=None if plan.tableByPath() else plan.table(),
        provider="delta",
        options={"path": str(clone.targetPath().toString())},
    )
    mode = str(plan.mode().toString())
    unless_there = mode == "Ignore"
    return [Write(mention, _MODES.get(mode, "create"), unless_there=unless_there, whole=True)]


def _like(plan: JavaObject, jvm: Jvm) -> list[Write]:
    """CREATE TABLE .. LIKE: a table of the columns of another, without rows."""
    table = plan.table()
    location = optional(table.storage().locationUri())
    path = location or jvm.session.sessionState().catalog().defaultTablePath(table.identifier())
    mention = Mention(
        fields_of(table.schema()),
        catalog_table=None if plan.tableByPath() else table,
        provider="delta",
        options={"path": str(path.toString())},
    )
    unless_there = str(plan.mode().toString()) == "Ignore"
    return [Write(mention, "create", unless_there=unless_there, fills=False, whole=True)]


def _converted(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """CONVERT TO DELTA: Parquet files get a log. Without a new version nothing was done."""
    named = plan.tableIdentifier()
    if str(optional(named.database())).lower() == "parquet":
        path = str(named.table())
    else:
        table = jvm.session.sessionState().catalog().getTableMetadata(named)
        path = str(table.location().toString())
    mention = Mention(provider="delta", options={"path": path})
    return [Write(mention, "append", unless_there=True)]


def _clone_source(plan: JavaObject, jvm: Jvm) -> list[Mention]:
    """The table that is cloned, at the version that it has or that was named.

    A folder of Parquet files has none.
    """
    clone = _clone(plan)
    if clone is None:
        return []
    source = clone.sourceTable()
    options = {"path": str(source.dataPath().toString())}
    snapshot = optional(source.snapshot()) if simple_name(source) == "CloneDeltaSource" else None
    provider = "files" if snapshot is None else "delta"
    if snapshot is not None:
        options[VERSION] = str(snapshot.version())
    table = optional(source.catalogTable())
    return [
        Mention(fields_of(source.schema()), catalog_table=table, provider=provider, options=options)
    ]


def _of_restored(plan: JavaObject) -> Mention:
    table = plan.sourceTable()
    options = {"path": str(table.path().toString())}
    schema = fields_of(table.initialSnapshot().schema())
    return Mention(
        schema, catalog_table=optional(table.catalogTable()), provider="delta", options=options
    )


def _restored(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """RESTORE TABLE: the table becomes what it was at a version."""
    return [Write(_of_restored(plan), "restore")]


def _restore_source(plan: JavaObject, jvm: Jvm) -> list[Mention]:
    """Return that version, or that of the named moment."""
    mention, version = _of_restored(plan), plan.sourceTable().initialSnapshot().version()
    return [replace(mention, options={**mention.options, VERSION: str(version)})]


WRITES: Mapping[str, Described] = {
    "MergeIntoCommand": InPlace("merge", "target"),
    "UpdateCommand": InPlace("update", "target"),
    "DeleteCommand": InPlace("delete", "target"),
    "DeltaDynamicPartitionOverwriteCommand": Like("OverwritePartitionsDynamic"),
    "TruncateDeltaTableCommand": Like("TruncateTable"),
    "CreateDeltaTableCommand": _cloned,
    "RestoreTableCommand": _restored,
    "ConvertToDeltaCommand": _converted,
}
READS: Mapping[str, ReadBy] = {
    "CreateDeltaTableCommand": _clone_source,
    "RestoreTableCommand": _restore_source,
}
WITHOUT_COLUMNS = ("TruncateDeltaTableCommand", *READS)
SAME_ROWS = {  # operations of the log, in lower case, whose version has the rows of the one before
    *(
        "optimize",
        "reorg",
        "cluster by",
        "vacuum start",
        "vacuum end",
        "add constraint",
        "drop constraint",
    ),
    *("set tblproperties", "unset tblproperties", "add columns", "change column", "rename column"),
}
