"""The leaves of a plan, which mention data, with Spark's JVM objects for them.

A plan's tree says little of tables and relations, so the leaves themselves are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from strandline_spark.extraction.brought_in import BROUGHT_IN
from strandline_spark.extraction.unread import UNREADABLE, unread
from strandline_spark.formats.catalog_tables import SESSION_CATALOG
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.registry import PLANS_IN, READS
from strandline_spark.jvm.class_names import IDENTIFIER
from strandline_spark.jvm.client import (
    JAVA_FAILED,
    JavaObject,
    Jvm,
    Known,
    optional,
    present,
    simple_name,
)
from strandline_spark.jvm.parsed_texts import kind_and_place
from strandline_spark.model.inlined_views import parts_in
from strandline_spark.model.names import qualified
from strandline_spark.model.statement import Field
from strandline_spark.plans.schemas import fields_of, schema_of
from strandline_spark.plans.tree import Node
from strandline_spark.plans.tree_source import Leaves, Tree, tree_of_plan
from strandline_spark.plans.unused_ctes import unused_nodes

V2_LEAVES = {"DataSourceV2Relation", "DataSourceV2ScanRelation"}
STREAM_LEAVES = {"StreamingDataSourceV2Relation", "StreamingDataSourceV2ScanRelation"}
V1_LEAVES = {"LogicalRelation", "LogicalRelationWithTable", "HiveTableRelation"}
_UNBOUND_LEAVES = {"StreamingExecutionRelation"}
_UNSTARTED_LEAVES = {
    "StreamingRelationV2",
    "StreamingRelation",
}  # of a stream that no query runs yet
DATA_LEAVES = V2_LEAVES | STREAM_LEAVES | V1_LEAVES | _UNSTARTED_LEAVES


def mentions_of(
    plan: JavaObject, tree: Tree, jvm: Jvm, within: Mention | None = None
) -> Iterator[Mention]:
    """All data that a plan reads, its subqueries and the plans inside a command included.

    `within` is the view that the plan belongs to.
    """
    subqueries = jvm.sequence(plan.subqueriesAll()) if tree.nests else ()
    views = _Views(jvm, bool(subqueries))
    yield from _of_leaves(plan, tree, jvm, views, within)
    for subquery in subqueries:
        around = views.around(subquery) or within
        yield from _of_leaves(subquery, tree_of_plan(subquery), jvm, views, around)


def read_by_commands(plan: JavaObject, root: Node, jvm: Jvm) -> Sequence[Mention]:
    """Return what a command reads that is no plan inside it.

    The table that is cloned, the version that is restored, the files that are loaded.
    """
    read = READS.get(root.name) or BROUGHT_IN.get(root.name)
    try:
        return read(plan, jvm) if read is not None else ()
    except UNREADABLE as error:
        return [Mention(unread=unread(root.name, error))]


class _Views:
    """The views of a catalog that a plan and its subqueries read.

    A subquery is known by its hash: it stands apart from the plan that it belongs to.
    """

    def __init__(self, jvm: Jvm, nests: bool) -> None:
        self._jvm = jvm
        self._nests = nests
        self._of_subqueries: dict[int, Mention] = {}

    def around(self, subquery: JavaObject) -> Mention | None:
        """Return the innermost of the views found so far whose query the subquery belongs to."""
        return self._of_subqueries.get(subquery.hashCode()) if self._of_subqueries else None

    def in_plan(
        self, plan: JavaObject, root: Node, unused: frozenset[int], within: Mention | None
    ) -> tuple[list[Mention], dict[int, Mention]]:
        """Return the views that a plan reads.

        The second value is the innermost view around each leaf, by its id.
        """
        views, of_leaves = list[Mention](), dict[int, Mention]()
        waiting = [(root, Known(lambda: plan), within)]
        while waiting:
            node, below, around = waiting.pop()
            if id(node) in unused:
                continue
            try:
                view = _view_at(node, below, self._jvm)
            except UNREADABLE as error:
                view = Mention(unread=unread(f"the view of a {node.name}", error))
            if view is not None:
                around = replace(view, within=around)
                views.append(around)
                for subquery in self._jvm.sequence(below.subqueriesAll()) if self._nests else ():
                    self._of_subqueries[subquery.hashCode()] = around
            if around is not None and not node.children:
                of_leaves[id(node)] = around
            for index, child in enumerate(node.children):
                waiting.append((child, Known(partial(_child, below, index)), around))
        return views, of_leaves


def _of_leaves(
    plan: JavaObject, tree: Tree, jvm: Jvm, views: _Views, within: Mention | None = None
) -> Iterator[Mention]:
    slot, leaves, unused = 0, Leaves(plan, tree.root), unused_nodes(tree.root)
    of_catalog, views_around = views.in_plan(plan, tree.root, unused, within)
    for index, node in enumerate(leaves.nodes):
        if id(node) in unused:
            slot += _is_source(node)
            continue
        leaf, around = Known(partial(leaves.__getitem__, index)), views_around.get(id(node))
        if node.name == "LogicalRDD":
            yield Mention(rows=leaf)
        if node.name in DATA_LEAVES | _UNBOUND_LEAVES:
            for mention in _mentions(leaf, node, jvm):
                yield replace(mention, slot=slot, within=around)
        slot += _is_source(node)
        for name, inner in nested_plans(node):
            inner_tree = replace(tree, root=inner)
            yield from mentions_of(getattr(leaf, name)(), inner_tree, jvm, around)
    yield from of_catalog


def _view_at(node: Node, plan: JavaObject, jvm: Jvm) -> Mention | None:
    """Return the mention of the view that a node of a plan is; None if it is none of a catalog."""
    if node.name == "View":
        return None if node.fields["isTempView"] else _view(plan)
    if node.name != "SubqueryAlias":
        return None
    parts = parts_in(str(node.fields["identifier"]["name"]))
    if parts is not None:
        return _inlined_view(plan, parts, jvm)
    return _view_of_catalog(plan, jvm) if _may_be_view(node) else None


def _inlined_view(alias: JavaObject, parts: Sequence[str], jvm: Jvm) -> Mention:
    """Return the mention of a view whose query stands in its place, to be read at a version."""
    catalog, *namespace, name = parts
    schema = fields_of(alias.schema())
    if catalog == SESSION_CATALOG:
        options = {"database": ".".join(namespace), "view": name}
        return Mention(schema, provider="view", options=options)
    return Mention(
        schema,
        catalog=jvm.catalog(catalog),
        identifier=jvm.static(IDENTIFIER, "of")(jvm.array("java.lang.String", *namespace), name),
        provider="view",
    )


def _may_be_view(node: Node) -> bool:
    """Return whether it is a query under the whole name of something in a catalog."""
    if not node.children[0].children:
        return False
    qualifier = node.fields["identifier"]["qualifier"]
    return len(qualifier) > 1 and node.children[0].name != "View"


def _view_of_catalog(alias: JavaObject, jvm: Jvm) -> Mention | None:
    """Return the mention of a catalog's own view, whose query stands under its name.

    None for a table of which Spark reads more than its relation, as with CHAR columns.
    """
    try:
        catalog_name, *namespace = jvm.sequence(alias.identifier().qualifier())
        catalog = jvm.catalog(catalog_name)
        parts = jvm.array("java.lang.String", *namespace)
        identifier = jvm.static(IDENTIFIER, "of")(parts, alias.identifier().name())
        if not catalog.viewExists(identifier):
            return None
        return Mention(
            fields_of(alias.schema()), catalog=catalog, identifier=identifier, provider="view"
        )
    except JAVA_FAILED:  # a catalog without views
        return None


def _child(plan: JavaObject, index: int) -> JavaObject:
    return plan.children().apply(index)


def _view(view: JavaObject) -> Mention:
    """Return the mention of a view of the session's catalog."""
    name = view.desc().identifier()
    options = {"database": str(optional(name.database())), "view": str(name.table())}
    return Mention(fields_of(view.desc().schema()), provider="view", options=options)


