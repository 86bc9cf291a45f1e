"""One rule a kind of node: from what its children give to what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from strandline_spark.columns.coercions import bare
from strandline_spark.columns.expression import (
    CONDITIONAL,
    FILTER,
    GROUP_BY,
    JOIN,
    MOST_BRANCHES,
    SORT,
    Term,
    Value,
    alternatives,
    built,
    constant,
    demoted,
    shortened,
    transforming,
)
from strandline_spark.columns.expressions import value_of
from strandline_spark.columns.scopes import Scope, Seen, StatementScopes
from strandline_spark.columns.struct_fields import of_rows
from strandline_spark.plans.tree import Node


def named(
    expressions: Iterable[Node], context: Seen
) -> tuple[list[tuple[int, str]], dict[int, Value]]:
    """Ids and names of a list of expressions, with what they are made of."""
    output, values = [], {}
    for expression in expressions:
        if "exprId" not in expression.fields:
            continue
        name = str(expression.fields["name"])
        output.append((expression.expr_id, name))
        values[expression.expr_id] = shortened(value_of(expression, context), name)
    return output, values


def attributes(node: Node, name: str = "output") -> list[tuple[int, str]]:
    """Ids and names of a field that holds attributes."""
    return [(a.expr_id, str(a.fields["name"])) for a in node.nodes(name) if "exprId" in a.fields]


Rule = Callable[[StatementScopes, Node, Seen], Scope]


def otherwise(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """Nodes without a rule give what they get.

    Those that give more than they get have run somebody's code.
    """
    output = attributes(node)
    if not output:
        return context.through()
    if all(expr_id in context.values for expr_id, _ in output):
        return context.scope(output, context.values)
    if not context.below:
        return _leaf(resolver, node, context)
    return _opaque(resolver, node, context)


def _opaque(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    context.opaque.append(node.name)
    output = attributes(node) or attributes(node, "outputObjAttr")
    return context.scope(output, {expr_id: constant(name) for expr_id, name in output})


def _leaf(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    output = attributes(node) or attributes(node, "dataCols") + attributes(node, "partitionCols")
    if node.name == "LogicalRDD":
        _rows_of_earlier(resolver, tuple(expr_id for expr_id, _ in output), context)
    return context.scope(
        output, {expr_id: resolver.leaf(expr_id, name) for expr_id, name in output}
    )


def _rows_of_earlier(resolver: StatementScopes, ids: tuple[int, ...], context: Seen) -> None:
    """A checkpoint, or the rows of a foreachBatch.

    Where nobody saw their statement, what it read is not known.
    """
    earlier = resolver.rows_of(ids)
    if earlier is None:
        context.opaque.append("LogicalRDD")
        return
    context.indirect.update(earlier.indirect)
    context.opaque += earlier.opaque


def _project(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    expressions = node.nodes("projectList")
    if resolver.rewrites:
        expressions = [_new_value(expression, context) for expression in expressions]
    return context.scope(*named(expressions, context))


def _new_value(alias: Node, context: Seen) -> Node:
    """UPDATE by rewriting files puts IF(condition, new, old) in each column.

    The condition decides, old stays.
    """
    choice = alias.children[0] if alias.name == "Alias" else None
    if choice is None or choice.name != "If":
        return alias
    condition, new, old = choice.children
    if old.name != "AttributeReference" or old.fields["name"] != alias.fields["name"]:
        return alias
    context.decide([condition], FILTER)
    return Node(alias.name, alias.fields, [new])


def _aggregate(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    context.decide(node.nodes("groupingExpressions"), GROUP_BY)
    return context.scope(*named(node.nodes("aggregateExpressions"), context))


def _window(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    output, values = named(node.nodes("windowExpressions"), context)
    return context.scope([*context.below[0].output, *output], {**context.values, **values})


def _filter(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    condition = node.node("condition")
    context.decide([condition] if condition is not None else [], FILTER)
    return context.through()


def _join(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    conditions = (node.node(name) for name in ("condition", "asOfCondition"))
    context.decide([condition for condition in conditions if condition is not None], JOIN)
    kind = str(node.fields.get("joinType"))
    if "LeftSemi" in kind or "LeftAnti" in kind:
        return context.scope(context.below[0].output, context.below[0].values)
    mark = _existence(node)
    output = [column for scope in context.below for column in scope.output]
    return context.scope(
        output + mark, {**context.values, **{expr_id: constant(name) for expr_id, name in mark}}
    )


def _existence(node: Node) -> list[tuple[int, str]]:
    kind = node.fields.get("joinType")
    exists = kind.get("exists") if isinstance(kind, dict) else None
    return [(exists.expr_id, "exists")] if isinstance(exists, Node) else []


def _lateral(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    right = node.node("right")
    inner = context.subquery_scope(right) if right is not None else Scope()
    context.decide([c for c in (node.node("condition"),) if c is not None], JOIN)
    return context.scope(
        [*context.below[0].output, *inner.output], {**context.values, **inner.values}
    )


def _sort(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    context.decide(node.nodes("order"), SORT)
    return context.through()


def _deduplicate(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    context.decide(node.nodes("keys"), GROUP_BY)
    return context.through()


def _distinct(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """SELECT DISTINCT and UNION group by all of their columns.

    Spark's optimizer makes a GROUP BY of them.
    """
    for _, value in context.below[0].column_values():
        context.indirect.update(demoted(value, lambda _: GROUP_BY))
    return context.through()


def _union(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """Columns by position, under the first child's ids; each branch keeps its own expression."""
    branches = [scope.column_values() for scope in context.below]
    first = context.below[0].output
    if sum(_branches(branch) for branch in branches) > MOST_BRANCHES:
        context.opaque.append(f"{node.name} of more than {MOST_BRANCHES} branches")
    values = {
        expr_id: alternatives([branch[index][1] for branch in branches if index < len(branch)])
        for index, (expr_id, _) in enumerate(first)
    }
    return context.scope(first, values)


