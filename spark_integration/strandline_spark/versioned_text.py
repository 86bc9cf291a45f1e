"""A query's text with each of its tables at a given snapshot.

Spark's own parser says where a table is named; `VERSION AS OF` goes right behind the name. So strings, comments, column
names and common table expressions are never mistaken for tables, and the rest of the text stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

_PART = r"(?:`(?:[^`]|``)+`|[^\s.`,;()]+)"


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A table named in a text: its name's parts, and where the name ends."""

    parts: tuple[str, ...]
    end: int

    @property
    def name(self) -> str:
        """The name as SQL writes it."""
        return ".".join("`" + part.replace("`", "``") + "`" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Text:
    """A statement as Spark parsed it (variables are filled in), and the tables that it reads."""

    sql: str
    tables: tuple[Mentioned, ...]

    def at(self, snapshots: Mapping[str, str]) -> str:
        """The text with a version behind each table whose quoted name `snapshots` knows.

        >>> Text("SELECT * FROM bank.credits c", (Mentioned(("bank", "credits"), 26),)).at({"`bank`.`credits`": "7"})
        'SELECT * FROM bank.credits VERSION AS OF 7 c'
        """
        sql = self.sql
        for table in sorted(self.tables, key=lambda mentioned: mentioned.end, reverse=True):
            if table.name in snapshots:
                sql = f"{sql[: table.end]} VERSION AS OF {snapshots[table.name]}{sql[table.end :]}"
        return sql


def text_of(spark: SparkSession, query: str) -> Text:
    """Parse a statement; nothing is looked up and nothing runs. Raises Spark's ParseException."""
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(query)
    found = list(_relations(plan, frozenset()))
    origin = plan.origin().sqlText()
    sql = str(origin.get()) if origin.isDefined() else query
    return Text(sql, tuple(_mentioned(sql, parts, start) for parts, start in found))


Relation = tuple[tuple[str, ...], int]


def _relations(plan: Any, shadowed: frozenset[str]) -> Iterator[Relation]:
    """The tables below a node; `shadowed` are the names of common table expressions in sight."""
    kind = str(plan.getClass().getSimpleName())
    if kind == "UnresolvedRelation":
        parts = tuple(_sequence(plan.multipartIdentifier()))
        if not (len(parts) == 1 and parts[0].lower() in shadowed):
            yield parts, int(plan.origin().startIndex().get())
    elif kind == "UnresolvedWith":
        yield from _with(plan, shadowed)
    elif kind != "RelationTimeTravel":  # a version that the text itself asks for stays
        for below in (*_sequence(plan.children()), *_sequence(plan.innerChildren())):
            yield from _relations(below, shadowed)


def _with(plan: Any, shadowed: frozenset[str]) -> Iterator[Relation]:
    for relation in _sequence(plan.cteRelations()):
        yield from _relations(relation._2(), shadowed)
        shadowed = shadowed | {str(relation._1()).lower()}
    yield from _relations(plan.child(), shadowed)


def _sequence(scala_seq: Any) -> Sequence[Any]:
    return [scala_seq.apply(index) for index in range(scala_seq.size())]


def _mentioned(sql: str, parts: tuple[str, ...], start: int) -> Mentioned:
    pattern = re.compile(r"\s*\.\s*".join([_PART] * len(parts)))
    found = pattern.match(sql, start)
    if found is None:
        raise ValueError(f"table {'.'.join(parts)} is not named at position {start} of the query")
    return Mentioned(parts, found.end())
