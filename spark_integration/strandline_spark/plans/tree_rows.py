"""A plan's tree in one round trip, with no more of each node than the reading of plans looks at.

Spark's own JSON of a plan asks Scala's reflection about every node, which is most of what reading a
plan costs. Here the nodes that plans are mostly made of say themselves what is used of them. Any
other node gives its own part of Spark's JSON, so nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from strandline_spark.jvm.class_names import (
    CONNECTOR_CATALOG,
    EXPRESSIONS,
    LOGICAL,
    METADATA,
    QUERY_EXECUTION,
    SCALA_LIST,
    SCALA_OPTION,
    SCALA_SEQ,
    SOURCES,
    SPARK_JSON,
    TREE,
    TREE_TAG,
)
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm
from strandline_spark.jvm.method_handles import UNKNOWN, Handle, Handles
from strandline_spark.plans.table_questions import QUESTIONS
from strandline_spark.plans.tree import Node

_NODE = TREE.replace(".", "/")
_CATALOGS = CONNECTOR_CATALOG.replace(".", "/")

Fields = dict[
    str, str
]  # by name: a path of methods; before a ">" what is gathered along it; a "?" before what may fail
_ATTRIBUTES = {"output": "attributes>output"}
_WRITE = {"table": "plan>table", "isByName": "isByName"}

OF_EXPRESSIONS: dict[str, Fields] = {
    f"{EXPRESSIONS}AttributeReference": {
        "exprId": "exprId.id",
        "name": "name",
        "dataType": "dataType.jsonValue",
        "metadata": "metadata.jsonValue",
    },
    f"{EXPRESSIONS}Alias": {"exprId": "exprId.id", "name": "name"},
    f"{EXPRESSIONS}Cast": {
        "dataType": "dataType.jsonValue",
        "mode": "evalMode.toString",
        "written": "written>",
    },
    f"{EXPRESSIONS}aggregate.AggregateExpression": {"isDistinct": "isDistinct"},
    f"{EXPRESSIONS}SortOrder": {
        "direction": "direction.toString",
        "nullOrdering": "nullOrdering.toString",
    },
}
NODES: dict[str, Fields] = {
    f"{LOGICAL}Project": {"projectList": "trees>projectList"},
    f"{LOGICAL}Filter": {"condition": "tree>condition"},
    f"{LOGICAL}Join": {"joinType": "joinType.toString", "condition": "option>condition"},
    f"{LOGICAL}Aggregate": {
        "groupingExpressions": "trees>groupingExpressions",
        "aggregateExpressions": "trees>aggregateExpressions",
    },
    f"{LOGICAL}Window": {"windowExpressions": "trees>windowExpressions"},
    f"{LOGICAL}Sort": {"order": "trees>order"},
    f"{LOGICAL}WithCTE": {},
    f"{LOGICAL}CTERelationDef": {"id": "id"},
    f"{LOGICAL}CTERelationRef": {"cteId": "cteId", **_ATTRIBUTES},
    f"{LOGICAL}SubqueryAlias": {
        "name": "identifier.name",
        "qualifier": "identifier.qualifier.toString",
    },
    f"{LOGICAL}View": {},
    f"{LOGICAL}Distinct": {},
    f"{LOGICAL}Union": {},
    f"{SOURCES}LogicalRelation": {
        **_ATTRIBUTES,
        "isStreaming": "isStreaming",
        "hasTable": "catalogTable.isDefined",
        "relationClass": "relation.getClass.getName",
        "known": "known>relation",
    },
    f"{SOURCES}v2.DataSourceV2Relation": {
        **_ATTRIBUTES,
        "tableClass": "table.getClass.getName",
        "catalogName": f"?catalog.get:{_CATALOGS}CatalogPlugin.name",
        "identifierText": "?identifier.get.toString",
        "withoutOptions": "options.isEmpty",
        "known": "known>table",
    },
}
# Commands: what else they hold nobody looks at, and some hold their query twice.
WRITES: dict[str, Fields] = {
    f"{LOGICAL}AppendData": _WRITE,
    f"{LOGICAL}OverwriteByExpression": _WRITE,
    f"{LOGICAL}OverwritePartitionsDynamic": _WRITE,
    f"{SOURCES}InsertIntoHadoopFsRelationCommand": {
        "outputColumnNames": "texts>outputColumnNames",
        "pathText": "outputPath.toString",
        "modeText": "mode.toString",
        "schemaText": "query.schema.json",
        "hasTable": "catalogTable.isDefined",
    },
}
# Of these nothing is used but their class, and what they are made of.
_PLAIN = (
    "Add", "Subtract", "Multiply", "Divide", "And", "Or", "Not", "EqualTo", "EqualNullSafe",
    "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "IsNull", "IsNotNull", "In",
    "If", "CaseWhen", "Coalesce", "Concat", "Upper", "Lower", "WindowExpression",
    "WindowSpecDefinition", "aggregate.Sum", "aggregate.Count", "aggregate.Min", "aggregate.Max",
    "aggregate.Average",
)  # fmt: skip
_KNOWN = {**OF_EXPRESSIONS, **NODES, **WRITES}
_NUMBERS = {class_name: number for number, class_name in enumerate(_KNOWN)}


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions of the JVM, from an object to a text.

    `plan`: from a plan to its tree, in rows that `root_of` reads. `execution`: from a
    QueryExecution to what tells it from all others, its session, the rows of its analysed plan, and
    the SQL that this is of.
    """

    plan: JavaObject
    execution: JavaObject


