"""The probe: compiled in the driver, it writes down what plans are made of."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from strandline_spark import activation
from strandline_spark.jvm import probe
from strandline_spark.jvm.class_names import IMPORTED
from strandline_spark.jvm.client import JAVA_FAILED, ask
from strandline_spark.plans.tree import Node
from strandline_spark.plans.tree_source import tree_of_plan

pytestmark = pytest.mark.spark


@pytest.fixture
def other_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark that lacks a class of which the probe makes use.

    The probe that others asked stays: Py4J would call the methods of its class on one compiled anew.
    """
    monkeypatch.setattr(probe, "_class_of", probe._class_of.__wrapped__)
    monkeypatch.setattr(probe, "IMPORTED", (*IMPORTED, "org.apache.spark.NoSuchClass"))


def tree_of(frame: Any) -> Node:
    return tree_of_plan(frame._jdf.queryExecution().analyzed()).root


@pytest.mark.usefixtures("other_spark")
def test_spark_on_which_the_probe_does_not_compile_has_one_warning_and_no_events(
    lake: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="strandline"):
        enabled = activation.enable(lake)
        rows = lake.range(3).count()
    activation.disable(lake)

    (warning,) = caplog.messages
    assert warning.startswith("strandline: not active: this version of Spark is not supported")
    assert "NoSuchClass" in warning
    assert (enabled, rows) == (False, 3)
    properties = lake._jvm.java.lang.System.getProperties().stringPropertyNames()
    assert [name for name in map(str, properties) if name.startswith("strandline.")] == []


def test_fields_have_the_order_of_their_constructor(lake: Any) -> None:
    sort = tree_of(lake.range(3).orderBy("id"))
    alias = tree_of(lake.range(3).selectExpr("id + 1 AS next")).nodes("projectList")[0]

    assert list(sort.fields)[:3] == ["order", "global", "child"]
    assert list(alias.fields) == ["name", "exprId"]
    assert (alias.name, alias.children[0].name) == ("Alias", "Add")


def test_node_that_is_a_child_is_not_written_twice(lake: Any) -> None:
    case = tree_of(lake.range(3).selectExpr("CASE WHEN id > 1 THEN 'a' ELSE 'b' END AS x"))
    nodes = list(case.everything())

    assert case.fields["child"] == 0
    assert [node.fields["value"] for node in nodes if node.name == "Literal"] == ["1", "a", "b"]


def test_literals_are_as_sql_has_them(lake: Any) -> None:
    values = "NULL, 7, 1.50, 'it''s', DATE'2026-01-05', TIMESTAMP'2026-01-05 10:00:00', true"
    expressions = tree_of(lake.sql(f"SELECT {values}")).nodes("projectList")

    assert [one.children[0].fields["value"] for one in expressions] == [
        *(None, "7", "1.50", "it's", "2026-01-05", "2026-01-05 10:00:00", "true")
    ]


def test_grouping_sets_beyond_the_bound_are_left_out(lake: Any) -> None:
    def projections(count: int) -> Any:
        columns = ", ".join(f"c{number}" for number in range(count))
        made = ", ".join(f"id + {number} AS c{number}" for number in range(count))
        frame = lake.sql(
            f"SELECT {columns} FROM (SELECT {made} FROM range(3)) GROUP BY CUBE({columns})"
        )
        nodes = tree_of(frame).everything()
        return next(node for node in nodes if node.name == "Expand").fields["projections"]

    assert len(projections(3)) == 8
    assert projections(10) is None


def test_paths_end_with_nothing_where_nothing_is_there(lake: Any) -> None:
    execution = lake.range(3)._jdf.queryExecution()

    number, text, phase = ask(
        execution, "id", "analyzed.origin.sqlText", "tracker.phases[no such].startTimeMs"
    )

    assert (number, text, phase) == (int(execution.id()), None, None)
    with pytest.raises(JAVA_FAILED):
        ask(execution, "noSuchMethod")
