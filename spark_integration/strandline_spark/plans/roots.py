"""The tree of a plan, asked for in as little JSON as holds what is used of it.

Writing a plan as JSON is most of what reading it costs the JVM: a plan is written once, and nothing in it twice.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import cached_property

from py4j.protocol import Py4JError, Py4JJavaError

from strandline_spark.jvm import JavaObject, Jvm, class_name
from strandline_spark.plans.rows import root_of, rows_of
from strandline_spark.plans.tree import Node, parsed

_KEEP_TWO = {"AppendData", "OverwritePartitionsDynamic"}  # their query, and the same again as `analyzedQuery`
_SUBQUERY = '"plan":[{'  # how every expression that holds a plan is written; some commands look like it too
PAYS = 200_000  # characters of JSON that cost about as much as joining the rows does
_LOG = logging.getLogger("strandline")
_EMPTIES = (',"explicitMetadata":{}', ',"nonInheritableMetadataKeys":[]', ',"metadata":{}', ',"qualifier":[]')


@dataclass(frozen=True, slots=True)
class Tree:
    """A plan's tree. Without `nests` no expression of it holds a subquery."""

    root: Node
    nests: bool


def tree_of_plan(plan: JavaObject, jvm: Jvm) -> Tree:
    """Asks a plan for its tree."""
    if "trees" not in jvm.kept:
        jvm.kept["trees"] = Trees(jvm)
    tree: Tree = jvm.kept["trees"].of(plan)
    return tree


class Trees:
    """Asks for trees in Spark's JSON, and once that has cost enough, in rows, which have to be joined first."""

    def __init__(self, jvm: Jvm, after: int = PAYS) -> None:
        self._jvm = jvm
        self._left = after
        self._rows: JavaObject = None

    def of(self, plan: JavaObject) -> Tree:
        """The tree of one plan."""
        if self._left <= 0 and self._can_ask():
            try:
                text = str(self._rows.apply(plan))
            except Py4JJavaError:  # a node that this Spark has otherwise: its JSON is there all the same
                return _of_json(plan)[0]
            return Tree(root_of(text), _SUBQUERY in text)
        tree, characters = _of_json(plan)
        self._left -= characters
        return tree

    def _can_ask(self) -> bool:
        if self._rows is None and not self._jvm.kept.get("without rows"):
            try:
                self._rows = rows_of(self._jvm)
            except Py4JError:
                self._jvm.kept["without rows"] = True
                _LOG.info("strandline: this Spark's plans are read as JSON only", exc_info=True)
        return self._rows is not None


def _of_json(plan: JavaObject) -> tuple[Tree, int]:
    """The tree, and how long its JSON was."""
    name = class_name(plan)
    if name.rpartition(".")[2] in _KEEP_TWO:
        query, characters = _of_json(plan.query())
        return _around(plan, name, query), characters
    text = plan.toJSON()
    return Tree(parsed(without_empties(text)), _SUBQUERY in text), len(text)


def _around(plan: JavaObject, name: str, query: Tree) -> Tree:
    """A command put together from its parts; what is left out nobody looks at."""
    table = json.loads(plan.table().toJSON())
    fields = {"class": name, "num-children": 1, "table": table, "isByName": bool(plan.isByName())}
    return Tree(Node(name.rpartition(".")[2], fields, [query.root]), query.nests)


def without_empties(text: str) -> str:
    r"""The same JSON without members that are nearly always empty: 11,000 of the 26,000 objects of 1,000 columns.

    A quotation mark within a string is escaped, so these are members wherever they stand.

    >>> without_empties('[{"name":"a","metadata":{},"qualifier":[]},{"name":",\\"metadata\\":{}"}]')
    '[{"name":"a"},{"name":",\\"metadata\\":{}"}]'
    """
    for member in _EMPTIES:
        text = text.replace(member, "")
    return text


class Leaves:
    """The leaves of a plan beside their nodes in its tree. Both list them in pre-order; each is fetched when asked for."""

    def __init__(self, plan: JavaObject, root: Node) -> None:
        self.nodes = [node for node in root.walk() if not node.children]
        self._plan = plan

    def __getitem__(self, index: int) -> JavaObject:
        return self._found.apply(index)

    @cached_property
    def _found(self) -> JavaObject:
        found = self._plan.collectLeaves()
        if found.size() != len(self.nodes):
            raise LookupError(f"the plan has {found.size()} leaves, its JSON {len(self.nodes)}")
        return found