def _mentions(leaf: JavaObject, node: Node, jvm: Jvm) -> list[Mention]:
    """Return what a leaf mentions; of one that cannot be read, that and why.

    The other leaves are read all the same.
    """
    try:
        if node.name in _UNBOUND_LEAVES:
            return [_of_source(leaf, node)]
        mention = mention_of(leaf, node, jvm)
        return _aligned(mention, jvm) if _is_aligned(mention) else [mention]
    except UNREADABLE as error:
        return [Mention(unread=unread(node.name, error))]


def _is_aligned(mention: Mention) -> bool:
    """Return whether it is `strandline_aligned`, a stream over several tables."""
    if (
        mention.offsets is None
        or mention.table is None
        or simple_name(mention.table) != "PythonTable"
    ):
        return False
    return str(mention.table.name()).endswith("strandline_aligned")


def _aligned(stream: Mention, jvm: Jvm) -> list[Mention]:
    """A mention of each of its tables, with the columns that the table has."""
    options = {key.lower(): value for key, value in stream.options.items()}
    mentions = []
    for name in options["tables"].split(","):
        plan = jvm.session.table(name.strip()).queryExecution().analyzed()
        table = next(mentions_of(plan, tree_of_plan(plan), jvm))
        own = {column.name.lower() for column in table.schema}
        columns = tuple(
            (expr_id, column) for expr_id, column in stream.columns if column.lower() in own
        )
        rows = {"rows": options.get("rows", "changes").lower()}
        mentions.append(replace(table, columns=columns, offsets=stream.offsets, options=rows))
    return mentions


