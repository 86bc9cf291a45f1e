"""The outputs of Spark's older commands.

Files, tables of the session catalog, sources that take whole DataFrames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline_spark.extraction.brought_in import BROUGHT_IN
from strandline_spark.extraction.leaves import mentions_of
from strandline_spark.formats.catalog_tables import name_of
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import InPlace, Reader, Write
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm, known, optional, simple_name
from strandline_spark.model.statement import Field, Operation
from strandline_spark.plans.schemas import fields_in, fields_of
from strandline_spark.plans.tree import Node
from strandline_spark.plans.tree_source import tree_of_plan


def _renamed(plan: JavaObject, root: Node) -> tuple[Field, ...]:
    """The query's schema under the names of the target's columns."""
    schema_text, names = root.fields.get("schemaText"), root.fields.get("outputColumnNames")
    schema = fields_in(schema_text) if schema_text is not None else fields_of(plan.query().schema())
    if names is None or len(names) != len(schema):
        return schema
    return tuple(replace(field, name=str(name)) for field, name in zip(schema, names, strict=True))


def _files(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """INSERT into, and DataFrameWriter's save to, a folder."""
    fields = root.fields
    path = str(fields["pathText"])
    mode = str(fields["mode"])
    table = optional(plan.catalogTable()) if fields["hasTable"] else None
    mention = Mention(
        _renamed(plan, root), catalog_table=table, provider="files", options={"path": path}
    )
    part = mode == "Overwrite" and table is not None and bool(fields["ifPartitionNotExists"])
    unless_there = part or (mode == "Ignore" and table is None)
    return [Write(mention, _MODES.get(mode, "create"), unless_there=unless_there, part=part)]


