"""From an expression of a plan to what it is made of, and how Spark SQL would write it.

An expression is folded from its leaves up. Casts that Spark added on its own account are not shown:
what stands in a text is what the user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from strandline_spark.columns import functions
from strandline_spark.columns.coercions import uncoerced
from strandline_spark.columns.expression import (
    AGGREGATION,
    CONDITIONAL,
    PIVOTED,
    TRANSFORMATION,
    Term,
    Value,
    aligned,
    built,
    commas,
    constant,
    demoted,
    in_quotes,
    inside,
    listed,
    quoted,
    transforming,
)
from strandline_spark.columns.struct_fields import Picked, picked
from strandline_spark.columns.time_windows import unfolded
from strandline_spark.columns.windows import WINDOWS
from strandline_spark.plans.schemas import type_name
from strandline_spark.plans.tree import Node, fold

SUBQUERIES = {
    "ScalarSubquery",
    "ListQuery",
    "Exists",
    "LateralSubquery",
    "FunctionTableSubqueryArgumentExpression",
}
_PYTHON = {
    "PythonUDF",
    "PythonUDAF",
    "PythonUDTF",
    "PolymorphicPythonUDTF",
    "UnresolvedPolymorphicPythonUDTF",
}


class Surroundings(Protocol):
    """The names that an expression can see."""

    def value(self, attribute: Node) -> Value:
        """Return the sources of an attribute."""

    def subquery(self, expression: Node) -> Value:
        """Return the sources of a subquery's first column."""


def value_of(expression: Node, surroundings: Surroundings) -> Value:
    """Return the sources of an expression."""
    return fold(expression, lambda node, children: _combined(node, children, surroundings))


def _combined(node: Node, children: list[Value], surroundings: Surroundings) -> Value:
    if node.name == "AttributeReference":
        return surroundings.value(node)
    if node.name in SUBQUERIES:
        return surroundings.subquery(node)
    if node.name in _CONSTANTS:
        return constant(_CONSTANTS[node.name](node))
    if node.name == "OuterReference":
        inner = node.node("e")
        return value_of(inner, surroundings) if inner is not None else children[0]
    if node.name == "Cast":
        return _cast(node, children[0])
    as_written = unfolded(uncoerced(node))
    if as_written is not node:
        return value_of(as_written, surroundings)
    if "replacement" in node.fields and node.node("replacement") is None:
        children = _parameters(node, surroundings) or children
    return tuple(_term(node, terms) for terms in aligned(children))


def _parameters(node: Node, surroundings: Surroundings) -> list[Value]:
    """Of a function that Spark replaces by another expression, what it was called with."""
    trees = [tree for tree in map(node.node, node.fields) if tree is not None]
    trees += [
        tree
        for field, values in node.fields.items()
        if isinstance(values, list)
        for tree in node.nodes(field)
    ]
    return [value_of(tree, surroundings) for tree in trees]


def _term(node: Node, terms: list[Term]) -> Term:
    if node.name in functions.TRANSPARENT and node.name not in _SPECIAL:
        return terms[0] if terms else Term("NULL")
    term = _built_term(node, terms)
    choices = picked(node.name, terms)
    return (
        replace(term, fields=Picked(node.name, term, terms, choices, partial(_built_term, node)))
        if choices
        else term
    )


def _built_term(node: Node, terms: list[Term]) -> Term:
    special = _SPECIAL.get(node.name)
    if special is not None:
        return special(node, terms)
    kinds = demoted(terms, transforming, masked=node.name in functions.MASKING)
    return built(_text(node, terms), kinds)


def _text(node: Node, terms: Sequence[Term]) -> list[str | Term]:
    if node.name in functions.OPERATORS and len(terms) == 2:
        return ["(", terms[0], f" {functions.OPERATORS[node.name]} ", terms[1], ")"]
    if node.name in functions.PREFIXES and len(terms) == 1:
        return ["(", functions.PREFIXES[node.name], terms[0], ")"]
    if node.name in functions.SUFFIXES:
        return ["(", terms[0], f" {functions.SUFFIXES[node.name]})"]
    if node.name in functions.PATTERNS and len(terms) == 2:
        return [terms[0], f" {functions.PATTERNS[node.name]} ", terms[1]]
    nulls = (
        " IGNORE NULLS"
        if node.fields.get("ignoreNulls") is True and node.name in functions.NULLS
        else ""
    )
    return [*_call(_name(node), _given(node, terms)), nulls]