def rows_of(jvm: Jvm) -> Functions:
    """Join the functions for one JVM."""
    return _Program(jvm).functions


class _Program:
    """The questions to each class, joined for one JVM."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._handles = handles = Handles(jvm)
        self._count = handles.path(TREE, "children.size")
        self._class_name = handles.path("java.lang.Object", "getClass.getName")
        self._rest = self._other()
        expression = handles.by_class(
            {**self._plain(), **self._rows(OF_EXPRESSIONS, {})}, self._rest
        )
        tree = handles.gathered(TREE, expression)
        along = {
            "attributes": handles.gathered(SCALA_SEQ, expression),
            "tree": tree,
            "trees": handles.gathered(SCALA_SEQ, tree),
            "option": handles.gathered(SCALA_OPTION, tree),
            "texts": handles.gathered(SCALA_SEQ, handles.path("java.lang.Object", "toString")),
            "known": handles.by_class(self._answers_of_tables(), handles.always(None)),
        }
        nodes = self._rows(NODES, along)
        along["plan"] = handles.gathered(TREE, handles.by_class(nodes, self._rest))
        nodes |= self._rows(WRITES, along)
        mapper = jvm.static(SPARK_JSON, "MODULE$").mapper()
        whole = handles.gathered(TREE, handles.by_class(nodes, self._rest))
        number, session, plan = (
            handles.path(QUERY_EXECUTION, path)
            for path in ("id", "sparkSession.sessionUUID", "analyzed")
        )
        text = handles.or_unknown(handles.path(QUERY_EXECUTION, "analyzed.origin.sqlText.toString"))
        within = handles.or_unknown(
            handles.path(QUERY_EXECUTION, f"analyzed.children.head:{_NODE}.origin.sqlText.toString")
        )
        question = [number, session, handles.then(plan, whole), text, within]
        self.functions = Functions(
            handles.function(handles.as_json(whole, mapper)),
            handles.function(handles.as_json(handles.row(question), mapper)),
        )

    def _rows(
        self, classes: Mapping[str, Fields], along: Mapping[str, Handle]
    ) -> dict[str, Handle]:
        rows_found = {}
        for class_name, fields in classes.items():
            answers = [self._answer(class_name, path, along) for path in fields.values()]
            number = self._handles.always(_NUMBERS[class_name])
            rows_found[class_name] = self._handles.row([number, self._count, *answers])
        return rows_found

    def _answer(self, class_name: str, path: str, along: Mapping[str, Handle]) -> Handle:
        kind, _, inner = path.rpartition(">")
        if kind == "written":
            tagged = self._handles.called(TREE, "getTagValue", TREE_TAG, self._jvm.written_cast)
            return self._handles.then(tagged, self._handles.path(SCALA_OPTION, "isDefined"))
        if inner.startswith("?"):
            return self._handles.answer(class_name, inner[1:])
        handle = self._handles.path(class_name, inner)
        return self._handles.then(handle, along[kind]) if kind else handle

    def _answers_of_tables(self) -> dict[str, Handle]:
        """Return the handles for the questions of table formats on the class path."""
        found = {}
        for class_name, questions in QUESTIONS.items():
            with suppress(*JAVA_FAILED):
                answers = [
                    self._handles.answer(class_name, question) for question in questions.values()
                ]
                found[class_name] = self._handles.row(answers)
        return found

    def _plain(self) -> dict[str, Handle]:
        row = self._handles.row([self._class_name, self._count])
        return {EXPRESSIONS + name: row for name in _PLAIN}

    def _other(self) -> Handle:
        """Any other node: its own part of Spark's JSON, where its children are numbers."""
        empty = self._jvm.static(METADATA, "empty")()
        as_object = self._handles.construct(str(empty.jsonValue().getClass().getName()), SCALA_LIST)
        fields = self._handles.then(self._handles.path(TREE, "jsonFields"), as_object)
        return self._handles.row([self._class_name, self._count, fields])


