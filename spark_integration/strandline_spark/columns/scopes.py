"""Resolves a plan from its leaves up: what each node's output is made of.

Each node sees only what its children give it, by the ids of their columns, because a UNION uses its first child's ids
again. Steps that run code of the user over whole rows end the trail: they are named, and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from strandline_spark.columns.expressions import value_of
from strandline_spark.columns.terms import (
    CONDITIONAL,
    FILTER,
    GROUP_BY,
    JOIN,
    SORT,
    Ref,
    Term,
    Value,
    alternatives,
    built,
    column,
    constant,
    demoted,
    shortened,
    transforming,
)
from strandline_spark.plans.tree import Node, fold, is_tree, tree_of

Indirect = Mapping[tuple[Ref, str], bool]
WroteCast = Callable[[Node], str | None]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a node gives to the one above it: its output in order, and what decided which rows there are."""

    output: tuple[tuple[int, str], ...] = ()
    values: Mapping[int, Value] = field(default_factory=dict)
    indirect: Indirect = field(default_factory=dict)
    opaque: tuple[str, ...] = ()

    def column_values(self) -> list[tuple[str, Value]]:
        """Name and value of each column of the output."""
        return [(name, self.values.get(expr_id, constant(name))) for expr_id, name in self.output]


class Resolver:
    """Resolves the plans of one statement.

    `leaves` says which column of which table an id of a leaf stands for; `known` gives the values of ids that an
    earlier statement made (a checkpoint, the rows of a foreachBatch); `wrote` tells a user's cast from one of Spark's.
    """

    def __init__(
        self,
        leaves: Mapping[int, Ref],
        known: Callable[[int], Value | None],
        wrote: WroteCast,
        rewrites: bool = False,
    ) -> None:
        self.rewrites = rewrites  # the statement changes rows of its own target
        self._leaves = leaves
        self._known = known
        self._wrote = wrote
        self._done: dict[int, Scope] = {}
        self._loops: dict[int, Node] = {}
        self._shared: dict[int, Scope] = {}

    def scope_of(self, plan: Node, outer: Mapping[int, Value] | None = None) -> Scope:
        """What a plan's root gives; `outer`: what a correlated subquery sees of the query around it."""
        self._loops.update({int(n.fields["id"]): n.children[0] for n in plan.walk() if n.name == "UnionLoop"})
        return fold(plan, lambda node, below: self._resolved(node, below, outer or {}))

    def _resolved(self, node: Node, below: list[Scope], outer: Mapping[int, Value]) -> Scope:
        seen = Seen(self, below, outer)
        scope = _RULES.get(node.name, _otherwise)(self, node, seen)
        self._done[id(node)] = scope
        return scope

    # What the rules ask of the statement.

    def leaf(self, expr_id: int, name: str) -> Value:
        """The value of a leaf's column."""
        ref = self._leaves.get(expr_id)
        return column(ref) if ref is not None else self._known(expr_id) or constant(name)

    def knows(self, expr_id: int) -> bool:
        """Whether a leaf's column is known."""
        return expr_id in self._leaves or self._known(expr_id) is not None

    def wrote(self, cast: Node) -> str | None:
        """What the user wrote for a cast."""
        return self._wrote(cast)

    def share(self, key: int, scope: Scope) -> None:
        """Remember a common table expression."""
        self._shared[key] = scope

    def shared(self, key: int) -> Scope:
        """A common table expression."""
        return self._shared.get(key, Scope())

    def anchor(self, loop: int) -> Scope:
        """The first branch of a recursive query, which is resolved before the recursive one."""
        return self._done.get(id(self._loops.get(loop)), Scope())


