"""The target of the root of an analysed plan: a mention of data, and the kind of write.

One function a family of commands; `commands` has those of Spark's older kind. A command that is not
known writes nothing that could be reported, and says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline_spark.extraction.leaves import of_known_relation, of_relation
from strandline_spark.extraction.v1_commands import in_place
from strandline_spark.formats.catalog_tables import SESSION_CATALOG
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import InPlace, Reader, Write
from strandline_spark.jvm.client import (
    JAVA_FAILED,
    JavaObject,
    Jvm,
    Known,
    dotted,
    optional,
    simple_name,
)
from strandline_spark.jvm.parsed_texts import kind_and_place
from strandline_spark.model.statement import Field, Operation
from strandline_spark.plans.schemas import fields_of, schema_of
from strandline_spark.plans.tree import Node


def to(operation: Operation) -> Reader:
    """INSERT and its kin name their target by a relation."""

    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        mention = _relation(plan, root, jvm)
        return [Write(mention, operation)] if mention is not None else []

    return read


def overwrite(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """Read an overwrite, which replaces the whole table unless it has a predicate."""
    mention = _relation(plan, root, jvm)
    if mention is None:
        return []
    return [Write(mention, "overwrite", whole=str(plan.deleteExpr().toString()) == "true")]


def dynamic_overwrite(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """Read an overwrite of the partitions that have new rows.

    A table without partitions is replaced as a whole.
    """
    mention = _relation(plan, root, jvm)
    if mention is None:
        return []
    return [Write(mention, "overwrite", whole=len(mention.table.partitioning()) == 0)]


def _relation(plan: JavaObject, root: Node, jvm: Jvm) -> Mention | None:
    node = root.node("table") or _child(root)
    relation: JavaObject = Known(lambda: plan.table())
    while node is not None and node.name == "SubqueryAlias":
        relation, node = relation.child(), _child(node)
    if node is None or node.name not in {"DataSourceV2Relation", "DataSourceV2ScanRelation"}:
        return None
    schema = schema_of(node.nodes("output"))
    if "known" in node.fields:
        return of_known_relation(relation, node, jvm, schema)
    return of_relation(relation, jvm, schema)


def _child(node: Node) -> Node | None:
    return node.children[0] if node.children else None


def delete(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """DELETE of whole files, or of a table that refuses it when it is planned."""
    return to("delete")(plan, root, jvm) or in_place(InPlace("delete", "table"))(plan, root, jvm)


_COMMANDS: Mapping[str, Operation] = {"DELETE": "delete", "UPDATE": "update", "MERGE": "merge"}


def row_level(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """MERGE, UPDATE and DELETE that rewrite files or write deltas."""
    mention = _relation(plan, root, jvm)
    if mention is None:
        return []
    command = str(plan.table().table().operation().command().toString())
    return [Write(mention, _COMMANDS.get(command, "overwrite"))]


def as_select(operation: Operation) -> Reader:
    """CREATE and REPLACE TABLE AS SELECT."""

    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        mention = new_table(plan.name(), plan.tableSpec(), fields_of(plan.query().schema()))
        unless_there = _unless_there(plan, operation)
        return [Write(mention, operation, new=True, unless_there=unless_there, whole=True)]

    return read


def create(operation: Operation) -> Reader:
    """CREATE and REPLACE TABLE without rows."""

    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        mention = new_table(plan.name(), plan.tableSpec(), fields_of(plan.tableSchema()))
        return [
            Write(
                mention,
                operation,
                new=True,
                unless_there=_unless_there(plan, operation),
                fills=False,
                whole=True,
            )
        ]

    return read


def _unless_there(plan: JavaObject, operation: Operation) -> bool:
    """IF NOT EXISTS, and the save mode `ignore`."""
    return operation == "create" and bool(plan.ignoreIfExists())


def new_table(name: JavaObject, spec: JavaObject, schema: tuple[Field, ...]) -> Mention:
    """Return the mention of a table that is to be made, by its ResolvedIdentifier."""
    location, provider = optional(spec.location()), optional(spec.provider())
    return Mention(
        schema,
        catalog=name.catalog(),
        identifier=name.identifier(),
        provider=str(provider) if provider is not None else None,
        options={"location": str(location)} if location is not None else {},
    )


def on_child(operation: Operation) -> Reader:
    """DROP and TRUNCATE name their table by a ResolvedTable or ResolvedIdentifier."""

    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        child = _child(root)
        if child is None or child.name not in {"ResolvedTable", "ResolvedIdentifier"}:
            return []
        named = plan.child()
        if child.name == "ResolvedIdentifier":
            return _dropped(plan, named, jvm)
        schema = schema_of(child.nodes("outputAttributes"))
        mention = Mention(
            schema, table=named.table(), catalog=named.catalog(), identifier=named.identifier()
        )
        return [Write(mention, operation, whole=operation == "truncate")]

    return read


def _dropped(plan: JavaObject, named: JavaObject, jvm: Jvm) -> list[Write]:
    """A table that is named only.

    With IF EXISTS, and in the session's catalog, it must still exist to be reported.
    """
    catalog, identifier = named.catalog(), named.identifier()
    own = str(catalog.name()) == SESSION_CATALOG
    try:
        table = catalog.loadTable(identifier) if own or bool(plan.ifExists()) else None
    except JAVA_FAILED:
        return [Write(Mention(), "drop", gone=f"{catalog.name()}.{dotted(identifier)}")]
    if table is not None and simple_name(table) == "V1Table":
        described = table.v1Table()
        return [Write(Mention(fields_of(described.schema()), catalog_table=described), "drop")]
    mention = Mention(table=table if own else None, catalog=catalog, identifier=identifier)
    return [Write(mention, "drop", new=not own)]


def stream(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """A micro-batch into a table (v2)."""
    relation = plan.relation()
    if simple_name(relation) in ("Some", "None$"):  # before Spark 4.3
        relation = optional(relation)
    schema, options = fields_of(plan.query().schema()), jvm.options(plan.writeOptions())
    if relation is not None:
        mention = replace(of_relation(relation, jvm, schema), options=options)
    else:
        mention = Mention(schema, table=plan.table(), options=options)
    return [_micro_batch(mention, root)]


def stream_v1(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """A micro-batch into a sink of Spark's older kind, which shows itself as Kind[place]."""
    kind, place = kind_and_place(str(plan.sink().toString()))
    options = jvm.options(plan.writeOptions())
    if place:
        options.setdefault("path", place)
    mention = Mention(
        fields_of(plan.query().schema()),
        catalog_table=optional(plan.catalogTable()),
        provider=kind.partition("@")[0].rpartition(".")[2].removesuffix("Sink").lower(),
        options=options,
    )
    return [_micro_batch(mention, root)]