def _given(node: Node, terms: Sequence[Term]) -> Sequence[Term]:
    """The arguments without those at the end that are what Spark fills in.

    A seed is another one each time.
    """
    if node.fields.get("hideSeed") is True:
        return terms[:-1]
    defaults = functions.DEFAULTS.get(node.name, ())
    arguments = list(terms)
    for default in reversed(
        defaults[len(defaults) - len(terms) + 1 :] if len(terms) <= len(defaults) else defaults
    ):
        if len(arguments) < 2 or arguments[-1].text != default:
            break
        arguments.pop()
    return arguments


def _name(node: Node) -> str:
    if node.name in _PYTHON or node.name in {
        "HiveSimpleUDF",
        "HiveGenericUDF",
        "HiveUDAFFunction",
        "HiveGenericUDTF",
    }:
        return str(node.fields.get("name"))
    if node.name == "ScalaUDF":
        return str(node.fields.get("udfName") or "UDF")
    if node.name in {"ApplyFunctionExpression", "V2Aggregator"}:
        return str(node.fields.get("function") or node.name)
    return functions.function_name(node.name)


def _call(name: str, terms: Sequence[Term], before: str = "") -> list[str | Term]:
    pieces: list[str | Term] = [f"{name}({before}"]
    for index, term in enumerate(terms):
        pieces += [", ", term] if index else [term]
    return [*pieces, ")"]


