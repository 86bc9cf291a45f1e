"""The text of a statement, with the tables that it reads at given snapshots.

Spark's own parser says where a table is named and in which part. What a statement writes, defines
or caches keeps its name, and strings, comments, columns and common table expressions are never
mistaken for tables. All else in the text stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline_spark.jvm.class_names import COMMANDS

Place = Literal["relation", "merge source", "table statement", "table argument"]
Kind = Literal["query", "command", "definition", "script"]

_DEFINITIONS = {
    "CreateView",
    "CreateViewCommand",
    "CreateIcebergView",
    "AlterViewAs",
    "AlterViewAsCommand",
}
_WRITES_ITS_FIRST = {
    "DeleteFromTable",
    "UpdateTable",
    "MergeIntoTable",
    "CacheTable",
    "UncacheTable",
}
_HIDES = {
    "PlanWithUnresolvedIdentifier": "IDENTIFIER()",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "ExecuteImmediateQuery": "EXECUTE IMMEDIATE",
}
_QUERIES = {
    "Project",
    "Aggregate",
    "UnresolvedTableValuedFunction",
    "InsertIntoStatement",
    *_WRITES_ITS_FIRST,
}


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A table that a text reads: the parts of its name, and the place where the name stands."""

    parts: tuple[str, ...]
    start: int
    end: int
    place: Place = "relation"
    aliased: bool = False

    @property
    def name(self) -> str:
        """Return the name as SQL writes it."""
        return quoted(self.parts)

    def at(self, source: str) -> str:
        """Return the text that replaces the mention when it reads `source`.

        `source` may stand behind FROM.
        """
        if self.place in ("table statement", "table argument"):
            return f"SELECT * FROM {source}"
        derived = source if source.startswith("(") else f"(SELECT * FROM {source})"
        if self.place == "relation" and derived is not source:
            return source
        return derived if self.aliased else f"{derived} AS {quoted(self.parts[-1:])}"


@dataclass(frozen=True, slots=True)
class Text:
    """A statement as Spark parsed it, and the tables that it reads by name.

    Variables are filled in. `hides` lists the constructs that name tables which the text does not
    show. `may_read` is false where the statement cannot read anything.
    """

    sql: str
    tables: tuple[Mentioned, ...] = ()
    kind: Kind = "query"
    hides: tuple[str, ...] = ()
    may_read: bool = True

    def at(self, source_of: Callable[[Mentioned], str | None]) -> str:
        """Return the text with the sources that `source_of` gives in place of its tables.

        >>> mentioned = Mentioned(("bank", "credits"), 14, 26, aliased=True)
        >>> text = Text("SELECT * FROM bank.credits c", (mentioned,))
        >>> text.at(lambda table: f"{table.name} VERSION AS OF 7")
        'SELECT * FROM `bank`.`credits` VERSION AS OF 7 c'
        """
        sql = self.sql
        for table in sorted(self.tables, key=lambda mentioned: mentioned.start, reverse=True):
            source = source_of(table)
            if source is not None:
                start = (
                    _keyword(sql, table.start) if table.place == "table statement" else table.start
                )
                sql = sql[:start] + table.at(source) + sql[table.end :]
        return sql


def quoted(parts: Sequence[str]) -> str:
    """Return a name of several parts as SQL writes it.

    >>> quoted(["lake", "a`b"])
    '`lake`.`a``b`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def text_of(spark: SparkSession, query: str) -> Text:
    """Parse a statement; nothing is looked up and nothing runs. Raises Spark's ParseException."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    plan = parser.parsePlan(query)
    origin = plan.origin().sqlText()
    sql = str(origin.get()) if origin.isDefined() else query
    kind = _kind(spark, plan)
    if kind == "definition":
        return Text(sql, (), kind, (), may_read=False)
    walked = _Walk(sql, parser)
    walked.take(plan, frozenset())
    may_read = bool(kind == "query" or walked.tables or walked.hides or walked.queries)
    return Text(
        sql, tuple(dict.fromkeys(walked.tables)), kind, tuple(dict.fromkeys(walked.hides)), may_read
    )


def _kind(spark: SparkSession, plan: Any) -> Kind:
    name = _class(plan)
    if name in _DEFINITIONS:
        return "definition"
    if name == "CompoundBody":
        return "script"
    if name == "UnresolvedWith" or (name == "Union" and plan.children().size() > 0):
        return _kind(spark, plan.children().apply(0))
    lang: Any = spark._jvm.java.lang
    loader = lang.Thread.currentThread().getContextClassLoader()
    is_command = any(lang.Class.forName(kind, True, loader).isInstance(plan) for kind in COMMANDS)
    return "command" if is_command or name == "PlanWithUnresolvedIdentifier" else "query"


