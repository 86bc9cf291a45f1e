"""Functions that give one of their arguments as it is.

Of a struct that comes out, each field is known as it went in.

`max(struct(placed_at, status)).status` comes from the status; what a row is chosen by only decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from strandline_spark.columns.expression import (
    CONDITIONAL,
    PIVOTED,
    Term,
    built,
    demoted,
    quoted,
    transforming,
)

_BY_ORDER = {"Max", "Min", "Greatest", "Least", "SortArray", "ArraySort"}  # the other fields choose
_FIRST = {
    *(
        "Max",
        "Min",
        "First",
        "Last",
        "AnyValue",
        "NthValue",
        "MaxBy",
        "MinBy",
        "Mode",
        "Lag",
        "Lead",
    ),
    *(
        "AggregateExpression",
        "WindowExpression",
        "CollectList",
        "CollectSet",
        "GetArrayItem",
        "ElementAt",
    ),
    *(
        "Explode",
        "PosExplode",
        "SortArray",
        "ArraySort",
        "ArrayDistinct",
        "ArrayFilter",
        "Reverse",
        "Slice",
        "Shuffle",
    ),
}
_EACH = {"Coalesce", "Nvl", "Greatest", "Least", "CreateArray", "Concat"}


def picked(name: str, terms: Sequence[Term]) -> tuple[int, ...]:
    """Return the arguments of a function that its value may be.

    Only if all are structs (or hold some) that the statement built.
    """
    places = tuple(
        place
        for place in _places(name, len(terms))
        if terms[place].text != "NULL" or terms[place].kinds
    )
    built_here = all(
        terms[place].fields and PIVOTED not in (terms[place].fields or {}) for place in places
    )
    return places if built_here else ()


def _places(name: str, count: int) -> Sequence[int]:
    if name in _FIRST:
        return range(min(count, 1))
    if name in _EACH:
        return range(count)
    if name == "If":
        return (1, 2)
    if name == "CaseWhen":
        return (*range(1, count, 2), *(range(count - 1, count) if count % 2 else ()))
    return ()


def of_rows(generator: str, column: Term, taken: Term) -> Term:
    """The column of an EXPLODE, with the fields of the structs in the array that it takes apart."""
    places = picked(generator, [taken])
    if not places:
        return column
    fields = Picked(
        generator, column, [taken], places, lambda terms: built(terms, demoted(terms, transforming))
    )
    return replace(column, fields=fields)


class Picked(Mapping[str, Term]):
    """The fields of a struct that a function gives, each made when it is asked for."""

    def __init__(
        self,
        name: str,
        whole: Term,
        terms: Sequence[Term],
        places: Sequence[int],
        make: Callable[[list[Term]], Term],
    ) -> None:
        """`make`: what the function makes of its arguments."""
        self._function, self._whole, self._terms, self._places, self._make = (
            name,
            whole,
            terms,
            places,
            make,
        )
        first, *rest = ((terms[place].fields or {}) for place in places)
        self._names = dict.fromkeys(
            field for field in first if all(field in fields for fields in rest)
        )

    def __getitem__(self, name: str) -> Term:
        inner = list(self._terms)
        for place in self._places:
            inner[place] = (self._terms[place].fields or {})[name]
        others = (
            demoted(self._others(name), lambda _: CONDITIONAL)
            if self._function in _BY_ORDER
            else {}
        )
        return built([self._whole, "." + quoted(name)], {**others, **self._make(inner).kinds})

    def _others(self, name: str) -> Iterator[Term]:
        for place in self._places:
            yield from (
                term for field, term in (self._terms[place].fields or {}).items() if field != name
            )

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
