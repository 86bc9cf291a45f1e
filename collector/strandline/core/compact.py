"""Many changes -> at most one row a key, sorted by key, so that writers of several processes take their locks in one order.

Folding by FOLDS, exactly as the database does: compacting first and applying then leaves the same rows.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from strandline.core.changes import FOLDS, AliasSet, Change, EdgeSet, FacetBody, FacetSeen, FacetsSeen, Fold

Row = tuple[Any, ...]
Rows = dict[type[Change], list[Row]]
Merge = Callable[[Row, Row], Row]


def compact(changes: Iterable[Change]) -> Rows:
    """The rows that these changes leave, by kind, each kind sorted by key; bundles of facets become rows."""
    folded: dict[type[Any], dict[Any, Row]] = {kind: {} for kind in _KEYS}
    _fold(folded, changes)
    bundles: list[Any] = sorted(folded.pop(FacetsSeen).values(), key=itemgetter(3), reverse=True)
    for bundle in bundles:
        folded[FacetBody].update((body.hash, body) for body in bundle.bodies)
        _unpack(folded[FacetSeen], bundle)
    return {kind: [rows[key] for key in sorted(rows)] for kind, rows in folded.items() if rows}


def _fold(folded: dict[type[Any], dict[Any, Row]], changes: Iterable[Change]) -> None:
    for change in changes:
        kind = type(change)
        rows, key = folded[kind], _KEYS[kind](change)
        known = rows.get(key)
        rows[key] = change if known is None else _MERGES[kind](known, change)


def _unpack(rows: dict[Any, Row], bundle: FacetsSeen) -> None:
    """Fold an entity's facets into rows; most lose, so a row is made only for a winner."""
    entity_id, kind, _, at, facets, _ = bundle
    for facet in facets:
        key = (entity_id, facet[0], kind)
        known = rows.get(key)
        if known is None or at > known[3] or (at == known[3] and facet[1] > known[4]):
            rows[key] = FacetSeen(entity_id, facet[0], kind, at, *facet[1:])


def _key_of(kind: type[Any], fold: Fold) -> Callable[[Row], Any]:
    return itemgetter(*(kind._fields.index(name) for name in fold.key))


def _merge_of(kind: type[Any], fold: Fold) -> Merge:
    """How two rows of one key become one."""
    if not fold.least and not fold.most:
        return _by_rank(kind, fold) if fold.rank else _first
    return _by_columns(kind, fold)


def _first(known: Row, _new: Row) -> Row:
    return known


def _by_rank(kind: type[Any], fold: Fold) -> Merge:
    rank = itemgetter(*(kind._fields.index(name) for name in fold.rank))
    return lambda known, new: new if rank(new) > rank(known) else known


def _by_columns(kind: type[Any], fold: Fold) -> Merge:
    least, most, ranked, rank = (_indexes(kind, names) for names in (fold.least, fold.most, fold.ranked, fold.rank))

    def merge(known: Row, new: Row) -> Row:
        row = list(known)
        for index in least:
            row[index] = _less(known[index], new[index])
        for index in most:
            row[index] = _more(known[index], new[index])
        if rank and [new[index] for index in rank] > [known[index] for index in rank]:
            for index in ranked:
                row[index] = new[index]
        return kind(*row)  # type: ignore[no-any-return]

    return merge


def _indexes(kind: type[Any], names: Sequence[str]) -> list[int]:
    return [kind._fields.index(name) for name in names]


def _less(one: Any, other: Any) -> Any:
    return other if one is None or (other is not None and other < one) else one


def _more(one: Any, other: Any) -> Any:
    return other if one is None or (other is not None and other > one) else one


_KEYS: dict[Any, Callable[[Row], Any]] = {kind: _key_of(kind, fold) for kind, fold in FOLDS.items()}
_MERGES: dict[Any, Merge] = {kind: _merge_of(kind, fold) for kind, fold in FOLDS.items()}
_KEYS |= {EdgeSet: itemgetter(0), AliasSet: itemgetter(0, 1), FacetsSeen: itemgetter(0, 1, 2)}
_MERGES |= {EdgeSet: _first, AliasSet: _first, FacetsSeen: lambda known, new: new if new[3] > known[3] else known}
