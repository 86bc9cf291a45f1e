"""Window expressions: what is computed over which rows, as Spark SQL writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from strandline_spark.columns.expression import (
    AGGREGATION,
    WINDOW,
    Term,
    built,
    commas,
    demoted,
    transforming,
)
from strandline_spark.columns.functions import function_name
from strandline_spark.plans.tree import Node


def _window(node: Node, terms: list[Term]) -> Term:
    function, specification = terms
    if node.children[0].name in _OWN_FRAME:  # Spark's own way to say which rows they look at
        specification = Term(
            _FRAME.sub("", specification.text), specification.refs, specification.kinds
        )
    kinds = demoted([function], _windowed(node)) | demoted([specification], lambda _: WINDOW)
    return built([function, " OVER (", specification, ")"], kinds)


def _windowed(node: Node) -> Callable[[str], str]:
    """A function of the whole frame aggregates; LAG and its kin pick one row."""
    return (
        transforming if node.children[0].name in {*_PICKS, "NthValue"} else lambda kind: AGGREGATION
    )


_PICKS = {"Lag", "Lead"}
_OWN_FRAME = {*_PICKS, "RowNumber", "Rank", "DenseRank", "PercentRank", "NTile", "CumeDist"}
_FRAME = re.compile(r" ?ROWS BETWEEN .*$")


def _rank(node: Node, terms: list[Term]) -> Term:
    """RANK and its kin take what they are ordered by as arguments, which nobody wrote."""
    return Term(f"{function_name(node.name)}()")


def _specification(node: Node, terms: list[Term]) -> Term:
    orders, frame = (
        _terms_of(node, terms, "SortOrder"),
        _terms_of(node, terms, "SpecifiedWindowFrame"),
    )
    rest = len(orders) + len(frame) + len(_terms_of(node, terms, "UnspecifiedFrame$"))
    partitions = terms[: len(terms) - rest]
    clauses: list[list[str | Term]] = []
    if partitions:
        clauses.append(["PARTITION BY ", *commas(partitions)])
    if orders:
        clauses.append(["ORDER BY ", *commas(orders)])
    if frame and frame[0].text:
        clauses.append([frame[0]])
    pieces = [
        piece for index, clause in enumerate(clauses) for piece in ([" "] if index else []) + clause
    ]
    return built(pieces, demoted(terms, transforming))


def _terms_of(node: Node, terms: list[Term], name: str) -> list[Term]:
    """The terms of the children with this name."""
    return [term for child, term in zip(node.children, terms, strict=True) if child.name == name]


def _sort_order(node: Node, terms: list[Term]) -> Term:
    descending = "Descending" in str(node.fields.get("direction"))
    nulls_first = "NullsFirst" in str(node.fields.get("nullOrdering"))
    text = (" DESC" if descending else "") + (
        "" if nulls_first != descending else _nulls(nulls_first)
    )
    return built([terms[0], text], terms[0].kinds)


def _nulls(first: bool) -> str:
    return " NULLS FIRST" if first else " NULLS LAST"


def _frame(node: Node, terms: list[Term]) -> Term:
    """The frame, unless it is one that Spark chooses by itself."""
    bounds, kind = (
        (terms[0].text, terms[1].text),
        "ROWS" if "Row" in str(node.fields.get("frameType")) else "RANGE",
    )
    so_far = kind == "RANGE" and bounds == ("UNBOUNDED PRECEDING", "CURRENT ROW")
    if so_far or bounds == ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"):
        return Term("")
    return built([f"{kind} BETWEEN ", *_bound(terms[0]), " AND ", *_bound(terms[1])], {})


def _bound(term: Term) -> list[str | Term]:
    if term.text.endswith(("PRECEDING", "FOLLOWING", "ROW")):
        return [term]
    if term.text.startswith(("-", "(-")):
        return [term.text.strip("(-)") + " PRECEDING"]
    return [term, " FOLLOWING"]


WINDOWS: Mapping[str, Callable[[Node, list[Term]], Term]] = {
    "WindowExpression": _window,
    "WindowSpecDefinition": _specification,
    "SortOrder": _sort_order,
    "SpecifiedWindowFrame": _frame,
    "UnboundedPreceding$": lambda node, terms: Term("UNBOUNDED PRECEDING"),
    "UnboundedFollowing$": lambda node, terms: Term("UNBOUNDED FOLLOWING"),
    "CurrentRow$": lambda node, terms: Term("CURRENT ROW"),
    **dict.fromkeys(("Rank", "DenseRank", "PercentRank"), _rank),
}