def _literal(value: Any, data_type: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(data_type, str) and data_type.startswith("interval "):
        return _interval(int(value), data_type.removeprefix("interval ").upper())
    if data_type == "binary":
        return "X'...'"  # it shows itself as the name of an object, another one each time
    if not isinstance(data_type, str) or data_type.startswith(
        ("string", "char", "varchar", "date", "timestamp")
    ):
        return in_quotes(str(value))
    return str(value).upper() if data_type == "boolean" else str(value)


def _out_of_quotes(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text.removeprefix("'").removesuffix("'"), flags=re.DOTALL)


_UNITS = {
    "MONTH": 1,
    "YEAR": 12,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}


def _interval(value: int, units: str) -> str:
    """A length of time, which Spark keeps in months or microseconds."""
    if units in _UNITS:
        return f"INTERVAL '{value / _UNITS[units]:g}' {units}"
    if "MONTH" in units:
        return f"INTERVAL '{value // 12}-{value % 12}' {units}"
    days, rest = divmod(value, _UNITS["DAY"])
    hours, minutes = rest // _UNITS["HOUR"], rest // _UNITS["MINUTE"] % 60
    clock = f"{hours:02}:{minutes:02}:{rest / _UNITS['SECOND'] % 60:02g}"
    return f"INTERVAL '{days} {clock}' DAY TO SECOND"


def _cast(node: Node, value: Value) -> Value:
    """A cast as the user wrote it; those that Spark added are not shown."""
    if not node.fields["written"]:
        return value
    word = "TRY_CAST" if node.fields["evalMode"] == "TRY" else "CAST"
    target = type_name(node.fields["dataType"]).upper()
    return tuple(
        built([f"{word}(", term, f" AS {target})"], demoted([term], transforming)) for term in value
    )


def _if(node: Node, terms: list[Term]) -> Term:
    condition, then, otherwise = terms
    kinds = demoted([condition], lambda _: CONDITIONAL) | demoted([then, otherwise], transforming)
    return built(["(IF(", condition, ", ", then, ", ", otherwise, "))"], kinds)


def _case(node: Node, terms: list[Term]) -> Term:
    pairs, otherwise = terms[: len(terms) // 2 * 2], terms[len(terms) // 2 * 2 :]
    pieces: list[str | Term] = ["CASE"]
    for condition, then in zip(pairs[::2], pairs[1::2], strict=True):
        pieces += [" WHEN ", condition, " THEN ", then]
    if otherwise:
        pieces += [" ELSE ", otherwise[0]]
    kinds = demoted(pairs[::2], lambda _: CONDITIONAL) | demoted(
        [*pairs[1::2], *otherwise], transforming
    )
    return built([*pieces, " END"], kinds)


def _aggregate(node: Node, terms: list[Term]) -> Term:
    """The function's own term, its columns aggregated; DISTINCT and FILTER belong to this node."""
    function, *condition = terms
    if PIVOTED in (function.fields or {}):
        return function
    kinds = demoted([function], lambda _: AGGREGATION) | demoted(condition, lambda _: CONDITIONAL)
    pieces: list[str | Term] = [function]
    if node.fields.get("isDistinct"):
        pieces = [Term(function.text.replace("(", "(DISTINCT ", 1), function.refs)]
    if condition:
        pieces += [" FILTER (WHERE ", condition[0], ")"]
    return built(pieces, kinds)


def _by(node: Node, terms: list[Term]) -> Term:
    """MAX_BY and MIN_BY: the second argument only chooses."""
    kinds = demoted(terms[1:], lambda _: CONDITIONAL)
    return built(_text(node, terms), demoted(terms[:1], transforming) | kinds)


def _struct(node: Node, terms: list[Term]) -> Term:
    names = [_out_of_quotes(term.text) for term in terms[::2]]
    fields = dict(zip(names, terms[1::2], strict=False))
    return built(_call("NAMED_STRUCT", terms), demoted(terms, transforming), fields)


def _updated(node: Node, terms: list[Term]) -> Term:
    """`withField` and `dropFields`.

    The fields that were there, those that are put in, without those taken out.
    """
    struct, *changes = terms
    names = _field_names(node.children[0])
    fields = {
        name: built([struct, "." + quoted(name)], demoted([struct], transforming)) for name in names
    }
    fields.update(struct.fields or {})
    for change, operation in zip(changes, node.children[1:], strict=True):
        name = str(operation.fields.get("name"))
        fields.pop(name, None)
        fields.update(change.fields or {})
    return built(_call("UPDATE_FIELDS", terms), demoted(terms, transforming), fields)


def _put_in(node: Node, terms: list[Term]) -> Term:
    name = str(node.fields.get("name"))
    return built(
        [f"WITH_FIELD({in_quotes(name)}, ", terms[0], ")"],
        demoted(terms, transforming),
        {name: terms[0]},
    )


def _taken_out(node: Node, terms: list[Term]) -> Term:
    return Term(f"DROP_FIELD({in_quotes(str(node.fields.get('name')))})")


def _field(node: Node, terms: list[Term]) -> Term:
    """Return a field of a struct.

    Exactly that field's origins where the statement built the struct itself.
    """
    inner = node.fields.get("field")
    own = inner.get("name") if isinstance(inner, dict) else None
    ordinal = int(node.fields.get("ordinal") or 0)
    name = str(
        own
        or node.fields.get("name")
        or _field_name(node.children[0], ordinal)
        or f"_{ordinal + 1}"
    )
    fields = terms[0].fields or {}
    if name in fields:
        return fields[name]
    if terms[0].is_identity:  # of a table's own struct, that field as it is
        return inside(terms[0].refs[0], name)
    return built([terms[0], "." + quoted(name)], demoted(terms, transforming))


def _field_name(struct: Node, ordinal: int) -> str | None:
    """The name of a field that is given by its position, as `address.*` does."""
    names = _field_names(struct)
    return names[ordinal] if ordinal < len(names) else None


def _field_names(struct: Node) -> list[str]:
    data_type = struct.fields.get("dataType")
    fields = data_type.get("fields") if isinstance(data_type, dict) else None
    return [str(field["name"]) for field in fields or ()]


def _item(node: Node, terms: list[Term]) -> Term:
    pivoted = (terms[0].fields or {}).get(PIVOTED)
    if pivoted is not None:
        return pivoted
    return built([terms[0], "[", terms[1], "]"], demoted(terms, transforming))


def _in(node: Node, terms: list[Term]) -> Term:
    return built(["(", terms[0], " IN (", *commas(terms[1:]), "))"], demoted(terms, transforming))


def _in_subquery(node: Node, terms: list[Term]) -> Term:
    *values, query = terms
    text = (
        values[0]
        if len(values) == 1
        else built(["(", listed(values), ")"], demoted(values, lambda kind: kind))
    )
    return _in(node, [text, query])


def _between(node: Node, terms: list[Term]) -> Term:
    return built(
        ["(", terms[0], " BETWEEN ", terms[1], " AND ", terms[2], ")"], demoted(terms, transforming)
    )


def _extract(node: Node, terms: list[Term]) -> Term:
    return built(
        ["EXTRACT(", terms[0].text.strip("'").upper(), " FROM ", terms[1], ")"],
        demoted(terms, transforming),
    )


def _in_units(node: Node, terms: list[Term]) -> Term:
    """TIMESTAMPADD and TIMESTAMPDIFF, whose unit is a word and no expression."""
    name = node.name.upper()
    return built(_call(name, terms, f"{node.fields.get('unit')}, "), demoted(terms, transforming))


def _trim(node: Node, terms: list[Term]) -> Term:
    """Return what is trimmed off comes before the text, as in TRIM(BOTH 'x' FROM name)."""
    if len(terms) == 1:
        return built(_call(functions.function_name(node.name), terms), demoted(terms, transforming))
    return built(
        ["TRIM(", f"{_SIDES[node.name]} ", terms[1], " FROM ", terms[0], ")"],
        demoted(terms, transforming),
    )


_SIDES = {"StringTrim": "BOTH", "StringTrimLeft": "LEADING", "StringTrimRight": "TRAILING"}


def _lambda(node: Node, terms: list[Term]) -> Term:
    body, *arguments = terms
    names = ", ".join(argument.text for argument in arguments)
    shown = f"({names})" if len(arguments) > 1 else names
    return built(
        [f"{shown} -> ", body] if arguments and not node.fields.get("hidden") else [body],
        body.kinds,
    )


def _pivot(node: Node, terms: list[Term]) -> Term:
    """PIVOT takes the value of the rows whose pivot column matches.

    That one groups rows, no value comes from it.
    """
    kinds = demoted([terms[1]], transforming)
    value = built([terms[1]], kinds)
    return built([value], kinds, {PIVOTED: value})


def _checked_text(node: Node, terms: list[Term]) -> Term:
    """Spark's own checks of CHAR and VARCHAR lengths call static methods.

    Other static calls are functions.
    """
    name = str(node.fields.get("functionName") or "")
    if name.endswith(("TypeWriteSideCheck", "readSidePadding")):
        return terms[0]
    return built(
        _call(functions.function_name(name[:1].upper() + name[1:]), terms),
        demoted(terms, transforming),
    )


_CONSTANTS: dict[str, Callable[[Node], str]] = {
    "Literal": lambda node: _literal(node.fields.get("value"), node.fields.get("dataType")),
    "NamedLambdaVariable": lambda node: str(node.fields["name"]),
    "VariableReference": lambda node: ".".join(node.fields["originalNameParts"]),
}
_SPECIAL: dict[str, Callable[[Node, list[Term]], Term]] = {
    "If": _if,
    "CaseWhen": _case,
    "AggregateExpression": _aggregate,
    **WINDOWS,
    **dict.fromkeys(("MaxBy", "MinBy"), _by),
    "CreateNamedStruct": _struct,
    "UpdateFields": _updated,
    "WithField": _put_in,
    "DropField": _taken_out,
    "GetStructField": _field,
    "GetArrayStructFields": _field,
    "GetArrayItem": _item,
    "GetMapValue": _item,
    "ElementAt": lambda node, terms: built(
        _call("ELEMENT_AT", terms[:2]), demoted(terms, transforming)
    ),
    "Between": _between,
    "Extract": _extract,
    **dict.fromkeys(("TimestampAdd", "TimestampDiff"), _in_units),
    **dict.fromkeys(_SIDES, _trim),
    "In": _in,
    "InSubquery": _in_subquery,
    "LambdaFunction": _lambda,
    "PivotFirst": _pivot,
    "StaticInvoke": _checked_text,
    "Invoke": _checked_text,
}
__all__ = ["SUBQUERIES", "TRANSFORMATION", "Surroundings", "value_of"]