class Seen:
    """What an expression of a node can see: the columns of its children, and of the query around a subquery."""

    def __init__(self, resolver: Resolver, below: Sequence[Scope], outer: Mapping[int, Value]) -> None:
        self.resolver = resolver
        self.below = below
        self.outer = outer
        self.values: Mapping[int, Value] = _joined(below)
        self.indirect: dict[tuple[Ref, str], bool] = {}
        self.opaque: list[str] = []
        for scope in below:
            self.indirect.update(scope.indirect)
            self.opaque += scope.opaque

    def value(self, attribute: Node) -> Value:
        found = self.values.get(attribute.expr_id) or self.outer.get(attribute.expr_id)
        return found or constant(str(attribute.fields["name"]))

    def subquery(self, expression: Node) -> Value:
        scope = self.subquery_scope(expression)
        columns = scope.column_values()
        return columns[0][1] if columns else constant("NULL")

    def subquery_scope(self, expression: Node) -> Scope:
        """A subquery's plan, resolved with what surrounds it in sight; what decided its rows decides here too."""
        plan = expression.node("plan")
        if plan is None:
            return Scope()
        scope = self.resolver.scope_of(plan, {**self.outer, **self.values})
        self.indirect.update(scope.indirect)
        self.opaque += scope.opaque
        return scope

    def wrote(self, cast: Node) -> str | None:
        return self.resolver.wrote(cast)

    def decide(self, expressions: Iterable[Node], subtype: str) -> None:
        """Note that these expressions decide which rows there are."""
        for expression in expressions:
            self.indirect.update(demoted(value_of(expression, self), lambda _: subtype))

    def scope(self, output: Sequence[tuple[int, str]], values: Mapping[int, Value]) -> Scope:
        """The node's scope, with all that was noted on the way."""
        return Scope(tuple(output), values, self.indirect, tuple(dict.fromkeys(self.opaque)))

    def through(self) -> Scope:
        """The scope of a node that gives what its children give."""
        return self.scope([column for scope in self.below for column in scope.output], self.values)


def _joined(below: Sequence[Scope]) -> Mapping[int, Value]:
    if len(below) == 1:
        return below[0].values
    return {key: value for scope in below for key, value in scope.values.items()}


def named(expressions: Iterable[Node], seen: Seen) -> tuple[list[tuple[int, str]], dict[int, Value]]:
    """Ids and names of a list of expressions, with what they are made of."""
    output, values = [], {}
    for expression in expressions:
        if "exprId" not in expression.fields:
            continue
        name = str(expression.fields["name"])
        output.append((expression.expr_id, name))
        values[expression.expr_id] = shortened(value_of(expression, seen), name)
    return output, values


def attributes(node: Node, name: str = "output") -> list[tuple[int, str]]:
    """Ids and names of a field that holds attributes."""
    return [(a.expr_id, str(a.fields["name"])) for a in node.nodes(name) if "exprId" in a.fields]


Rule = Callable[[Resolver, Node, Seen], Scope]