def root_of(text: str) -> Node:
    """The tree of a plan's rows."""
    return _tree(json.loads(text))


def analysed_of(text: str) -> tuple[int, str, Node, str, str]:
    """Return an execution's identity, session id, analysed plan, SQL, and its first child's SQL.

    The last two as Scala shows an Option.
    """
    number, session, rows, sql, within = json.loads(text)
    return number, session, _tree(rows), sql, within


def _tree(rows: list[list[Any]]) -> Node:
    """Rows stand in pre-order: read backwards, each finds its children on the stack."""
    stack: list[Node] = []
    for row in reversed(rows):
        children = [stack.pop() for _ in range(row[1])]
        stack.append(_node(row, children))
    return stack.pop()


def _node(row: list[Any], children: list[Node]) -> Node:
    kind, count, *values = row
    if isinstance(kind, str):
        rest = values[0] if values else {}
        return Node(
            kind.rpartition(".")[2], {"class": kind, "num-children": count, **rest}, children
        )
    class_name, name, shape = _SHAPES[kind]
    fields = {"class": class_name, "num-children": count}
    for (field, read), value in zip(shape, values, strict=True):
        fields[field] = value if read is None else read(value)
    return Node(name, fields, children)


def _joined_by(text: str) -> Any:
    """A join that says whether there is a match holds the column that says it.

    `ExistenceJoin(exists#12)`.
    """
    name, _, number = text.removesuffix(")").rpartition("#")
    if not name.startswith("ExistenceJoin("):
        return text
    shown = {"class": f"{EXPRESSIONS}AttributeReference", "num-children": 0, "name": "exists"}
    return {"exists": [{**shown, "exprId": {"id": int(number)}}]}


# How a field is read: by its name, or by how it is gathered.
_READ: dict[str, Callable[[Any], Any]] = {
    "exprId": lambda number: {"id": number},
    "joinType": _joined_by,
    "attributes": lambda rows: [[_node(row, []).fields] for row in rows],
    "tree": _tree,
    "trees": lambda trees: [_tree(rows) for rows in trees],
    "option": lambda trees: _tree(trees[0]) if trees else None,
    "plan": _tree,
}


def known_of(table_class: str, answers: list[Any] | None) -> dict[str, Any]:
    """Return what a table's format asked, by the names of its questions.

    What could not be answered is left out.
    """
    questions = QUESTIONS.get(table_class, {})
    return {
        name: answer
        for name, answer in zip(questions, answers or (), strict=False)
        if answer != UNKNOWN
    }


def _shape(
    class_name: str, fields: Fields
) -> tuple[str, str, list[tuple[str, Callable[[Any], Any] | None]]]:
    reads = [(field, _READ.get(path.rpartition(">")[0] or field)) for field, path in fields.items()]
    return class_name, class_name.rpartition(".")[2], reads


_SHAPES = [_shape(class_name, fields) for class_name, fields in _KNOWN.items()]
