"""The tables that a statement reads and changes, as Spark analyses it.

Views, functions and IDENTIFIER() are followed; nothing is executed. A table that the statement
changes is read as it is, so it is not among the tables that are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from strandline_spark.consistency.reading.sql_text import below

_WRITES_TO_TABLE = {
    "AppendData",
    "DeleteFromTable",
    "OverwriteByExpression",
    "OverwritePartitionsDynamic",
    "ReplaceData",
    "UpdateTable",
    "WriteDelta",
}
_WRITES_TO_TARGET = {"DeleteCommand", "MergeIntoCommand", "UpdateCommand"}  # Delta's
_CACHES = {"CacheTable", "UncacheTable"}  # a table is cached as it is
_CREATES = {"CreateTableAsSelect", "ReplaceTableAsSelect"}
_ICEBERG = "org.apache.iceberg.spark.source.SparkTable"
_SELECTED = re.compile(
    r"branch_.+|tag_.+|snapshot_id_\d+|at_timestamp_\d+"
)  # what of a table Iceberg names: `t.tag_a`


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table that is read: catalog.database.table, and its state in the plan.

    `at_version` is None where the plan does not tell whether a version is read.
    """

    table: str
    at_version: bool | None

    @property
    def catalog(self) -> str:
        """The name of the table's catalog."""
        return self.table.partition(".")[0]


@dataclass(frozen=True, slots=True)
class AnalysedStatement:
    """The tables that a statement reads, and those that it changes (catalog.database.table)."""

    reads: tuple[TableRead, ...]
    changes: frozenset[str]


def analyse_statement(spark: SparkSession, sql: str, args: Any = None) -> AnalysedStatement:
    """Return the tables that a statement reads and changes.

    Raises what Spark raises for a statement that cannot be analysed.
    """
    session: Any = spark._jsparkSession
    jvm: Any = spark._jvm
    plan = session.sessionState().sqlParser().parsePlan(sql)
    if args:
        plan = _with_arguments(session, jvm, plan, args)
    skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return analyse_plan(session.sessionState().executePlan(plan, skip).analyzed(), jvm)


def analyse_plan(plan: Any, jvm: Any) -> AnalysedStatement:
    """Return the tables that an analysed plan reads and changes."""
    walk = _Walk(jvm)
    walk.take(plan)
    reads = dict.fromkeys(read for read in walk.reads if read.table not in walk.changes)
    return AnalysedStatement(tuple(reads), frozenset(walk.changes))


def _with_arguments(session: Any, jvm: Any, plan: Any, args: Any) -> Any:
    analysis, seq = jvm.org.apache.spark.sql.catalyst.analysis, jvm.PythonUtils.toSeq
    if not isinstance(args, Mapping):
        return analysis.PosParameterizedQuery(
            plan, seq([_expression(session, lit(value)) for value in args])
        )
    values = {name: _expression(session, lit(value)) for name, value in args.items()}
    try:
        return analysis.NameParameterizedQuery(plan, seq(list(values)), seq(list(values.values())))
    except (Py4JError, TypeError):  # Spark 3.5
        return analysis.NameParameterizedQuery(plan, jvm.PythonUtils.toScalaMap(values))


def _expression(session: Any, column: Any) -> Any:
    try:
        return session.expression(column._jc)
    except Py4JError:  # Spark 3.5
        return column._jc.expr()


@dataclass(slots=True)
class _Walk:
    """One way through a plan."""

    jvm: Any
    reads: list[TableRead] = field(default_factory=list)
    changes: set[str] = field(default_factory=set)

    def take(self, plan: Any) -> None:
        """Note what a node and all below it read and change."""
        kind = str(plan.getClass().getSimpleName())
        self.changes.update(_changed_by(plan, kind))
        if kind == "DataSourceV2Relation":
            self.reads.extend(_of_v2(plan, self.jvm))
        elif kind in ("LogicalRelation", "HiveTableRelation"):
            self.reads.extend(_of_v1(plan, kind))
        elif kind == "MergeIntoCommand":  # Delta's; its plans are no children
            self.take(plan.source())
        for child in below(plan):
            self.take(child)


