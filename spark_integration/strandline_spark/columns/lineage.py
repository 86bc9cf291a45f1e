"""The columns of a statement.

What each column of the target is made of, what decides its rows, what is opaque.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline_spark.columns.expression import DIRECT, IDENTITY, Ref, Term, Value, written
from strandline_spark.columns.resolver import Resolver
from strandline_spark.columns.scopes import Earlier, Scope
from strandline_spark.columns.targets import columns_in, filling_of
from strandline_spark.model.statement import Column, Origin
from strandline_spark.plans.tree import Node


@dataclass(frozen=True, slots=True)
class Lineage:
    """Columns, and what the query gives, for statements that go on from its rows.

    `filled`: the names of all columns that the statement fills, constants too.
    """

    columns: tuple[Column, ...] = ()
    indirect: tuple[Origin, ...] = ()
    opaque: tuple[str, ...] = ()
    given: Scope | None = None
    filled: tuple[str, ...] = ()

    @property
    def origins(self) -> Iterator[tuple[str, str]]:
        """The datasets that the columns come from."""
        for column in self.columns:
            yield from (origin.dataset for origin in column.origins)


def lineage_of(
    root: Node,
    leaves: Mapping[int, Value],
    earlier: Earlier,
    rewritten: tuple[str, str] | None = None,
    completed: Callable[
        [Sequence[tuple[str, Value]]], Iterable[tuple[str, Value]]
    ] = lambda given: (),
) -> Lineage:
    """The columns of a statement.

    `rewritten`: the target, if the statement changes rows of it in place; `completed`: the columns
    that the target itself makes of those it is given.
    """
    filling = filling_of(root)
    if filling is None:
        return Lineage()
    scope = Resolver(leaves, earlier, rewrites=rewritten is not None).scope_of(filling.query)
    given = columns_in(filling, scope)
    columns = [
        (name, _changed(value, name, rewritten)) for name, value in (*given, *completed(given))
    ]
    columns_found = (Column(name, origins_of(value)) for name, value in columns)
    return Lineage(
        tuple(column for column in columns_found if column.origins),
        _indirect(scope),
        scope.opaque,
        scope,
        tuple(name for name, _ in columns),
    )


def origins_of(value: Value) -> tuple[Origin, ...]:
    """The origins of a column, each with the whole expression it is part of."""
    origins: dict[Origin, None] = {}
    for term in value:
        transform = None if term.is_identity else written(term)
        for (ref, subtype), masked in term.kinds.items():
            origins[_origin(ref, subtype, masked, transform)] = None
    return tuple(origins)


def _origin(ref: Ref, subtype: str, masked: bool, transform: str | None) -> Origin:
    kind = "DIRECT" if subtype in DIRECT else "INDIRECT"
    return Origin(ref.dataset, ref.name, kind, subtype, transform, masked)


def _indirect(scope: Scope) -> tuple[Origin, ...]:
    return tuple(
        _origin(ref, subtype, masked, None) for (ref, subtype), masked in scope.indirect.items()
    )


def _changed(value: Value, name: str, rewritten: tuple[str, str] | None) -> Value:
    """In a statement that rewrites rows, a column that is only carried over has no origin."""
    if rewritten is None:
        return value
    return tuple(term for term in value if not _carried(term, name, rewritten))


def _carried(term: Term, name: str, target: tuple[str, str]) -> bool:
    return any(
        ref.dataset == target and ref.name == name and subtype == IDENTITY
        for ref, subtype in term.kinds
    )
