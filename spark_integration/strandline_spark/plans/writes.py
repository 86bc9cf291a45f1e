"""What the root of an analysed plan writes: a mention of data, and how.

One function a family of commands. A command that is not known writes nothing that could be told, and says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from strandline_spark.formats.mention import Mention
from strandline_spark.jvm import JavaObject, Jvm, optional
from strandline_spark.plans.mentions import of_relation
from strandline_spark.plans.schemas import fields_of, schema_of
from strandline_spark.plans.tree import Node
from strandline_spark.statement import Field, Operation


@dataclass(frozen=True, slots=True)
class Write:
    """One target of a statement. `new`: the table does not exist before. `batch`: a streaming query's micro-batch."""

    mention: Mention
    operation: Operation
    new: bool = False
    batch: tuple[str, int] | None = None


Reader = Callable[[JavaObject, Node, Jvm], list[Write]]


def writes_of(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """What a plan writes; nothing for a plan that only reads."""
    read = _READERS.get(root.name)
    return read(plan, root, jvm) if read is not None else []


def _relation(plan: JavaObject, root: Node, jvm: Jvm, field: str = "table") -> Mention | None:
    node = root.node(field) or _child(root)
    relation = getattr(plan, field)()
    while node is not None and node.name == "SubqueryAlias":
        relation, node = relation.child(), _child(node)
    if node is None or node.name not in {"DataSourceV2Relation", "DataSourceV2ScanRelation"}:
        return None
    return of_relation(relation, jvm, schema_of(node.fields.get("output") or []))


def _child(node: Node) -> Node | None:
    return node.children[0] if node.children else None


def _to(operation: Operation) -> Reader:
    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        mention = _relation(plan, root, jvm)
        return [Write(mention, operation)] if mention is not None else []

    return read


_COMMANDS: Mapping[str, Operation] = {"DELETE": "delete", "UPDATE": "update", "MERGE": "merge"}


def _row_level(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    mention = _relation(plan, root, jvm)
    if mention is None:
        return []
    command = str(plan.table().table().operation().command().toString())
    return [Write(mention, _COMMANDS.get(command, "overwrite"))]


def _as_select(operation: Operation) -> Reader:
    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        return [Write(_identified(plan, fields_of(plan.query().schema()), jvm), operation, new=True)]

    return read


def _create(operation: Operation) -> Reader:
    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        return [Write(_identified(plan, fields_of(plan.tableSchema()), jvm), operation, new=True)]

    return read


def _identified(plan: JavaObject, schema: tuple[Field, ...], jvm: Jvm) -> Mention:
    name, spec = plan.name(), plan.tableSpec()
    location = optional(spec.location())
    options = {"location": str(location)} if location is not None else {}
    return Mention(
        schema,
        catalog=name.catalog(),
        identifier=name.identifier(),
        provider=_text(optional(spec.provider())),
        options=options,
    )


def _text(value: JavaObject | None) -> str | None:
    return str(value) if value is not None else None


def _on_child(operation: Operation) -> Reader:
    """DROP and TRUNCATE name their table by a ResolvedTable or ResolvedIdentifier."""

    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        child = _child(root)
        if child is None or child.name not in {"ResolvedTable", "ResolvedIdentifier"}:
            return []
        named = plan.child()
        table = named.table() if child.name == "ResolvedTable" else None
        mention = Mention(
            schema_of(child.fields.get("outputAttributes") or []),
            table=table,
            catalog=named.catalog(),
            identifier=named.identifier(),
        )
        return [Write(mention, operation, new=table is None)]

    return read


def _stream(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    relation = optional(plan.relation())
    schema = fields_of(plan.query().schema())
    options = {key.lower(): value for key, value in jvm.options(plan.writeOptions()).items()}
    if relation is not None:
        mention = replace(of_relation(relation, jvm, schema), options=options)
    else:
        mention = Mention(schema, table=plan.table(), options=options)
    mode = str(plan.outputMode().toString()).lower()
    operation: Operation = "overwrite" if mode == "complete" else "append"
    return [Write(mention, operation, batch=(str(plan.queryId()), int(root.fields.get("batchId") or 0)))]


def _stream_v1(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    schema = fields_of(plan.query().schema())
    options = {key.lower(): value for key, value in jvm.options(plan.writeOptions()).items()}
    sink = str(plan.sink().toString())
    kind, _, path = sink.rstrip("]").partition("[")
    if path:
        options.setdefault("path", path)
    provider = kind.removesuffix("Sink").lower()
    table = optional(plan.catalogTable())
    mention = Mention(
        schema, catalog_table=table, provider="parquet" if provider == "file" else provider, options=options
    )
    mode = str(plan.outputMode().toString()).lower()
    batch = (str(plan.queryId()), int(root.fields.get("batchId") or 0))
    return [Write(mention, "overwrite" if mode == "complete" else "append", batch=batch)]


def _files(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """INSERT into, and DataFrameWriter's save to, a folder."""
    names, schema = root.fields.get("outputColumnNames"), fields_of(plan.query().schema())
    if isinstance(names, list) and len(names) == len(schema):
        schema = tuple(replace(field, name=str(name)) for field, name in zip(schema, names, strict=True))
    mention = Mention(
        schema,
        catalog_table=optional(plan.catalogTable()),
        provider="files",
        options={"path": str(plan.outputPath().toString())},
    )
    return [Write(mention, "overwrite" if str(plan.mode().toString()) == "Overwrite" else "append")]


_READERS: dict[str, Reader] = {
    "AppendData": _to("append"),
    "OverwriteByExpression": _to("overwrite"),
    "OverwritePartitionsDynamic": _to("overwrite"),
    "ReplaceData": _row_level,
    "WriteDelta": _row_level,
    "DeleteFromTable": _to("delete"),
    "CreateTableAsSelect": _as_select("create"),
    "ReplaceTableAsSelect": _as_select("replace"),
    "CreateTable": _create("create"),
    "ReplaceTable": _create("replace"),
    "DropTable": _on_child("drop"),
    "TruncateTable": _on_child("truncate"),
    "WriteToMicroBatchDataSource": _stream,
    "WriteToMicroBatchDataSourceV1": _stream_v1,
    "InsertIntoHadoopFsRelationCommand": _files,
}
