"""What a statement reads, as Spark analyses it.

Views, functions and IDENTIFIER() followed, nothing executed.

Of each table it says whether it is read at a version. The tables that the statement changes are not
among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from strandline_spark.consistency.reading.sql_text import below

_TABLE_COMMANDS = {"DeleteFromTable", "UpdateTable", "MergeIntoTable", "CacheTable", "UncacheTable"}
_CHANGES_ITS_FIRST = _TABLE_COMMANDS | {"DeleteCommand", "UpdateCommand"}  # Delta's
_ROW_LEVEL = "RowLevelOperationTable"
_ICEBERG = "org.apache.iceberg.spark.source.SparkTable"
_SELECTED = re.compile(
    r"branch_.+|tag_.+|snapshot_id_\d+|at_timestamp_\d+"
)  # what of a table Iceberg names: `t.tag_a`


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table that is read: catalog.database.table, and whether at a version that the plan names (None: it may be)."""

    table: str
    at_version: bool | None

    @property
    def catalog(self) -> str:
        """The name of the table's catalog."""
        return self.table.partition(".")[0]


def reads_of(spark: SparkSession, sql: str, args: Any = None) -> list[TableRead]:
    """The tables that a statement reads. Raises what Spark raises where it cannot be analysed."""
    session: Any = spark._jsparkSession
    jvm: Any = spark._jvm
    plan = session.sessionState().sqlParser().parsePlan(sql)
    if args:
        plan = _with_arguments(session, jvm, plan, args)
    changed = _merges(plan)
    skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    analysed = session.sessionState().executePlan(plan, skip).analyzed()
    if changed and str(analysed.getClass().getSimpleName()) == "AppendData":
        return list(dict.fromkeys(_reads(analysed.query(), jvm, str(analysed.table().output()))))
    return list(dict.fromkeys(_reads(analysed, jvm)))


def _merges(plan: Any) -> bool:
    """Whether it is a MERGE.

    One that only inserts is analysed as an append of what its target, as it is, does not have.
    """
    kind = str(plan.getClass().getSimpleName())
    return kind == "MergeIntoTable" or (kind == "UnresolvedWith" and _merges(plan.child()))


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


def _reads(plan: Any, jvm: Any, target: str = "") -> Iterator[TableRead]:
    """What a plan reads; `target` is the output, with its ids, of the relation that a MERGE inserts into."""
    kind = str(plan.getClass().getSimpleName())
    if kind == "DataSourceV2Relation":
        yield from () if str(plan.output()) == target else _of_v2(plan, jvm)
    elif kind in ("LogicalRelation", "HiveTableRelation"):
        yield from _of_v1(plan, kind)
    elif kind == "MergeIntoCommand":  # Delta's
        yield from _reads(plan.source(), jvm, target)
    else:
        for number, child in enumerate(below(plan)):
            if number or kind not in _CHANGES_ITS_FIRST:
                yield from _reads(child, jvm, target)


def _of_v2(plan: Any, jvm: Any) -> Iterator[TableRead]:
    table = plan.table()
    kind = str(table.getClass().getName())
    if (
        kind.endswith(_ROW_LEVEL)
        or not plan.catalog().isDefined()
        or not plan.identifier().isDefined()
    ):
        return
    identifier = plan.identifier().get()
    if kind == _ICEBERG and _shows_metadata(table, jvm):
        return
    name = ".".join(
        (
            str(plan.catalog().get().name()),
            *map(str, identifier.namespace()),
            str(identifier.name()),
        )
    )
    if kind == _ICEBERG and _SELECTED.fullmatch(str(identifier.name())):
        yield TableRead(name.rpartition(".")[0], at_version=True)
    else:
        yield TableRead(name, _travels(plan))


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
    """Whether it is one of the tables about a table (`t.snapshots`)."""
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