@dataclass(slots=True)
class _Walk:
    """One way through a plan; `shadowed` are the names of common table expressions in sight."""

    sql: str
    parser: Any
    tables: list[Mentioned] = field(default_factory=list)
    hides: list[str] = field(default_factory=list)
    queries: bool = False

    def take(
        self, plan: Any, shadowed: frozenset[str], place: Place = "relation", aliased: bool = False
    ) -> None:
        """Note what a node and all below it read."""
        kind = _class(plan)
        self.queries = self.queries or kind in _QUERIES
        if kind == "UnresolvedRelation":
            self._relation(plan, shadowed, place, aliased)
        elif kind == "UnresolvedWith":
            self._with(plan, shadowed)
        elif kind == "SingleStatement":  # of a script; its children are those of its plan
            self.take(plan.parsedPlan(), shadowed)
        elif kind != "RelationTimeTravel":  # a version that the text itself asks for stays
            if kind in _HIDES:
                self.hides.append(_HIDES[kind])
            self._below(plan, kind, shadowed, place if kind == "SubqueryAlias" else "relation")

    def _below(self, plan: Any, kind: str, shadowed: frozenset[str], place: Place) -> None:
        for number, child in enumerate(_sequence(plan.children())):
            if number or kind not in _WRITES_ITS_FIRST:
                self.take(
                    child,
                    shadowed,
                    "merge source" if kind == "MergeIntoTable" else place,
                    kind == "SubqueryAlias",
                )
        for inner in _sequence(plan.innerChildren()):
            self.take(inner, shadowed)
        if kind == "CompoundBody":
            for handler in _handlers(plan):
                self.take(handler.body(), shadowed)

    def _with(self, plan: Any, shadowed: frozenset[str]) -> None:
        recursive = _is_recursive(plan)
        for relation in _sequence(plan.cteRelations()):
            name = frozenset({str(relation._1()).lower()})
            self.take(relation._2(), shadowed | name if recursive else shadowed)
            shadowed = shadowed | name
        self.take(plan.child(), shadowed)

    def _relation(self, plan: Any, shadowed: frozenset[str], place: Place, aliased: bool) -> None:
        parts = tuple(map(str, _sequence(plan.multipartIdentifier())))
        if plan.isStreaming() or (len(parts) == 1 and parts[0].lower() in shadowed):
            return
        origin = plan.origin()
        start, end = int(origin.startIndex().get()), int(origin.stopIndex().get()) + 1
        if self._parts(self.sql[start:end]) != parts:
            self.hides.append(
                "IDENTIFIER()"
                if self.sql[start:].upper().startswith("IDENTIFIER")
                else ".".join(parts)
            )
            return
        self.tables.append(Mentioned(parts, start, end, self._place(start, place), aliased))

    def _parts(self, name: str) -> tuple[str, ...] | None:
        try:
            return tuple(map(str, _sequence(self.parser.parseMultipartIdentifier(name))))
        except PySparkException:
            return None

    def _place(self, start: int, place: Place) -> Place:
        before = self.sql[:start]
        if re.search(r"\bTABLE\s*\(\s*$", before, re.IGNORECASE):
            return "table argument"
        return "table statement" if _keyword(self.sql, start) < start else place


def _is_recursive(plan: Any) -> bool:
    """Return true if the WITH says RECURSIVE.

    A common table expression then reads itself by its name.
    """
    try:
        return bool(plan.allowRecursion())
    except (Py4JError, TypeError):  # before Spark 4.1
        return False


def _handlers(script: Any) -> Sequence[Any]:
    """Return the exception handlers of a script."""
    try:
        return _sequence(script.handlers())
    except (Py4JError, TypeError):  # before Spark 4.1
        return ()


def _keyword(sql: str, start: int) -> int:
    """Return where the word TABLE right before a name begins, or where the name does."""
    match = re.search(r"\bTABLE\s+$", sql[:start], re.IGNORECASE)
    return match.start() if match else start


def _class(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def _sequence(scala_seq: Any) -> Sequence[Any]:
    return [scala_seq.apply(index) for index in range(scala_seq.size())]


def below(plan: Any) -> Iterator[Any]:
    """Yield the children of a node, then the plans of its subqueries."""
    yield from _sequence(plan.children())
    yield from _sequence(plan.innerChildren())