def _is_source(node: Node) -> bool:
    """Return whether a leaf takes a place in the offset log.

    A source without news stands in the plan as an empty relation.
    """
    return node.name in STREAM_LEAVES | _UNBOUND_LEAVES or bool(node.fields.get("isStreaming"))


def _of_source(leaf: JavaObject, node: Node) -> Mention:
    """A source of Spark's older kind in a query that has run no micro-batch yet.

    It shows itself as Kind[place].
    """
    output = node.nodes("output")
    kind, place = kind_and_place(str(leaf.source().toString()))
    provider = "files" if kind.startswith("FileStreamSource") else kind.lower()
    options = {"path": place}
    if provider == "deltasource":
        first_version = optional(leaf.source().getStartingVersion())
        if first_version is not None:
            options["startingVersion"] = str(first_version)
    return Mention(
        schema_of(output),
        _columns(output),
        provider=provider,
        options=options,
        offsets=(None, None),
    )


def nested_plans(node: Node) -> list[tuple[str, Node]]:
    """The plans that a command keeps in its fields, out of reach of `collectLeaves`.

    Field and tree.
    """
    fields = {*_PLAN_FIELDS, *PLANS_IN.get(node.name, ())}
    return [
        (name, tree)
        for name in node.fields
        if name in fields and (tree := node.node(name)) is not None
    ]


_FILE_METADATA = "_metadata"
_PLAN_FIELDS = {"query", "source", "target", "plan", "originalPlan"}


Columns = tuple[tuple[int, str], ...]


def _columns(output: Sequence[Node]) -> Columns:
    return tuple((a.expr_id, str(a.fields["name"])) for a in output if "exprId" in a.fields)


def mention_of(leaf: JavaObject, node: Node, jvm: Jvm) -> Mention:
    """Return the datasets of a leaf of the plan."""
    output = node.nodes("output")
    schema, ids = _without_metadata(schema_of(output), leaf, node), _columns(output)
    if node.name in V1_LEAVES:
        return _v1(leaf, node, schema, ids)
    if node.name in STREAM_LEAVES:
        return _stream(leaf, node, schema, ids, jvm)
    if node.name == "StreamingRelationV2":
        relation = of_relation(leaf, jvm, schema, ids, leaf.extraOptions())
        return replace(relation, offsets=(None, None))
    if node.name == "StreamingRelation":
        return _unstarted(leaf, schema, ids, jvm)
    if "known" in node.fields:
        return of_known_relation(leaf, node, jvm, schema, ids)
    relation = leaf.relation() if node.name == "DataSourceV2ScanRelation" else leaf
    return of_relation(relation, jvm, schema, ids)


def _without_metadata(schema: tuple[Field, ...], leaf: JavaObject, node: Node) -> tuple[Field, ...]:
    """Return a schema without the metadata of files, which Spark does not always mark as such.

    A table can have a column of that name: only the relation itself tells.
    """
    if all(field.name != _FILE_METADATA for field in schema):
        return schema
    if node.name == "StreamingRelation":
        stored = leaf.dataSource().sourceInfo().schema()
    elif node.name in {"LogicalRelation", "LogicalRelationWithTable"}:
        stored = leaf.relation().schema()
    else:
        return schema
    if _FILE_METADATA in map(str, stored.fieldNames()):
        return schema
    return tuple(field for field in schema if field.name != _FILE_METADATA)