def _otherwise(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    """Nodes without a rule give what they get; those that give more than they get have run somebody's code."""
    output = attributes(node)
    if not output:
        return seen.through()
    if all(expr_id in seen.values for expr_id, _ in output):
        return seen.scope(output, seen.values)
    if not seen.below:
        return _leaf(resolver, node, seen)
    return _opaque(resolver, node, seen)


def _opaque(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    seen.opaque.append(node.name)
    output = attributes(node) or attributes(node, "outputObjAttr")
    return seen.scope(output, {expr_id: constant(name) for expr_id, name in output})


def _leaf(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    output = attributes(node) or attributes(node, "dataCols") + attributes(node, "partitionCols")
    if node.name == "LogicalRDD" and not all(resolver.knows(expr_id) for expr_id, _ in output):
        seen.opaque.append("LogicalRDD")
    return seen.scope(output, {expr_id: resolver.leaf(expr_id, name) for expr_id, name in output})


def _project(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    expressions = node.nodes("projectList")
    if resolver.rewrites:
        expressions = [_new_value(expression, seen) for expression in expressions]
    return seen.scope(*named(expressions, seen))


def _new_value(alias: Node, seen: Seen) -> Node:
    """UPDATE by rewriting files puts IF(condition, new, old) in each column: the condition decides, old stays."""
    choice = alias.children[0] if alias.name == "Alias" else None
    if choice is None or choice.name != "If":
        return alias
    condition, new, old = choice.children
    if old.name != "AttributeReference" or old.fields["name"] != alias.fields["name"]:
        return alias
    seen.decide([condition], FILTER)
    return Node(alias.name, alias.fields, [new])


def _aggregate(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    seen.decide(node.nodes("groupingExpressions"), GROUP_BY)
    return seen.scope(*named(node.nodes("aggregateExpressions"), seen))


def _window(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    output, values = named(node.nodes("windowExpressions"), seen)
    return seen.scope([*seen.below[0].output, *output], {**seen.values, **values})


def _filter(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    condition = node.node("condition")
    seen.decide([condition] if condition is not None else [], FILTER)
    return seen.through()


def _join(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    conditions = (node.node(name) for name in ("condition", "asOfCondition"))
    seen.decide([condition for condition in conditions if condition is not None], JOIN)
    kind = str(node.fields.get("joinType"))
    if "LeftSemi" in kind or "LeftAnti" in kind:
        return seen.scope(seen.below[0].output, seen.below[0].values)
    mark = _existence(node)
    output = [column for scope in seen.below for column in scope.output]
    return seen.scope(output + mark, {**seen.values, **{expr_id: constant(name) for expr_id, name in mark}})


def _existence(node: Node) -> list[tuple[int, str]]:
    kind = node.fields.get("joinType")
    tree = kind.get("exists") if isinstance(kind, dict) else None
    return [(tree_of(tree).expr_id, "exists")] if is_tree(tree) and isinstance(tree, list) else []


def _lateral(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    right = node.node("right")
    inner = seen.subquery_scope(right) if right is not None else Scope()
    seen.decide([c for c in (node.node("condition"),) if c is not None], JOIN)
    return seen.scope([*seen.below[0].output, *inner.output], {**seen.values, **inner.values})


def _sort(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    seen.decide(node.nodes("order"), SORT)
    return seen.through()


def _deduplicate(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    seen.decide(node.nodes("keys"), GROUP_BY)
    return seen.through()


def _union(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    """Columns by position, under the first child's ids; each branch keeps its own expression."""
    branches = [scope.column_values() for scope in seen.below]
    first = seen.below[0].output
    values = {
        expr_id: alternatives([branch[index][1] for branch in branches if index < len(branch)])
        for index, (expr_id, _) in enumerate(first)
    }
    return seen.scope(first, values)


def _set_operation(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    """INTERSECT and EXCEPT give rows of the left; the right decides which."""
    for _, value in seen.below[1].column_values():
        seen.indirect.update(demoted(value, lambda _: FILTER))
    return seen.scope(seen.below[0].output, seen.below[0].values)


def _expand(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    """GROUPING SETS, ROLLUP, CUBE and UNPIVOT: a column is what any of the projections puts there."""
    output = attributes(node)
    rows = [[tree_of(tree) for tree in row] for row in node.fields.get("projections") or ()]
    values = {}
    for index, (expr_id, name) in enumerate(output):
        branches = [value_of(row[index], seen) for row in rows if index < len(row)]
        with_origin = [value for value in branches if any(term.kinds for term in value)]
        values[expr_id] = _each_once(with_origin) or constant(name)
    return seen.scope(output, values)


def _each_once(branches: Sequence[Value]) -> Value:
    found = {(term.text, term.refs): term for value in branches for term in value}
    return alternatives([tuple(found.values())]) if found else ()


def _generate(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    """A table function: each field it makes is `f(x).field`, with the function's own names of its fields."""
    generator, output = node.node("generator"), attributes(node, "generatorOutput")
    if generator is None:
        return seen.through()
    value = value_of(generator, seen)
    fields = _generated(generator, [name for _, name in output])
    values = {
        expr_id: tuple(built([term, f".{name}"], demoted([term], transforming)) for term in value)
        for (expr_id, _), name in zip(output, fields, strict=True)
    }
    return seen.scope([*seen.below[0].output, *output], {**seen.values, **values})


def _generated(generator: Node, names: list[str]) -> list[str]:
    schema = generator.fields.get("elementSchema")
    if isinstance(schema, dict) and len(schema.get("fields") or ()) == len(names):
        return [str(inner["name"]) for inner in schema["fields"]]
    own = {"Explode": ["col"], "PosExplode": ["pos", "col"]}.get(generator.name, names)
    if generator.name in {"Explode", "PosExplode"} and len(names) > len(own):
        own = [*own[:-1], "key", "value"]
    return own if len(own) == len(names) else names


def _definition(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    scope = seen.through()
    resolver.share(int(node.fields["id"]), scope)
    return replace(scope, indirect={}, opaque=())


def _reference(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    """Each use of a common table expression has ids of its own, in the definition's order."""
    defined = resolver.shared(int(node.fields["cteId"]))
    seen.indirect.update(defined.indirect)
    seen.opaque += defined.opaque
    return _renamed(attributes(node), defined, seen)


def _with(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    last = seen.below[-1]
    return seen.scope(last.output, last.values)


def _loop(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    scope = _union(resolver, node, seen)
    ids = [int(one["id"]) for one in node.fields.get("outputAttrIds") or ()]
    output = [(ids[i] if i < len(ids) else old, name) for i, (old, name) in enumerate(scope.output)]
    values = {new: scope.values[old] for (new, _), (old, _) in zip(output, scope.output, strict=True)}
    return replace(scope, output=tuple(output), values=values)


def _loop_reference(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    return _renamed(attributes(node), resolver.anchor(int(node.fields["loopId"])), seen)


def _renamed(output: list[tuple[int, str]], defined: Scope, seen: Seen) -> Scope:
    given = [value for _, value in defined.column_values()]
    values = {expr_id: given[i] if i < len(given) else constant(name) for i, (expr_id, name) in enumerate(output)}
    return seen.scope(output, values)


def _merge_rows(resolver: Resolver, node: Node, seen: Seen) -> Scope:
    """MERGE: a column is what any of the instructions puts there; their conditions decide which."""
    output, rows = attributes(node), []
    for name in ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions"):
        for instruction in node.nodes(name):
            rows += _instruction(instruction, len(output), seen)
    values = {}
    for index, (expr_id, name) in enumerate(output):
        values[expr_id] = _each_once([value_of(row[index], seen) for row in rows]) or constant(name)
    return seen.scope(output, values)


def _instruction(instruction: Node, width: int, seen: Seen) -> list[list[Node]]:
    """The rows an instruction gives: Keep gives one, Split (of a delta-based UPDATE) two, Discard none."""
    inner = instruction.children
    rows = [inner[start : start + width] for start in range(1, len(inner) - width + 1, width)]
    seen.decide(inner[:1], CONDITIONAL)
    return rows


_RULES: dict[str, Rule] = {
    "Project": _project,
    "Aggregate": _aggregate,
    "Window": _window,
    "Filter": _filter,
    "Join": _join,
    "AsOfJoin": _join,
    "LateralJoin": _lateral,
    "Sort": _sort,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Union": _union,
    "Intersect": _set_operation,
    "Except": _set_operation,
    "Expand": _expand,
    "Generate": _generate,
    "WithCTE": _with,
    "CTERelationDef": _definition,
    "CTERelationRef": _reference,
    "UnionLoop": _loop,
    "UnionLoopRef": _loop_reference,
    "MergeRows": _merge_rows,
    **dict.fromkeys(("HiveTableRelation", "LogicalRelation", "LogicalRDD", "LocalRelation"), _leaf),
    **dict.fromkeys(
        [
            "MapInPandas",
            "MapInArrow",
            "PythonMapInArrow",
            "FlatMapGroupsInPandas",
            "FlatMapGroupsInArrow",
            "FlatMapCoGroupsInPandas",
            "FlatMapCoGroupsInArrow",
            "FlatMapGroupsInPandasWithState",
            "TransformWithStateInPySpark",
            "TransformWithStateInPandas",
            "SerializeFromObject",
            "ScriptTransformation",
            "FlatMapGroupsInR",
            "MapPartitionsInR",
        ],
        _opaque,
    ),
}
__all__ = ["Resolver", "Scope", "Term"]
