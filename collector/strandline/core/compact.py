"""Many changes -> at most one row a key, sorted by key, so that writers of several processes take their locks in one order.

Folding by FOLDS, exactly as the database does: compacting first and applying then leaves the same rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from strandline.core.changes import FOLDS, AliasSet, Change, EdgeSet, FacetBody, FacetSeen, FacetsSeen, Fold

Row = tuple[Any, ...]
Rows = dict[type[Change], list[Row]]
Key = Callable[[Row], Any]
Merge = Callable[[Key, Sequence[Row]], dict[Any, Row]]


def compact(changes: Iterable[Change]) -> Rows:
    """The rows that these changes leave, by kind, each kind sorted by key; bundles of facets become rows."""
    found: dict[type[Any], list[Row]] = {kind: [] for kind in _KEYS}
    for change in changes:
        found[type(change)].append(change)
    folded = {kind: _MERGES[kind](_KEYS[kind], rows) for kind, rows in found.items()}
    bundles: list[Any] = sorted(folded.pop(FacetsSeen).values(), key=itemgetter(3), reverse=True)
    for bundle in bundles:
        folded[FacetBody].update((body.hash, body) for body in bundle.bodies)
        _unpack(folded[FacetSeen], bundle)
    return {kind: [rows[key] for key in sorted(rows)] for kind, rows in folded.items() if rows}


def _unpack(rows: dict[Any, Row], bundle: FacetsSeen) -> None:
    """Fold an entity's facets into rows; most lose, so a row is made only for a winner."""
    entity_id, kind, _, at, facets, _ = bundle
    for facet in facets:
        key = (entity_id, facet[0], kind)
        known = rows.get(key)
        if known is None or at > known[3] or (at == known[3] and facet[1] > known[4]):
            rows[key] = FacetSeen(entity_id, facet[0], kind, at, *facet[1:])


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
        return _any(key, sorted(rows, key=rank, reverse=True)[::-1])

    return merge


def _by_columns(kind: type[Any], fold: Fold) -> Merge:
    least, most = _indexes(kind, fold.least), _indexes(kind, fold.most)
    rank: Key | None = itemgetter(*_indexes(kind, fold.rank)) if fold.rank else None

    def merged(rows: Sequence[Row]) -> Row:
        columns = list(zip(*rows, strict=True))
        winner = rows[0] if rank is None else max(rows, key=rank)
        row = list(winner)
        for index in least:
            row[index] = _extreme(min, columns[index])
        for index in most:
            row[index] = _extreme(max, columns[index])
        return tuple(row)

    def merge(key: Key, rows: Sequence[Row]) -> dict[Any, Row]:
        found = defaultdict(list)
        for row in rows:
            found[key(row)].append(row)
        return {one: same[0] if len(same) == 1 else merged(same) for one, same in found.items()}

    return merge


def _extreme(which: Callable[..., Any], values: Sequence[Any]) -> Any:
    """The least or greatest value that was said, None if none was."""
    return which(values) if None not in values else which((one for one in values if one is not None), default=None)


def _indexes(kind: type[Any], names: Sequence[str]) -> list[int]:
    return [kind._fields.index(name) for name in names]


_KEYS: dict[Any, Key] = {kind: _key_of(kind, fold) for kind, fold in FOLDS.items()}
_MERGES: dict[Any, Merge] = {kind: _merge_of(kind, fold) for kind, fold in FOLDS.items()}
_KEYS |= {EdgeSet: itemgetter(0), AliasSet: itemgetter(0, 1), FacetsSeen: itemgetter(0, 1, 2)}
_MERGES |= {EdgeSet: _any, AliasSet: _any, FacetsSeen: _by_rank(itemgetter(3))}
