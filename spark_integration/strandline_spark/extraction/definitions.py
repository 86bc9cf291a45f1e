"""Commands that change what a table is called or which columns it has, and none of its rows."""

from __future__ import annotations

from strandline_spark.extraction.v1_commands import default_path, of_table
from strandline_spark.formats.catalog_tables import SESSION_CATALOG, location_of, provider_of
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Reader, Write
from strandline_spark.jvm.class_names import IDENTIFIER, TABLE_IDENTIFIER
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm, known, optional
from strandline_spark.model.names import qualified
from strandline_spark.plans.schemas import fields_of, schema_of
from strandline_spark.plans.tree import Node


def _rename(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """ALTER TABLE .. RENAME TO of a catalog's own table, which stays where it lies."""
    resolved = root.children[0] if root.children else None
    if resolved is None or resolved.name != "ResolvedTable":
        return []
    named, new_name = plan.child(), [str(part) for part in jvm.sequence(plan.newName())]
    catalog, old = named.catalog(), named.identifier()
    namespace = [str(part) for part in old.namespace()]
    if str(catalog.name()) == SESSION_CATALOG:
        renamed = _rename_in_session(namespace[-1], str(old.name()), new_name[-1], jvm)
        if renamed is not None:
            return [renamed]
    inside = new_name[1:] if new_name[0] == str(catalog.name()) and len(new_name) > 1 else new_name
    parts = jvm.array("java.lang.String", *(inside[:-1] or namespace))
    new = jvm.static(IDENTIFIER, "of")(parts, inside[-1])
    schema = schema_of(resolved.nodes("outputAttributes"))
    table = named.table()
    return [
        Write(
            Mention(schema, table=table, catalog=catalog, identifier=new),
            "rename",
            before=Mention(schema, table=table, catalog=catalog, identifier=old),
        )
    ]


def _rename_command(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """ALTER TABLE and ALTER VIEW .. RENAME TO in the session's catalog."""
    old, new = plan.oldName(), str(plan.newName().table())
    database = str(optional(old.database()) or "default")
    renamed = _rename_in_session(database, str(old.table()), new, jvm)
    return [renamed] if renamed is not None else []


def _rename_in_session(database: str, old: str, new: str, jvm: Jvm) -> Write | None:
    """Return the rename of a table of the session's catalog, which moves a managed table's folder.

    It may be over already, or be done meanwhile: the table is looked for under both names.
    """
    for current in (new, old, new):
        after, before = (_described(database, current, jvm) for _ in range(2))
        if after is not None and before is not None:
            break
    else:
        return None
    if provider_of(after) == "iceberg":
        return None
    kind, lies_at = str(after.tableType().name()), location_of(after)
    schema = fields_of(after.schema())
    if kind == "VIEW":
        mentions = [
            Mention(schema, provider="view", options={"database": database, "view": name})
            for name in (new, old)
        ]
        return Write(mentions[0], "rename", before=mentions[1])
    mentions = []
    for table, name in ((after, new), (before, old)):
        moved = kind == "MANAGED" and name != current
        place = default_path(_identifier(database, name, jvm), jvm) if moved else lies_at
        whole_name = qualified(SESSION_CATALOG, database, name)
        mentions.append(of_table(known(table, name=whole_name, location=place), schema, jvm))
    return Write(mentions[0], "rename", before=mentions[1])


def _described(database: str, name: str, jvm: Jvm) -> JavaObject | None:
    """Return the session catalog's entry of a table; None if it has none of that name."""
    try:
        catalog = jvm.session.sessionState().catalog()
        return catalog.getTableMetadata(_identifier(database, name, jvm))
    except JAVA_FAILED:
        return None


def _identifier(database: str, name: str, jvm: Jvm) -> JavaObject:
    return jvm.new(TABLE_IDENTIFIER, name, jvm.static("scala.Option", "apply")(database))


def _columns_changed(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """ALTER TABLE that adds, renames, drops or retypes columns of a catalog's own table."""
    if not root.children or root.children[0].name != "ResolvedTable":
        return []
    named = plan.child()
    catalog, identifier = named.catalog(), named.identifier()
    try:
        table = catalog.loadTable(identifier)
    except JAVA_FAILED:
        table = named.table()
    mention = Mention(
        fields_of(table.schema()), table=table, catalog=catalog, identifier=identifier
    )
    return [Write(mention, "alter", renamed=_renamed_column(plan, root, jvm))]


def _renamed_column(plan: JavaObject, root: Node, jvm: Jvm) -> dict[str, str]:
    """Return the new name by the old one; a field inside a column has its path."""
    if root.name != "RenameColumn":
        return {}
    *outer, old = map(str, jvm.sequence(plan.column().name()))
    return {".".join([*outer, old]): ".".join([*outer, str(plan.newName())])}


def _columns_changed_in_session(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """The same in the session's catalog."""
    name = plan.table() if root.name == "AlterTableAddColumnsCommand" else plan.tableName()
    table = _described(str(optional(name.database()) or "default"), str(name.table()), jvm)
    if table is None:
        return []
    return [Write(of_table(table, fields_of(table.schema()), jvm), "alter")]


DEFINITIONS: dict[str, Reader] = {
    "RenameTable": _rename,
    "AlterTableRenameCommand": _rename_command,
    "AddColumns": _columns_changed,
    "ReplaceColumns": _columns_changed,
    "DropColumns": _columns_changed,
    "RenameColumn": _columns_changed,
    "AlterColumn": _columns_changed,
    "AlterColumns": _columns_changed,
    "AlterTableAddColumnsCommand": _columns_changed_in_session,
    "AlterTableChangeColumnCommand": _columns_changed_in_session,
}
