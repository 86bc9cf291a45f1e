"""Many statements -> at most one row a key, sorted by key, so that writers of several processes take their locks in one order.

Folding by FOLDS, exactly as the database does: compacting first and applying then leaves the same rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from strandline.core.changes.bundles import AliasSet, EdgeSet, Statement
from strandline.core.changes.facet_sets import FacetSet, SharedFacets
from strandline.core.changes.rows import FOLDS, Fold
from strandline.core.changes.unpack import unpack

R = TypeVar("R")
Row = tuple[Any, ...]
Key = Callable[[Row], Any]
Merge = Callable[[Key, Sequence[Any]], dict[Any, Any]]


class Rows(dict[type[Any], list[Any]]):
    """Rows by their kind: under each type the values of that very type, at most one a key, sorted by key.

    sets: those that facets are stored in, by their ids.
    """

    def __init__(self, *rows: Any) -> None:
        super().__init__(*rows)
        self.sets: dict[int, FacetSet] = {}

    def of(self, kind: type[R]) -> list[R]:
        """The rows of one kind, none if there are none."""
        return self.get(kind, [])

    def take(self, kind: type[R]) -> list[R]:
        """The rows of one kind, which are none of these any more."""
        return self.pop(kind, [])

    def put(self, kind: type[R], rows: list[R]) -> None:
        """Let these be the rows of the kind."""
        if rows:
            self[kind] = rows
        else:
            self.pop(kind, None)


def compact(statements: Iterable[Statement], shared: SharedFacets | None = None) -> Rows:
    """The rows that these leave, by kind, each kind sorted by key.

    Sets of edges, aliases and facets stay as they are.

    shared: what decides which facets are stored in sets; None: none are.
    """
    found: dict[Any, list[Any]] = defaultdict(list)
    for statement in statements:
        found[type(statement)].append(statement)
    unpack(found, shared)
    return Rows({kind: fold_rows(kind, rows) for kind, rows in found.items() if rows})


def fold_rows(kind: type[R], rows: Sequence[R]) -> list[R]:
    """The rows of one kind folded to one a key, sorted by key.

    Folding folded rows again with others changes nothing.
    """
    found = _MERGES[kind](_KEYS[kind], rows)
    return [found[key] for key in sorted(found)]


def key_of(kind: type[Any], row: Row) -> Any:
    """The key that rows of this kind are folded by."""
    return _KEYS[kind](row)


def _key_of(kind: type[Any], fold: Fold) -> Key:
    return itemgetter(*(kind._fields.index(name) for name in fold.key))


def _merge_of(kind: type[Any], fold: Fold) -> Merge:
    """How the rows of each key become one."""
    if not fold.least and not fold.most:
        return _by_rank(itemgetter(*_indexes(kind, fold.rank))) if fold.rank else _any
    return _by_columns(kind, fold)


def _any(key: Key, rows: Sequence[Row]) -> dict[Any, Row]:
    return dict(zip(map(key, rows), rows, strict=True))


def _by_rank(rank: Key) -> Merge:
    """The greatest rank wins; of equal ones the first, as in the database."""

    def merge(key: Key, rows: Sequence[Row]) -> dict[Any, Row]:
        found = _any(key, rows)
        return (
            found
            if len(found) == len(rows)
            else _any(key, sorted(rows, key=rank, reverse=True)[::-1])
        )

    return merge


def _by_columns(kind: type[Any], fold: Fold) -> Merge:
    least, most = _indexes(kind, fold.least), _indexes(kind, fold.most)
    rank: Key | None = itemgetter(*_indexes(kind, fold.rank)) if fold.rank else None
    make: Callable[[Sequence[Any]], Row] = kind._make

    def merged(rows: Sequence[Row]) -> Row:
        columns = list(zip(*rows, strict=True))
        winner = rows[0] if rank is None else max(rows, key=rank)
        row = list(winner)
        for index in least:
            row[index] = _extreme(min, columns[index])
        for index in most:
            row[index] = _extreme(max, columns[index])
        return make(row)

    def merge(key: Key, rows: Sequence[Row]) -> dict[Any, Row]:
        found = defaultdict(list)
        for row in rows:
            found[key(row)].append(row)
        return {one: same[0] if len(same) == 1 else merged(same) for one, same in found.items()}

    return merge


def _extreme(which: Callable[..., Any], values: Sequence[Any]) -> Any:
    """The least or greatest value that events state, None if they state none."""
    return (
        which(values)
        if None not in values
        else which((one for one in values if one is not None), default=None)
    )


def _indexes(kind: type[Any], names: Sequence[str]) -> list[int]:
    return [kind._fields.index(name) for name in names]


_KEYS: dict[Any, Key] = {kind: _key_of(kind, fold) for kind, fold in FOLDS.items()}
_MERGES: dict[Any, Merge] = {kind: _merge_of(kind, fold) for kind, fold in FOLDS.items()}
_KEYS |= {EdgeSet: itemgetter(0), AliasSet: itemgetter(0, 1), FacetSet: itemgetter(0)}
_MERGES |= {EdgeSet: _any, AliasSet: _any, FacetSet: _any}