def _micro_batch(mention: Mention, root: Node) -> Write:
    """Return the write of a micro-batch; in complete mode it is the whole result of the query.

    The mode is a Scala object, recognized by its class: `InternalOutputModes$Complete$`.
    """
    complete = str(root.fields.get("outputMode")).endswith("$Complete$")
    operation: Operation = "overwrite" if complete else "append"
    return Write(mention, operation, batch=_batch(root), whole=complete, completes=complete)


def _batch(root: Node) -> tuple[str, int]:
    return str(root.fields["queryId"]), int(root.fields.get("batchId") or 0)


READERS: dict[str, Reader] = {
    "AppendData": to("append"),
    "OverwriteByExpression": overwrite,
    "OverwritePartitionsDynamic": dynamic_overwrite,
    "ReplaceData": row_level,
    "WriteDelta": row_level,
    "DeleteFromTable": delete,
    "UpdateTable": in_place(InPlace("update", "table")),
    "MergeIntoTable": in_place(InPlace("merge", "targetTable")),
    "CreateTableAsSelect": as_select("create"),
    "ReplaceTableAsSelect": as_select("replace"),
    "CreateTable": create("create"),
    "ReplaceTable": create("replace"),
    "DropTable": on_child("drop"),
    "TruncateTable": on_child("truncate"),
    "WriteToMicroBatchDataSource": stream,
    "WriteToMicroBatchDataSourceV1": stream_v1,
}
