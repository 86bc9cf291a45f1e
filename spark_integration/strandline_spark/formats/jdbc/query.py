"""A query that stands in place of a table behind JDBC.

The tables it reads and what its columns are made of.

Spark's own parser reads it. What that cannot read is the database's own dialect and has no lineage.
Where a column's table cannot be determined from the text alone, that column has no origin: nothing
is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline_spark.columns.expression import Value, constant
from strandline_spark.columns.expressions import value_of
from strandline_spark.jvm.client import JAVA_FAILED, Jvm
from strandline_spark.plans.tree import Node
from strandline_spark.plans.tree_source import tree_of_plan

ColumnOf = Callable[[str, str], Value]  # (table, column) -> what it stands for

_QUOTED_TEXT = ("jdbc:mysql:", "jdbc:mariadb:", "jdbc:hive2:", "jdbc:databricks:")
_AGGREGATES = {
    "sum",
    "count",
    "avg",
    "mean",
    "min",
    "max",
    "stddev",
    "variance",
    "first",
    "last",
    "any_value",
}
_AROUND = {
    *(
        "Sort",
        "Distinct",
        "GlobalLimit",
        "LocalLimit",
        "UnresolvedHaving",
        "Offset",
        "UnresolvedWith",
        "SubqueryAlias",
    )
}
_SELECTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
_NAMES = {"UnresolvedAlias", "Alias"}


class _UnknownError(Exception):
    """The text alone does not say."""


@dataclass(frozen=True, slots=True)
class _Source:
    """An item of a FROM: its name there, and its columns.

    Of a table (`table`), or of a query (`columns`).
    """

    name: str
    table: str | None = None
    columns: Mapping[str, Value] | None = None


@dataclass(frozen=True, slots=True)
class JdbcQuery:
    """A query as it was parsed, with the common table expressions that were prepared for it."""

    root: Node
    text: str = ""

    @property
    def tables(self) -> list[str]:
        """The tables that it names, its common table expressions not among them."""
        expressions = {name.lower() for name, _ in _expressions(self.root)}
        tables = dict[str, None]()
        for node in self.root.everything():
            if node.name == "UnresolvedRelation":
                parts = node.fields["multipartIdentifier"]
                if len(parts) > 1 or parts[0].lower() not in expressions:
                    tables[_spelt(parts, self.text)] = None
        return list(tables)

    def columns(self, names: Sequence[str], column_of: ColumnOf) -> list[Value]:
        """Return the sources of each of its columns, in order.

        Nothing for those that cannot be determined.
        """
        try:
            reading = _Reading(self.root, self.text, column_of)
            found = [value for _, value in reading.select(self.root, names)]
        except _UnknownError:
            found = []
        return found if len(found) == len(names) else [() for _ in names]


def query_of(url: str, text: str, jvm: Jvm) -> JdbcQuery | None:
    """The query, if Spark's parser can read it.

    Double quotes are tried first as what they are in the database: names, but text in MySQL.
    """
    parser = jvm.session.sessionState().sqlParser()
    readings = [_in_backticks(text), text]
    if url.startswith(_QUOTED_TEXT):
        readings.reverse()
    for text_tried in dict.fromkeys(readings):
        try:
            return JdbcQuery(tree_of_plan(parser.parsePlan(text_tried)).root, text)
        except JAVA_FAILED:
            continue
    return None


def _in_backticks(text: str) -> str:
    """Quoted names as Spark quotes them; what stands in single quotes is text."""
    pieces = text.split("'")
    return "'".join(
        piece if index % 2 else piece.replace('"', "`") for index, piece in enumerate(pieces)
    )


def _spelt(parts: Sequence[str], text: str) -> str:
    """Return a table's name; parts that the text has in double quotes are in them."""
    return ".".join(f'"{part}"' if f'"{part}"' in text else part for part in parts)


def _expressions(root: Node) -> Iterator[tuple[str, Node]]:
    """The common table expressions: name and query."""
    for node in root.everything():
        for relation in node.fields.get("cteRelations") or ():
            yield str(relation["_1"]), relation["_2"]


