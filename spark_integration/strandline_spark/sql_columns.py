"""Column lineage of a statement, without running it: `column_lineage(spark, sql)`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strandline_spark.model.statement import Dataset, Statement


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """One origin of one column.

    Tables are catalog.database.table; transform is None for a column taken as it is.

    `type` is DIRECT where the value comes from the origin, INDIRECT where that only decides which
    value there is (the condition of a CASE, the order of a window). Two rows that differ in nothing
    else are equal.
    """

    source_table: str
    source_column: str
    target_table: str
    target_column: str
    transform: str | None
    type: str = field(default="DIRECT", compare=False)


def column_lineage(spark: Any, sql: str) -> list[ColumnLineage]:
    """Return the column lineage of a statement that writes or selects, without running it.

    One row an origin, in the order of the target's columns; a column without an origin (a literal,
    now()) has no row. The target of a SELECT is the empty name. Files and topics, which are no
    tables, go by their dataset's name.
    """
    from strandline_spark.extraction.reader import PlanReader

    state = spark._jsparkSession.sessionState()
    mode = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    execution = state.executePlan(state.sqlParser().parsePlan(sql), mode)
    execution.analyzed()  # an error of the statement is the caller's to see, as Spark tells it
    return rows_of(PlanReader(spark).at_start(execution))


def rows_of(statement: Statement) -> list[ColumnLineage]:
    """Return the rows of a statement that was read.

    Every origin of every column, however it takes part in the value.
    """
    if statement.branches:
        return [row for branch in statement.branches for row in rows_of(branch)]
    rows = _every_origin(statement)
    direct = {row: row for row in rows if row.type == "DIRECT"}
    return [direct.get(row, row) for row in dict.fromkeys(rows)]


def _every_origin(statement: Statement) -> list[ColumnLineage]:
    sources = {(dataset.namespace, dataset.name): _table(dataset) for dataset in statement.inputs}
    target = _table(statement.outputs[0].dataset) if statement.outputs else ""
    return [
        ColumnLineage(
            sources.get(o.dataset, o.dataset[1]), o.column, target, column.name, o.transform, o.type
        )
        for column in statement.columns
        for o in column.origins
    ]


def _table(dataset: Dataset) -> str:
    return dataset.table or dataset.name
