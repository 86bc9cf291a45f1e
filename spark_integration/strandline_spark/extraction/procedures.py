"""Iceberg's procedures that bring rows into a table, or set it to another of its snapshots.

Spark 4 runs a procedure while it analyses `CALL`, and makes no execution of it. The statement's
text is analysed once more, as for an EXPLAIN, which finds the procedure and its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline_spark.extraction.failed_analysis import quoted, whole_name
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Write
from strandline_spark.jvm.class_names import IDENTIFIER
from strandline_spark.jvm.client import (
    JAVA_FAILED,
    JavaObject,
    Jvm,
    class_name,
    dotted,
    simple_name,
)
from strandline_spark.model.names import qualified
from strandline_spark.model.statement import Operation
from strandline_spark.plans.schemas import fields_of

_PROCEDURES = "org.apache.iceberg.spark.procedures."
# By the class of a procedure: the kind of write, and whether the table is made by it.
_BRINGING: Mapping[str, tuple[Operation, bool]] = {
    "SnapshotTableProcedure": ("create", True),
    "MigrateTableProcedure": ("append", True),  # into the table of the same name and place
    "AddFilesProcedure": ("append", False),
}
_SETTING = {
    "RollbackToSnapshotProcedure",
    "RollbackToTimestampProcedure",
    "SetCurrentSnapshotProcedure",
    "CherrypickSnapshotProcedure",
    "PublishChangesProcedure",
    "FastForwardBranchProcedure",
}
STAGED = "source-snapshot-id"  # in a commit's summary: the staged snapshot whose changes it has
_OWN_CATALOG = {"AddFilesProcedure", *_SETTING}  # a table's name is one of the procedure's catalog


@dataclass(frozen=True, slots=True)
class Procedure:
    """A call of one of these procedures: its class, its catalog, its arguments by their names."""

    kind: str
    catalog: JavaObject
    arguments: Mapping[str, JavaObject]

    def text(self, name: str) -> str | None:
        """Return an argument that is a text; None if it is not given."""
        value = self.arguments[name].eval(None) if name in self.arguments else None
        return str(value.toString()) if value is not None else None


def procedure_of(plan: JavaObject, current: tuple[str, ...], jvm: Jvm) -> Procedure | None:
    """Return the call of a parsed statement; None if it is none of these.

    `current`: the session's catalog and namespace of that moment.
    """
    kind = simple_name(plan)
    if kind not in {"Call", "CallStatement"}:
        return None
    state = jvm.session.sessionState()
    try:
        names = plan.procedure().nameParts() if kind == "Call" else plan.name()
        parts = whole_name(jvm.sequence(names), jvm, current[:1])
        named = state.sqlParser().parsePlan(f"CALL {quoted(parts)}()")
        if kind == "Call":
            plan = plan.copy(named.procedure(), plan.args(), False)
        else:  # Iceberg's own, before Spark 4
            plan = plan.copy(named.name(), plan.args())
        bound = state.executePlan(plan, getattr(state, "executePlan$default$2")()).analyzed()
    except JAVA_FAILED:  # there is no such procedure, or it has other parameters
        return None
    procedure = bound.procedure()
    if simple_name(procedure) == "ResolvedProcedure":
        procedure = procedure.procedure()
    if not class_name(procedure).startswith(_PROCEDURES):
        return None
    names = [str(parameter.name()) for parameter in procedure.parameters()]
    arguments = dict(zip(names, jvm.sequence(bound.args()), strict=False))
    return Procedure(simple_name(procedure), jvm.field(procedure, "tableCatalog"), arguments)


def target_of(call: Procedure, current: tuple[str, ...], jvm: Jvm) -> Write | None:
    """Return the write to the table that a procedure makes, fills or sets; None for other kinds.

    `current`: the session's catalog and namespace of that moment.
    """
    if call.kind not in _BRINGING and call.kind not in _SETTING:
        return None
    operation, new = _BRINGING.get(call.kind, ("alter", False))
    catalog = call.catalog if call.kind in _OWN_CATALOG else None
    mention = _named(str(call.text("table")), catalog, current, jvm)
    return Write(mention, operation, new=new, whole=operation == "create")


def source_of(call: Procedure, current: tuple[str, ...], jvm: Jvm) -> str | Mention | None:
    """Return the table or the folder whose files a procedure takes; None if it takes none."""
    name = call.text("source_table")
    if name is None or call.kind not in _BRINGING:
        return None
    manager = jvm.session.sessionState().catalogManager()
    own = manager.v2SessionCatalog() if call.kind in _OWN_CATALOG else None
    catalog, *namespace, table = _whole_name(name, own, current, jvm)
    if own is not None and namespace in (["parquet"], ["orc"], ["avro"]):
        return Mention(provider="files", options={"path": table})
    return qualified(catalog, *namespace, table)


def name_of(mention: Mention) -> str:
    """Return catalog.database.table."""
    return f"{mention.catalog.name()}.{dotted(mention.identifier)}"


def _named(name: str, catalog: JavaObject | None, current: tuple[str, ...], jvm: Jvm) -> Mention:
    """Return the mention of a table, without more than its name if it is not there."""
    owner, *namespace, table = _whole_name(name, catalog, current, jvm)
    owning = jvm.session.sessionState().catalogManager().catalog(owner)
    parts = jvm.array("java.lang.String", *namespace)
    identifier = jvm.static(IDENTIFIER, "of")(parts, table)
    try:
        loaded = owning.loadTable(identifier)
    except JAVA_FAILED:
        return Mention(catalog=owning, identifier=identifier, provider="iceberg")
    return Mention(fields_of(loaded.schema()), table=loaded, catalog=owning, identifier=identifier)


def _whole_name(
    name: str, catalog: JavaObject | None, current: tuple[str, ...], jvm: Jvm
) -> list[str]:
    """Return the parts of a name as Iceberg understands it, beginning with the catalog.

    `catalog`: the one that it is in if it names none; None for the session's.
    """
    if catalog is not None and str(catalog.name()) != current[0]:
        current = str(catalog.name()), *map(str, catalog.defaultNamespace())
    parts = jvm.session.sessionState().sqlParser().parseMultipartIdentifier(name)
    return whole_name(jvm.sequence(parts), jvm, current)
