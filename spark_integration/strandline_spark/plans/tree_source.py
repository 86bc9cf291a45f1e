"""The tree of a plan, asked for in one round trip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from py4j.java_gateway import JavaObject as PlainObject

from strandline_spark.jvm.client import (
    JAVA_FAILED,
    JAVA_THREW,
    JavaObject,
    Known,
    answer,
    ask,
    fetched,
    thrown,
)
from strandline_spark.plans.questions import plan_probe
from strandline_spark.plans.tree import Node, answers_with_trees, holds_subqueries


@dataclass(frozen=True, slots=True)
class Tree:
    """A plan's tree. Without `nests` no expression of it holds a subquery."""

    root: Node
    nests: bool


@dataclass(frozen=True, slots=True)
class Analysed:
    """An execution's analysed plan, with what tells its session from all others.

    `failed`: its analysis failed, by `error`, so it is the plan as it was parsed.
    """

    session: str | None
    plan: JavaObject
    tree: Tree
    failed: bool = False
    error: JavaObject | None = None


def tree_of_plan(plan: JavaObject) -> Tree:
    """Asks a plan for its tree."""
    target = fetched(plan)
    text = str(plan_probe(target._gateway_client).tree(target))
    return Tree(answers_with_trees(text), holds_subqueries(text))


def analysed(execution: JavaObject) -> Analysed:
    """Return the analysed plan of a QueryExecution, or of what stands for one."""
    target = fetched(execution)
    if not isinstance(target, PlainObject):  # a query's own plan
        plan = execution.analyzed()
        return Analysed(None, plan, tree_of_plan(plan))
    text = str(plan_probe(target._gateway_client).tell(target))
    answers: Mapping[str, Any] = answers_with_trees(text)
    if "plan" not in answers:
        return _failed(execution)
    if isinstance(execution, Known):
        execution.answers["number"] = answers["number"]
    sql = {"sql": answers.get("sql") or answers.get("inner sql")}
    plan = Known(lambda: target.analyzed(), sql)
    return Analysed(answers.get("session"), plan, Tree(answers["plan"], holds_subqueries(text)))


def _failed(execution: JavaObject) -> Analysed:
    """Return the plan as it was parsed, of an execution whose analysis failed."""
    try:
        plan = execution.analyzed()
    except JAVA_THREW as error:
        plan = execution.logical()
        return Analysed(None, plan, tree_of_plan(plan), failed=True, error=thrown(error))
    return Analysed(None, plan, tree_of_plan(plan))


def number_of(execution: JavaObject) -> int | None:
    """Return the identity of a QueryExecution within its JVM.

    None where something else stands for one.
    """
    try:
        return int(answer(execution, "number", lambda query: query.id()))
    except (*JAVA_FAILED, AttributeError):
        return None


def sql_of(plan: JavaObject) -> str | None:
    """The SQL that a plan was parsed from.

    Some commands have lost it; what they are about, or the query, has it still.
    """
    try:
        sql: str | None = answer(plan, "sql", _sql)
    except JAVA_FAILED:
        return None
    return sql


def _sql(plan: JavaObject) -> str | None:
    texts = ask(plan, "origin.sqlText", "children.headOption.origin.sqlText")
    return next((str(text) for text in texts if text), None)


class Leaves:
    """The leaves of a plan beside their nodes in its tree.

    Both list them in pre-order; each is fetched when asked for.
    """

    def __init__(self, plan: JavaObject, root: Node) -> None:
        self.nodes = [node for node in root.walk() if not node.children]
        self._plan = plan

    def __getitem__(self, index: int) -> JavaObject:
        return self._found.apply(index)

    @cached_property
    def _found(self) -> JavaObject:
        leaves = self._plan.collectLeaves()
        if leaves.size() != len(self.nodes):
            raise LookupError(f"the plan has {leaves.size()} leaves, its tree {len(self.nodes)}")
        return leaves
