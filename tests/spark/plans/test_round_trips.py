"""JVM round trips of the smallest statements, independent of machine load."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.java_gateway import GatewayConnection

from strandline_spark.jvm.client import Jvm
from strandline_spark.plans.tree_source import Trees, sql_of

pytestmark = pytest.mark.spark


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every call of a method that goes to the JVM."""
    calls: list[str] = []
    for connection in (GatewayConnection, ClientServerConnection):
        monkeypatch.setattr(connection, "send_command", counting(connection.send_command, calls))
    return calls


def counting(send: Any, calls: list[str]) -> Any:
    """The same, and calls are noted by their methods' names."""

    def counted(self: Any, command: str, *more: Any) -> Any:
        if command.startswith("c\n"):
            calls.append(command.split("\n")[2])
        return send(self, command, *more)

    return counted


def test_plan_without_sql_text_is_not_queried_for_one(lake: Any, asked: list[str]) -> None:
    trees = Trees(Jvm(lake._jvm, lake._jsparkSession), 0)
    plan = trees.analysed(lake.range(1).select("id")._jdf.queryExecution()).plan
    asked.clear()

    assert sql_of(plan) is None
    assert asked == []