def _changed_by(plan: Any, kind: str) -> Iterator[str]:
    """Yield the table that a node changes: catalog.database.table."""
    if kind in _WRITES_TO_TABLE | _CACHES:
        yield from _name_of_target(plan.table())
    elif kind in _WRITES_TO_TARGET:
        yield from _name_of_target(plan.target())
    elif kind == "MergeIntoTable":
        yield from _name_of_target(plan.targetTable())
    elif kind in _CREATES:
        yield _full_name(plan.name().catalog(), plan.name().identifier())
    elif kind == "InsertIntoHadoopFsRelationCommand" and plan.catalogTable().isDefined():
        yield _name_of(plan.catalogTable().get())
    elif kind == "InsertIntoHiveTable":
        yield _name_of(plan.table())


def _name_of_target(target: Any) -> Iterator[str]:
    kind = str(target.getClass().getSimpleName())
    while kind in ("SubqueryAlias", "Project", "Filter", "View"):
        target = target.child()
        kind = str(target.getClass().getSimpleName())
    if kind == "DataSourceV2Relation":
        if target.catalog().isDefined() and target.identifier().isDefined():
            yield _table_of_v2(target)
    elif kind in ("LogicalRelation", "HiveTableRelation"):
        yield from (read.table for read in _of_v1(target, kind))


def _of_v2(plan: Any, jvm: Any) -> Iterator[TableRead]:
    if not plan.catalog().isDefined() or not plan.identifier().isDefined():
        return
    is_iceberg = str(plan.table().getClass().getName()) == _ICEBERG
    if is_iceberg and _shows_metadata(plan.table(), jvm):
        return
    is_selected = is_iceberg and _SELECTED.fullmatch(str(plan.identifier().get().name()))
    yield TableRead(_table_of_v2(plan), True if is_selected else _travels(plan))


def _table_of_v2(plan: Any) -> str:
    """Return the name of a relation's table; a branch or tag of Iceberg's is its table."""
    identifier = plan.identifier().get()
    name = _full_name(plan.catalog().get(), identifier)
    table = plan.table()
    if str(table.getClass().getSimpleName()) == "RowLevelOperationTable":
        table = table.table()
    is_iceberg = str(table.getClass().getName()) == _ICEBERG
    selects = is_iceberg and _SELECTED.fullmatch(str(identifier.name()))
    return name.rpartition(".")[0] if selects else name


def _full_name(catalog: Any, identifier: Any) -> str:
    parts = (catalog.name(), *identifier.namespace(), identifier.name())
    return ".".join(map(str, parts))


def _travels(plan: Any) -> bool | None:
    try:
        return bool(plan.timeTravelSpec().isDefined())
    except (
        Py4JError,
        TypeError,
    ):  # Spark 3.5 does not keep it; there only a time travel pins Iceberg's snapshot
        table = plan.table()
        return (
            table.snapshotId() is not None if str(table.getClass().getName()) == _ICEBERG else None
        )


def _shows_metadata(table: Any, jvm: Any) -> bool:
    """Return whether it is one of the tables about a table (`t.snapshots`)."""
    lang = jvm.java.lang
    kind = lang.Class.forName(
        "org.apache.iceberg.BaseMetadataTable",
        True,
        lang.Thread.currentThread().getContextClassLoader(),
    )
    return bool(kind.isInstance(table.table()))


def _of_v1(plan: Any, kind: str) -> Iterator[TableRead]:
    if kind == "HiveTableRelation":
        yield TableRead(_name_of(plan.tableMeta()), at_version=False)
    elif plan.catalogTable().isDefined():
        yield TableRead(_name_of(plan.catalogTable().get()), _is_old_delta(plan))


def _name_of(catalog_table: Any) -> str:
    identifier = catalog_table.identifier()
    catalog = identifier.catalog()
    parts = [
        catalog.get() if catalog.isDefined() else "spark_catalog",
        identifier.database().get(),
        identifier.table(),
    ]
    return ".".join(map(str, parts))


def _is_old_delta(plan: Any) -> bool:
    try:
        return bool(plan.relation().location().isTimeTravelQuery())
    except (Py4JError, TypeError):  # not Delta's
        return False