def of_known_relation(
    relation: JavaObject, node: Node, jvm: Jvm, schema: tuple[Field, ...] = (), ids: Columns = ()
) -> Mention:
    """Return what a DataSourceV2Relation mentions whose own fields came with its plan's rows."""
    fields = node.fields
    if fields["known"]["class"].endswith(".RowLevelOperationTable"):
        return of_relation(relation, jvm, schema, ids)
    catalog = identifier = None
    if fields["catalogName"] is not None:
        catalog = Known(lambda: relation.catalog().get(), {"name": fields["catalogName"]})
    if fields["tableName"] is not None:
        name = {"dotted": qualified(*fields["namespace"], fields["tableName"])}
        identifier = Known(lambda: relation.identifier().get(), name)
    return Mention(
        schema,
        ids,
        table=Known(lambda: relation.table(), fields["known"]),
        catalog=catalog,
        identifier=identifier,
        options={} if fields["withoutOptions"] else jvm.mapping(relation.options()),
    )


def of_relation(
    relation: JavaObject,
    jvm: Jvm,
    schema: tuple[Field, ...] = (),
    ids: Columns = (),
    options: JavaObject | None = None,
) -> Mention:
    """Return what a DataSourceV2Relation mentions.

    The table of a row-level operation is the one inside it.
    """
    table, options = relation.table(), relation.options() if options is None else options
    if simple_name(table) == "RowLevelOperationTable":
        table = table.table()
    return Mention(
        schema,
        ids,
        table=table,
        catalog=present(relation.catalog()),
        identifier=present(relation.identifier()),
        options=jvm.mapping(options) if not options.isEmpty() else {},
    )


def _v1(leaf: JavaObject, node: Node, schema: tuple[Field, ...], ids: Columns) -> Mention:
    if node.name == "HiveTableRelation":
        columns = [*node.nodes("dataCols"), *node.nodes("partitionCols")]
        return Mention(schema_of(columns), _columns(columns), catalog_table=leaf.tableMeta())
    offsets = (None, None) if node.fields.get("isStreaming") else None
    table = optional(leaf.catalogTable()) if node.fields.get("hasTable", True) else None
    return Mention(
        schema, ids, relation=_relation(leaf, node), catalog_table=table, offsets=offsets
    )


def _relation(leaf: JavaObject, node: Node) -> JavaObject:
    """A relation with those of its own fields that came with its plan's tree."""
    if "known" not in node.fields:
        return leaf.relation()
    relation = Known(lambda: leaf.relation(), node.fields["known"])
    if "indexClass" in relation.answers:
        index = Known(lambda: relation.location(), {"class": relation.answers["indexClass"]})
        relation.answers["index"] = index
    return relation


def _stream(
    leaf: JavaObject, node: Node, schema: tuple[Field, ...], ids: Columns, jvm: Jvm
) -> Mention:
    offsets = _offset(leaf.startOffset()), _offset(leaf.endOffset())
    if (
        node.name == "StreamingDataSourceV2Relation"
    ):  # Spark 3.5: no table inside, only the name that was asked for
        catalog, identifier = optional(leaf.catalog()), optional(leaf.identifier())
        table = (
            catalog.loadTable(identifier)
            if catalog is not None and identifier is not None
            else None
        )
        return Mention(
            schema,
            ids,
            table=table,
            catalog=catalog,
            identifier=identifier,
            relation=leaf.stream(),
            offsets=offsets,
        )
    relation = leaf.relation()
    return Mention(
        schema,
        ids,
        table=relation.table(),
        catalog=optional(relation.catalog()),
        identifier=optional(relation.identifier()),
        relation=leaf.stream(),
        options=jvm.mapping(relation.options()),
        offsets=offsets,
    )


def _unstarted(leaf: JavaObject, schema: tuple[Field, ...], ids: Columns, jvm: Jvm) -> Mention:
    """A source of Spark's older kind in a stream that no query runs.

    It has its options, and the table that was named.
    """
    source = leaf.dataSource()
    return Mention(
        schema,
        ids,
        catalog_table=optional(source.catalogTable()),
        provider=str(source.className()).lower(),
        options=jvm.options(source.options()),
        offsets=(None, None),
    )


def _offset(offset: JavaObject) -> str | None:
    present_offset = optional(offset)
    return str(present_offset.json()) if present_offset is not None else None