class _Reading:
    """Reads what the columns of a query are made of."""

    def __init__(self, root: Node, text: str, column_of: ColumnOf) -> None:
        self._text = text
        self._common = {name.lower(): query for name, query in _expressions(root)}
        self._column_of = column_of
        self._open = set[str]()  # expressions that are being read

    def select(self, node: Node, names: Sequence[str] = ()) -> list[tuple[str, Value]]:
        """Name and value of each column of a SELECT; `names` are those of its stars."""
        while node.name in _AROUND:
            node = node.children[-1]
        if node.name == "Union":
            return self._union(node, names)
        if node.name not in _SELECTS:
            raise _UnknownError
        sources = list(self._sources(node.children[0]))
        items = node.nodes(_SELECTS[node.name])
        selected = list[tuple[str, Value]]()
        for index, item in enumerate(items):
            if item.name == "UnresolvedStar":
                others = len(items) - index - 1  # columns that stand behind the star
                in_star = names[len(selected) : len(names) - others]
                one_star = all(other.name != "UnresolvedStar" for other in items[index + 1 :])
                own = _sources_of(item, sources)
                selected += self._star(own, in_star if one_star else ())
            else:
                selected.append((_name_of(item), self._value(item, sources)))
        return selected

    def _union(self, node: Node, names: Sequence[str]) -> list[tuple[str, Value]]:
        """Return the columns by their positions; names are those of the first branch."""
        first, *others = [
            self.select(child, names if index == 0 else ())
            for index, child in enumerate(node.children)
        ]
        if any(len(other) != len(first) for other in others):
            raise _UnknownError
        return [
            (name, (*value, *(term for other in others for term in other[index][1])))
            for index, (name, value) in enumerate(first)
        ]

    def _star(self, sources: Sequence[_Source], names: Sequence[str]) -> list[tuple[str, Value]]:
        if len(sources) != 1:
            raise _UnknownError
        (source,) = sources
        if source.columns is not None:
            return list(source.columns.items())
        if not names:
            raise _UnknownError
        return [(name, self._column_of(str(source.table), name)) for name in names]

    def _sources(self, node: Node, name: str | None = None) -> Iterator[_Source]:
        if node.name == "UnresolvedRelation":
            yield self._named(node.fields["multipartIdentifier"], name)
        elif node.name == "SubqueryAlias" and node.children[0].name in {
            "UnresolvedRelation",
            "SubqueryAlias",
        }:
            yield from self._sources(
                node.children[0], name or str(node.fields["identifier"]["name"])
            )
        elif node.name == "SubqueryAlias":
            columns = dict(self.select(node.children[0]))
            yield _Source(name or str(node.fields["identifier"]["name"]), columns=columns)
        elif node.name in {"Filter", "Join"}:
            for child in node.children:
                yield from self._sources(child)
        else:
            raise _UnknownError

    def _named(self, parts: Sequence[str], name: str | None) -> _Source:
        expression = parts[-1].lower()
        if len(parts) > 1 or expression not in self._common:
            return _Source(name or parts[-1], _spelt(parts, self._text))
        if expression in self._open:
            raise _UnknownError  # it reads itself
        self._open.add(expression)
        try:
            columns = dict(self.select(self._common[expression]))
        finally:
            self._open.remove(expression)
        return _Source(name or parts[-1], columns=columns)

    def _value(self, item: Node, sources: Sequence[_Source]) -> Value:
        try:
            context = _Seen(sources, self._column_of)
            return value_of(context.resolvable(item), context)
        except _UnknownError:
            return ()


def _sources_of(star: Node, sources: Sequence[_Source]) -> list[_Source]:
    """Return the sources that `*` means, or `name.*`."""
    target = star.fields.get("target")
    if not target:
        return list(sources)
    name = str(target[-1]).lower()
    return [source for source in sources if source.name.lower() == name]


def _name_of(item: Node) -> str:
    if item.name == "UnresolvedAttribute":
        return str(item.fields["nameParts"][-1])
    return str(item.fields.get("name") or "")


class _Seen:
    """The columns that an expression of a SELECT can see.

    They are keyed by the numbers that its attributes are given here.
    """

    def __init__(self, sources: Sequence[_Source], column_of: ColumnOf) -> None:
        self._sources = sources
        self._column_of = column_of
        self._values: list[Value] = []

    def resolvable(self, node: Node) -> Node:
        """The expression as if it were analysed: attributes with ids, functions by their names."""
        children = [self.resolvable(child) for child in node.children]
        if node.name == "UnresolvedAttribute":
            self._values.append(self._found(node.fields["nameParts"]))
            return Node(
                "AttributeReference",
                {"exprId": len(self._values) - 1, "name": "column"},
                [],
            )
        if node.name == "UnresolvedFunction":
            name = str(node.fields["nameParts"][-1]).lower()
            called = Node(name.capitalize(), {}, children)
            return (
                Node("AggregateExpression", node.fields, [called])
                if name in _AGGREGATES
                else called
            )
        if node.name in _NAMES:
            return children[0]
        if node.name.startswith("Unresolved") or node.node("plan") is not None:
            raise _UnknownError
        return Node(node.name, node.fields, children)

    def _found(self, parts: Sequence[str]) -> Value:
        named = [
            source
            for source in self._sources
            if len(parts) < 2 or source.name.lower() == parts[-2].lower()
        ]
        if len(named) != 1:
            raise _UnknownError
        if named[0].columns is None:
            return self._column_of(str(named[0].table), parts[-1])
        same = [
            value for name, value in named[0].columns.items() if name.lower() == parts[-1].lower()
        ]
        if len(same) != 1:
            raise _UnknownError
        return same[0]

    def value(self, attribute: Node) -> Value:
        """Return the sources of an attribute."""
        return self._values[attribute.expr_id] or constant("")

    def subquery(self, expression: Node) -> Value:
        """A subquery has no lineage."""
        raise _UnknownError
