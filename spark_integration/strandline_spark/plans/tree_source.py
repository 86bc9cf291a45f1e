"""The tree of a plan, asked for in as little JSON as holds what is used of it.

Writing a plan as JSON is most of what reading it costs the JVM: a plan is written once, and nothing
in it twice.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import cached_property

from strandline_spark.jvm.client import (
    JAVA_FAILED,
    JAVA_THREW,
    JavaObject,
    Jvm,
    Later,
    class_name,
    fetched,
    keep,
    once,
    shown_option,
    thrown,
)
from strandline_spark.jvm.method_handles import UNKNOWN
from strandline_spark.jvm.parsed_texts import OPTION, text_in
from strandline_spark.plans.projections import LEFT_OUT, fill_projections
from strandline_spark.plans.tree import Node, parsed
from strandline_spark.plans.tree_rows import Functions, analysed_of, root_of, rows_of

_KEEP_TWO = {
    "AppendData",
    "OverwritePartitionsDynamic",
}  # their query, and the same again as `analyzedQuery`
_SUBQUERY = (
    '"plan":[{'  # how every expression that holds a plan is written; some commands look like it too
)
PAYS = 200_000  # characters of JSON that cost about as much as joining the rows does
_LOG = logging.getLogger("strandline")
_EMPTIES = (
    ',"explicitMetadata":{}',
    ',"nonInheritableMetadataKeys":[]',
    ',"metadata":{}',
    ',"qualifier":[]',
)


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


def tree_of_plan(plan: JavaObject, jvm: Jvm) -> Tree:
    """Asks a plan for its tree."""
    if "trees" not in jvm.kept:
        jvm.kept["trees"] = Trees(jvm)
    tree: Tree = jvm.kept["trees"].of(plan)
    return tree


class Trees:
    """Asks for trees in Spark's JSON, and once that has cost enough, in rows.

    Rows have to be joined first.
    """

    def __init__(self, jvm: Jvm, after: int = PAYS) -> None:
        self._jvm = jvm
        self._left = after
        self._functions: Functions | None = None
        self._cannot = False

    def of(self, plan: JavaObject) -> Tree:
        """The tree of one plan."""
        functions = self._joined()
        text = _asked(functions.plan, plan) if functions is not None else None
        return _whole(root_of(text), text, plan) if text is not None else self._in_json(plan)

    def analysed(self, execution: JavaObject) -> Analysed:
        """The analysed plan of a QueryExecution."""
        functions = self._joined()
        text = _asked(functions.execution, execution) if functions is not None else None
        if text is None:
            return self._analysed_or_parsed(execution)
        plan = Later(lambda: execution.analyzed())
        number, session, root, sql, within = analysed_of(text)
        keep(execution, "number", number)
        if sql != UNKNOWN and OPTION.holds:
            keep(plan, "sql", sql)
            keep(plan, "sql within", within)  # UNKNOWN is no text either: it has no child
        return Analysed(session, plan, _whole(root, text, plan))

    def _analysed_or_parsed(self, execution: JavaObject) -> Analysed:
        try:
            plan = execution.analyzed()
        except JAVA_THREW as error:
            plan = execution.logical()
            return Analysed(None, plan, self._in_json(plan), failed=True, error=thrown(error))
        return Analysed(None, plan, self._in_json(plan))

    def _in_json(self, plan: JavaObject) -> Tree:
        tree, characters = _of_json(plan)
        self._left -= characters
        return tree

    def _joined(self) -> Functions | None:
        if self._left > 0 or self._cannot:
            return None
        if self._functions is None:
            try:
                self._functions = rows_of(self._jvm)
            except JAVA_FAILED:
                self._cannot = True
                _LOG.info("strandline: this Spark's plans are read as JSON only", exc_info=True)
        return self._functions


def _asked(function: JavaObject, about: JavaObject) -> str | None:
    """Return what a function says; nothing where that fails.

    The plan's JSON, or its error, is there all the same.
    """
    try:
        return str(function.apply(fetched(about)))
    except (*JAVA_THREW, AttributeError):
        return None


def number_of(execution: JavaObject) -> int | None:
    """Return the identity of a QueryExecution within its JVM.

    None where something else stands for one.
    """
    try:
        return int(once(execution, "number", lambda leaf: leaf.id()))
    except (*JAVA_FAILED, AttributeError):
        return None


def sql_of(plan: JavaObject) -> str | None:
    """The SQL that a plan was parsed from.

    Some commands have lost it; what they are about, or the query, has it still.
    """
    try:
        shown = text_in(once(plan, "sql", _sql))
        return shown if shown is not None else text_in(once(plan, "sql within", _sql_within))
    except JAVA_FAILED:
        return None


def _sql_within(plan: JavaObject) -> str:
    children = plan.children()
    return "None" if children.isEmpty() else _sql(children.head())


def _sql(plan: JavaObject) -> str:
    return shown_option(plan.origin().sqlText())


def _of_json(plan: JavaObject) -> tuple[Tree, int]:
    """The tree, and how long its JSON was."""
    name = class_name(plan)
    if name.rpartition(".")[2] in _KEEP_TWO:
        query, characters = _of_json(plan.query())
        return _around(plan, name, query), characters
    text = plan.toJSON()
    return _whole(parsed(without_empties(text)), text, plan), len(text)


def _whole(root: Node, text: str, plan: JavaObject) -> Tree:
    """The tree that a text gave, with what the text leaves out."""
    if LEFT_OUT in text:
        fill_projections(root, lambda: plan)
    return Tree(root, _SUBQUERY in text)


def _around(plan: JavaObject, name: str, query: Tree) -> Tree:
    """A command put together from its parts; what is left out nobody looks at."""
    table = json.loads(plan.table().toJSON())
    fields = {"class": name, "num-children": 1, "table": table, "isByName": bool(plan.isByName())}
    return Tree(Node(name.rpartition(".")[2], fields, [query.root]), query.nests)


def without_empties(text: str) -> str:
    r"""The same JSON without members that are nearly always empty.

    11,000 of the 26,000 objects of 1,000 columns.

    A quotation mark within a string is escaped, so these are members wherever they stand.

    >>> without_empties('[{"name":"a","metadata":{},"qualifier":[]},{"name":",\\"metadata\\":{}"}]')
    '[{"name":"a"},{"name":",\\"metadata\\":{}"}]'
    """
    for member in _EMPTIES:
        text = text.replace(member, "")
    return text


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
            raise LookupError(f"the plan has {leaves.size()} leaves, its JSON {len(self.nodes)}")
        return leaves
