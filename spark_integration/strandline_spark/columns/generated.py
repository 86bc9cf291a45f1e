"""Columns that a table itself makes of others (`day DATE GENERATED ALWAYS AS (CAST(at AS DATE))`).

No plan of a write names them: the format fills them in while it writes. Their expressions are
analysed by Spark over columns of the same names and types, and read as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from strandline_spark.columns.expression import Value, constant, quoted
from strandline_spark.columns.expressions import value_of
from strandline_spark.jvm.client import JAVA_FAILED, Jvm
from strandline_spark.model.statement import Field
from strandline_spark.plans.tree import Node
from strandline_spark.plans.tree_source import tree_of_plan

Columns = Sequence[tuple[str, Value]]


def generated_columns(
    expressions: Mapping[str, str], schema: Sequence[Field], columns: Columns, jvm: Jvm
) -> Iterator[tuple[str, Value]]:
    """The columns that are generated and not given.

    `expressions`: by column, as SQL; `schema`: the table's.
    """
    values = {name.lower(): value for name, value in columns}
    for name, expression in expressions.items():
        if name.lower() not in values:
            try:
                yield name, _value(expression, schema, values, jvm)
            except JAVA_FAILED:  # a function of another session, say
                continue


def _value(
    expression: str, schema: Sequence[Field], values: Mapping[str, Value], jvm: Jvm
) -> Value:
    nulls = ", ".join(f"CAST(NULL AS {field.type}) AS {quoted(field.name)}" for field in schema)
    state = jvm.session.sessionState()
    plan = state.sqlParser().parsePlan(f"SELECT {expression} AS generated FROM (SELECT {nulls})")
    skip = jvm.view.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    root = tree_of_plan(state.executePlan(plan, skip).analyzed()).root
    alias = root.nodes("projectList")[0]
    return value_of(alias.children[0], _ByName(values))


class _ByName:
    """The names that such an expression can see: the columns that are written, by name."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def value(self, attribute: Node) -> Value:
        name = str(attribute.fields["name"])
        return self._values.get(name.lower()) or constant(name)

    def subquery(self, expression: Node) -> Value:
        return constant("NULL")