def _directory(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """INSERT OVERWRITE DIRECTORY, of a data source's and of Hive's format."""
    location = optional(plan.storage().locationUri())
    if location is None:
        return []
    mention = Mention(
        fields_of(plan.query().schema()),
        provider="files",
        options={"path": str(location.toString())},
    )
    return [Write(mention, "overwrite" if plan.overwrite() else "append")]


def _save(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """Read DataFrameWriter's save into a source that takes whole DataFrames.

    JDBC, Kafka, Delta by path.
    """
    mention = Mention(
        fields_of(plan.query().schema()),
        provider=simple_name(plan.dataSource()),
        options=jvm.options(plan.options()),
    )
    if _keeps_columns(mention, str(plan.mode().toString())):
        mention = replace(mention, schema=())
    if str(mention.provider).startswith(
        "Kafka"
    ):  # a topic is only ever added to, whatever the mode
        return [Write(mention, "append")]
    mode = str(plan.mode().toString())
    in_part = {"replacewhere", "replaceon", "replaceusing"} & {
        key.lower() for key in mention.options
    }
    operation = _MODES.get(mode, "create")
    whole = operation != "append" and not in_part
    return [Write(mention, operation, unless_there=mode == "Ignore", whole=whole)]


def _keeps_columns(mention: Mention, mode: str) -> bool:
    """Return whether a database's table may have other columns than the query, or other spellings.

    Only the database knows them.
    """
    if mention.provider != "JdbcRelationProvider":
        return False
    options = {key.lower(): value.lower() for key, value in mention.options.items()}
    return mode == "Append" or (mode == "Overwrite" and options.get("truncate") == "true")


def _insert(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """INSERT INTO a table that is a relation of such a source."""
    relation = plan.logicalRelation()
    schema, table = fields_of(relation.schema()), optional(relation.catalogTable())
    mention = Mention(schema, relation=relation.relation(), catalog_table=table)
    operation: Operation = "overwrite" if plan.overwrite() else "append"
    return [Write(mention, operation, whole=operation == "overwrite")]


def _table_as_select(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """CREATE TABLE AS SELECT into the session catalog.

    The table's place is known before the table is made.
    """
    table = plan.tableDesc() if root.name in _DESCRIBING else plan.table()
    if root.name == "SaveAsV1TableCommand":  # named as the user wrote it
        identifier = jvm.session.sessionState().catalog().qualifyIdentifier(table.identifier())
        table = known(table, name=name_of(identifier))
    mode = str(plan.mode().toString())
    operation = _MODES.get(mode, "create")
    mention = of_table(table, _renamed(plan, root), jvm)
    whole = operation != "append"
    return [Write(mention, operation, unless_there=mode == "Ignore", whole=whole)]


_DESCRIBING = {
    "CreateHiveTableAsSelectCommand",
    "OptimizedCreateHiveTableAsSelectCommand",
    "SaveAsV1TableCommand",
}


def _new_table(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    table, unless_there = plan.table(), bool(plan.ignoreIfExists())
    return [
        Write(
            of_table(table, fields_of(table.schema()), jvm),
            "create",
            unless_there=unless_there,
            fills=False,
            whole=True,
        )
    ]


def _table_like(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """CREATE TABLE .. LIKE: a table of the columns of another table or view, without rows."""
    catalog = jvm.session.sessionState().catalog()
    source = catalog.getTempViewOrPermanentTableMetadata(plan.sourceTable())
    named = catalog.qualifyIdentifier(plan.targetTable())
    others = [getattr(source, f"copy$default${n}")() for n in range(2, source.productArity() + 1)]
    table = source.copy(named, *others)
    place = optional(plan.fileFormat().locationUri()) or default_path(named, jvm)
    table = known(table, location=str(place))
    if (provider := optional(plan.provider())) is not None:
        table = known(table, provider=str(provider))
    mention = of_table(table, fields_of(table.schema()), jvm)
    unless_there = bool(plan.ifNotExists())
    return [Write(mention, "create", unless_there=unless_there, fills=False, whole=True)]


def _hive_table(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    mention = of_table(plan.table(), _renamed(plan, root), jvm)
    part = bool(plan.ifPartitionNotExists())
    operation: Operation = "overwrite" if plan.overwrite() else "append"
    return [Write(mention, operation, unless_there=part, part=part)]


def of_table(table: JavaObject, schema: tuple[Field, ...], jvm: Jvm) -> Mention:
    """Return the mention of a table that a V1 command names by its catalog entry."""
    provider = optional(table.provider())
    path = default_path(table.identifier(), jvm)
    return Mention(
        schema,
        catalog_table=table,
        provider=str(provider).lower() if provider is not None else None,
        options={**jvm.options(table.storage().properties()), "path": path} if path else {},
    )


def default_path(identifier: JavaObject, jvm: Jvm) -> str | None:
    """Return where the session catalog puts a table that is given no place."""
    try:
        return str(jvm.session.sessionState().catalog().defaultTablePath(identifier).toString())
    except JAVA_FAILED:
        return None


def _on_name(operation: Operation) -> Reader:
    """DROP and TRUNCATE name their table only.

    Once it is dropped nothing is left to ask. What empties or drops a partition alters its table.
    """

    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        identifier = plan.tableName()
        try:
            table = jvm.session.sessionState().catalog().getTableMetadata(identifier)
        except JAVA_FAILED:
            named = jvm.session.sessionState().catalog().qualifyIdentifier(identifier)
            return [Write(Mention(), operation, gone=name_of(named))] if operation == "drop" else []
        if str(table.tableType().name()) == "VIEW":
            return []
        mention = of_table(table, fields_of(table.schema()), jvm)
        if operation == "truncate" and optional(plan.partitionSpec()) is not None:
            return [Write(mention, "alter")]
        return [Write(mention, operation, whole=operation == "truncate")]

    return read


def _load_data(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """LOAD DATA, which replaces a table's files, or a partition's, where it is told to."""
    table = jvm.session.sessionState().catalog().getTableMetadata(plan.table())
    mention = of_table(table, fields_of(table.schema()), jvm)
    if not plan.isOverwrite():
        return [Write(mention, "append")]
    return [Write(mention, "overwrite", whole=optional(plan.partition()) is None)]


def _new_partitions(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """ADD PARTITION; one without a place outside of the table's brings no rows."""
    if not BROUGHT_IN[root.name](plan, jvm):
        return []
    table = jvm.session.sessionState().catalog().getTableMetadata(plan.tableName())
    return [Write(of_table(table, fields_of(table.schema()), jvm), "append")]


def _new_location(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """SET LOCATION: the table's name, or one partition, points to another folder from now on."""
    table = jvm.session.sessionState().catalog().getTableMetadata(plan.tableName())
    if optional(plan.partitionSpec()) is not None:
        return [Write(of_table(table, fields_of(table.schema()), jvm), "overwrite")]
    table = known(table, location=str(plan.location()))
    return [Write(of_table(table, fields_of(table.schema()), jvm), "alter")]


def _view(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """A view that outlives the session."""
    if "PersistedView" not in str(root.fields.get("viewType")):
        return []
    schema = fields_of(plan.plan().schema())
    names = [str(column["_1"]) for column in root.fields["userSpecifiedColumns"]]
    if len(names) == len(schema):
        schema = tuple(replace(field, name=name) for field, name in zip(schema, names, strict=True))
    unless_there = bool(plan.allowExisting())
    mention = _named_view(plan.name(), schema, jvm)
    return [Write(mention, "create", unless_there=unless_there, fills=False)]


def _view_anew(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """ALTER VIEW .. AS, of a view that outlives the session."""
    if jvm.session.sessionState().catalog().isTempView(plan.name()):
        return []
    return [Write(_named_view(plan.name(), fields_of(plan.query().schema()), jvm), "create")]


def _named_view(name: JavaObject, schema: tuple[Field, ...], jvm: Jvm) -> Mention:
    whole = jvm.session.sessionState().catalog().qualifyIdentifier(name)
    options = {"database": str(optional(whole.database())), "view": str(whole.table())}
    return Mention(schema, provider="view", options=options)


def in_place(described: InPlace) -> Reader:
    """MERGE, UPDATE and DELETE of a format's own, whose target is a plan around one leaf."""

    def read(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
        target = plan
        for method in described.target.split("."):
            target = getattr(target, method)()
        mention = next(mentions_of(target, tree_of_plan(target), jvm), None)
        return [Write(mention, described.operation)] if mention is not None else []

    return read


_MODES: Mapping[str, Operation] = {"Overwrite": "overwrite", "Append": "append"}


COMMANDS: dict[str, Reader] = {
    "InsertIntoHadoopFsRelationCommand": _files,
    "InsertIntoDataSourceDirCommand": _directory,
    "InsertIntoHiveDirCommand": _directory,
    "SaveIntoDataSourceCommand": _save,
    "InsertIntoDataSourceCommand": _insert,
    "CreateDataSourceTableAsSelectCommand": _table_as_select,
    "CreateHiveTableAsSelectCommand": _table_as_select,
    "SaveAsV1TableCommand": _table_as_select,
    "OptimizedCreateHiveTableAsSelectCommand": _table_as_select,
    "CreateDataSourceTableCommand": _new_table,
    "CreateTableCommand": _new_table,
    "CreateTableLikeCommand": _table_like,
    "InsertIntoHiveTable": _hive_table,
    "DropTableCommand": _on_name("drop"),
    "TruncateTableCommand": _on_name("truncate"),
    "AlterTableDropPartitionCommand": _on_name("alter"),
    "LoadDataCommand": _load_data,
    "AlterTableAddPartitionCommand": _new_partitions,
    "AlterTableSetLocationCommand": _new_location,
    "CreateViewCommand": _view,
    "AlterViewAsCommand": _view_anew,
}