def _branches(columns: Sequence[tuple[str, Value]]) -> int:
    """Return the number of branches that the columns of a query come from."""
    return max((len(value) for _, value in columns), default=0)


def _set_operation(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """INTERSECT and EXCEPT give rows of the left.

    What they have in common with the right decides which.
    """
    for scope in context.below:
        for _, value in scope.column_values():
            context.indirect.update(demoted(value, lambda _: FILTER))
    rows = context.scope(context.below[0].output, context.below[0].values)
    return (
        rows
        if node.fields.get("isAll")
        else _distinct(resolver, node, Seen(resolver, [rows], context.outer))
    )


def _expand(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """GROUPING SETS, ROLLUP, CUBE and UNPIVOT: a column is what any of the projections puts there.

    Where there are too many to be asked for, what comes through as it is is known all the same.
    """
    output = attributes(node)
    if node.fields.get("projections") is None:
        scope = _opaque(resolver, node, context)
        return replace(
            scope,
            values={key: context.values.get(key, value) for key, value in scope.values.items()},
        )
    rows: list[list[Node]] = node.fields["projections"]
    values = {}
    for index, (expr_id, name) in enumerate(output):
        values[expr_id] = each_once(_with_origin(rows, index, context)) or constant(name)
    return context.scope(output, values)


def _with_origin(rows: list[list[Node]], index: int, context: Seen) -> list[Value]:
    """Return the source column of one column of the projections, if it has one."""
    branches = [value_of(row[index], context) for row in rows if index < len(row)]
    return [value for value in branches if any(term.kinds for term in value)]


def each_once(branches: Sequence[Value]) -> Value:
    """Return alternatives of the branches' terms, each term once."""
    terms = {(term.text, term.refs): term for value in branches for term in value}
    return alternatives([tuple(terms.values())]) if terms else ()


def _generate(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """Resolve a table function: each field it makes is `f(x).field`.

    With the function's own names of its fields.
    """
    generator, output = node.node("generator"), attributes(node, "generatorOutput")
    if generator is None:
        return context.through()
    value = value_of(generator, context)
    fields = _generated(generator, [name for _, name in output])
    values = {}
    for index, ((expr_id, _), name) in enumerate(zip(output, fields, strict=True)):
        taken = _taken(generator, index, len(output), context)
        fields_of_rows = (
            built([term, f".{name}"], demoted([term] if taken is None else taken, transforming))
            for term in value
        )
        values[expr_id] = tuple(
            of_rows(generator.name, field, term)
            for field, term in zip(fields_of_rows, value, strict=True)
        )
    return context.scope([*context.below[0].output, *output], {**context.values, **values})


def _taken(generator: Node, index: int, width: int, context: Seen) -> list[Term] | None:
    """Return what a column is made of, where the statement itself puts the rows together.

    Other functions may use all they get.
    """
    arguments = _put_together(generator, index, width)
    return (
        None
        if arguments is None
        else [term for argument in arguments for term in value_of(argument, context)]
    )


def _put_together(generator: Node, index: int, width: int) -> list[Node] | None:
    """Return the nodes that a generator puts into one column, if it lists them.

    Examples are `stack(2, a, b, c, d)`, `inline(array(struct(a, b), struct(c, d)))` and
    `explode(map(a, b, c, d))`.
    """
    if generator.name == "Stack":
        return generator.children[1 + index :: width]
    if generator.name not in {"Inline", "Explode"}:
        return None
    collection = bare(generator.children[0])
    if generator.name == "Explode":
        return collection.children[index::width] if collection.name == "CreateMap" else None
    structs = [bare(child) for child in collection.children]
    if collection.name != "CreateArray" or any(
        struct.name != "CreateNamedStruct" for struct in structs
    ):
        return None
    return [struct.children[2 * index + 1] for struct in structs]


def _generated(generator: Node, names: list[str]) -> list[str]:
    schema = generator.fields.get("elementSchema")
    if isinstance(schema, dict) and len(schema.get("fields") or ()) == len(names):
        return [str(inner["name"]) for inner in schema["fields"]]
    own = {"Explode": ["col"], "PosExplode": ["pos", "col"]}.get(generator.name, names)
    if generator.name in {"Explode", "PosExplode"} and len(names) > len(own):
        own = [*own[:-1], "key", "value"]
    return own if len(own) == len(names) else names


def _definition(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    scope = context.through()
    resolver.share(int(node.fields["id"]), scope)
    return replace(scope, indirect={}, opaque=())


def _reference(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """Each use of a common table expression has ids of its own, in the definition's order."""
    defined = resolver.shared(int(node.fields["cteId"]))
    context.indirect.update(defined.indirect)
    context.opaque += defined.opaque
    return _renamed(attributes(node), defined, context)


def _with(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    last = context.below[-1]
    return context.scope(last.output, last.values)


def _loop(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    scope = _union(resolver, node, context)
    ids = [int(expr_id) for expr_id in node.fields.get("outputAttrIds") or ()]
    output = [(ids[i] if i < len(ids) else old, name) for i, (old, name) in enumerate(scope.output)]
    values = {
        new: scope.values[old] for (new, _), (old, _) in zip(output, scope.output, strict=True)
    }
    return replace(scope, output=tuple(output), values=values)


def _loop_reference(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    return _renamed(attributes(node), resolver.anchor(int(node.fields["loopId"])), context)


def _renamed(output: list[tuple[int, str]], defined: Scope, context: Seen) -> Scope:
    values_given = [value for _, value in defined.column_values()]
    values = {
        expr_id: values_given[i] if i < len(values_given) else constant(name)
        for i, (expr_id, name) in enumerate(output)
    }
    return context.scope(output, values)


def _merge_rows(resolver: StatementScopes, node: Node, context: Seen) -> Scope:
    """MERGE: a column is what any of the instructions puts there; their conditions decide which."""
    output, rows = attributes(node), []
    for name in ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions"):
        for instruction in node.nodes(name):
            rows += _instruction(instruction, len(output), context)
    values = {}
    for index, (expr_id, name) in enumerate(output):
        values[expr_id] = each_once([value_of(row[index], context) for row in rows]) or constant(
            name
        )
    return context.scope(output, values)


def _instruction(instruction: Node, width: int, context: Seen) -> list[list[Node]]:
    """The rows an instruction gives.

    Keep gives one, Split (of a delta-based UPDATE) two, Discard none.
    """
    inner = instruction.children
    rows = [inner[start : start + width] for start in range(1, len(inner) - width + 1, width)]
    context.decide(inner[:1], CONDITIONAL)
    return rows


RULES: dict[str, Rule] = {
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
    "Distinct": _distinct,
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
