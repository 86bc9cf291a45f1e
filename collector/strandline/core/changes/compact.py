"""Many changes -> at most one row a key, sorted by key.

So writers of several processes take their locks in one order.

What stands for several rows (lineages, parents, facets) becomes these rows first, folded over the
batch: a lineage's rows are made once for each run, and once over all of them. Then rows are folded
by FOLDS, exactly as the database does, so compacting first and applying then leaves the same rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from strandline.core.changes.datasets import DatasetUse
from strandline.core.changes.facet_sets import FacetSet, SharedFacets
from strandline.core.changes.lineage import EventChange, JobLineage, LineageSeen
from strandline.core.changes.rows import (
    FOLDS,
    QUARANTINED,
    AliasSet,
    DatasetSeen,
    EdgeSet,
    EdgesUsed,
    FacetBody,
    FacetSeen,
    FacetSetUsed,
    FacetsSeen,
    Fold,
    JobRelation,
    JobSeen,
    ParentsSeen,
    RelationSeen,
    RunSeen,
    SetFacet,
)
from strandline.core.openlineage.facets import DATASET, JOB, SHARED_SIZE, Facet

MENTION_AT = -(2**62)  # a parent facet knows the job's name, but any event of the run knows better
# As long as it may be: whoever labels datasets reads it with the row.
KEPT_WITH_THE_ROW = frozenset(("catalog",))

R = TypeVar("R")
Row = tuple[Any, ...]
ByKind = dict[Any, list[Any]]
Key = Callable[[Row], Any]
Merge = Callable[[Key, Sequence[Any]], dict[Any, Any]]


class Rows(dict[type[Any], list[Any]]):
    """Rows by their kind, at most one a key, sorted by key.

    sets: those that facets are stored in, by their ids.
    """

    def __init__(self, *rows: Any) -> None:
        super().__init__(*rows)
        self.sets: dict[int, FacetSet] = {}

    def of(self, kind: type[R]) -> list[R]:
        """Return the rows of one kind, none if there are none."""
        return self.get(kind, [])

    def take(self, kind: type[R]) -> list[R]:
        """Remove the rows of one kind and return them."""
        return self.pop(kind, [])

    def put(self, kind: type[R], rows: list[R]) -> None:
        """Let these be the rows of the kind."""
        if rows:
            self[kind] = rows
        else:
            self.pop(kind, None)


def compact(changes: Iterable[EventChange], shared: SharedFacets | None = None) -> Rows:
    """Return the rows that these leave, by kind, each kind sorted by key.

    Sets of edges, aliases and facets stay as they are. shared: decides which facets are stored in
    sets; without it none are.
    """
    by_kind: ByKind = defaultdict(list)
    for change in changes:
        by_kind[type(change)].append(change)
    _add_parents(by_kind, by_kind.pop(ParentsSeen, ()))
    _add_lineages(by_kind, by_kind.pop(LineageSeen, ()))
    facet_changes = by_kind.pop(FacetsSeen, ())
    if shared is not None:
        facet_changes = _add_sets(by_kind, facet_changes, shared)
    _add_facets(by_kind, facet_changes)
    return Rows({kind: fold_rows(kind, rows) for kind, rows in by_kind.items() if rows})


def _add_parents(by_kind: ByKind, changes: Iterable[ParentsSeen]) -> None:
    """Add the jobs and runs that parent facets name, each facet once."""
    newest: dict[bytes, ParentsSeen] = {}
    for change in changes:
        last = newest.get(change.hash)
        if last is None or last.received_at < change.received_at:
            newest[change.hash] = change
    for _, parents, received_at in newest.values():
        for job, (run_id, run_name) in parents.mentions:
            run = RunSeen(
                run_id, run_name, job.id, MENTION_AT, job.id, child_received_at=received_at
            )
            by_kind[JobSeen].append(job)
            by_kind[RunSeen].append(run)


class _Span(NamedTuple):
    """The first and last times at which a run, or a design (ran = 0), had a lineage."""

    first_at: int
    newest_at: int
    ran: int


def _add_lineages(by_kind: ByKind, changes: Iterable[LineageSeen]) -> None:
    spans: dict[JobLineage, dict[int, _Span]] = defaultdict(dict)
    for lineage, run_id, first_at, newest_at, ran in changes:
        of_run = spans[lineage].get(run_id)
        if of_run is not None:
            first_at = min(first_at, of_run.first_at)
            newest_at = max(newest_at, of_run.newest_at)
        spans[lineage][run_id] = _Span(first_at, newest_at, ran)
    for lineage, of_runs in spans.items():
        for run_id, span in of_runs.items():
            _add_run(by_kind, lineage, run_id, span)
        first_at = min(span.first_at for span in of_runs.values())
        newest_at = max(span.newest_at for span in of_runs.values())
        _add_job(by_kind, lineage, first_at, newest_at)
        ran, at, run_id = max((span.ran, span.newest_at, id_) for id_, span in of_runs.items())
        by_kind[JobRelation] += [
            JobRelation(lineage.job.id, *related, run_id, at, ran) for related in lineage.related
        ]


def _add_run(by_kind: ByKind, lineage: JobLineage, run_id: int, span: _Span) -> None:
    """Add what a run did."""
    first, newest = span.first_at, span.newest_at
    relations, edges = by_kind[RelationSeen], by_kind[EdgesUsed]
    for use in lineage.uses:
        relations.append(
            RelationSeen(run_id, use.direction, use.dataset.id, use.creates, first, newest)
        )
    for sink_id, rule, edge_set in lineage.edges:
        edges.append(EdgesUsed(run_id, sink_id, rule, edge_set.hash, newest))


def _add_job(by_kind: ByKind, lineage: JobLineage, first_at: int, newest_at: int) -> None:
    """Add what does not differ from run to run."""
    job = lineage.job.between(first_at, newest_at, lineage.noise, lineage.data)
    by_kind[JobSeen].append(job)
    by_kind[FacetsSeen].append(FacetsSeen(job.id, JOB, newest_at, lineage.facets))
    by_kind[EdgeSet] += [edge_set for _, _, edge_set in lineage.edges]
    for use in lineage.uses:
        _add_dataset(by_kind, use, first_at, newest_at)


def _add_dataset(by_kind: ByKind, use: DatasetUse, first_at: int, newest_at: int) -> None:
    if use.elsewhere:
        by_kind[DatasetSeen].append(use.dataset)
        return
    by_kind[DatasetSeen].append(use.dataset.between(first_at, newest_at))
    by_kind[FacetsSeen].append(FacetsSeen(use.dataset.id, DATASET, newest_at, use.stored))
    if use.aliases is not None:
        by_kind[AliasSet].append(use.aliases)


def _add_sets(
    by_kind: ByKind, changes: Iterable[FacetsSeen], shared: SharedFacets
) -> list[FacetsSeen]:
    """Add the sets that entities had, and return what is stored facet by facet."""
    left: list[FacetsSeen] = []
    used: dict[tuple[int, int], int] = {}
    sets: dict[int, FacetSet] = {}
    for change in changes:
        own, others = shared.split(change.entity_id, change.kind, change.facets)
        if own is not None:
            place = change.entity_id, own.id
            used[place] = max(change.at, used.get(place, change.at))
            sets[own.id] = own
        if others:
            left.append(change if own is None else change._replace(facets=others))
    by_kind[FacetSet] += sets.values()
    by_kind[FacetSetUsed] += [FacetSetUsed(*place, at) for place, at in used.items()]
    return left


def rows_of_set(facets: FacetSet) -> tuple[list[SetFacet], list[FacetBody]]:
    """Return the rows of a set, and the bodies that are stored once."""
    rows, bodies = [], []
    for facet in facets.facets:
        own = _own_body(facet)
        if own is None:
            bodies.append(FacetBody(facet.hash, facet.body))
        row = SetFacet(facets.id, facet.key, facets.kind, facet.hash, own, int(facet.deleted))
        rows.append(row)
    return rows, bodies


def _own_body(facet: Facet) -> bytes | None:
    """Return the body to store with a facet's row, None where it is stored once by its hash."""
    is_small = len(facet.body) <= SHARED_SIZE
    return facet.body if is_small or facet.key in KEPT_WITH_THE_ROW else None


def _add_facets(by_kind: ByKind, changes: Iterable[FacetsSeen]) -> None:
    """Add the newest facet of each key of each entity, and the bodies that are stored once.

    Most facets lose, and no row is made of them.
    """
    entities: dict[tuple[int, int], dict[str, tuple[int, Facet]]] = defaultdict(dict)
    for entity_id, kind, at, facets in sorted(changes, key=attrgetter("at"), reverse=True):
        _add_winners(entities[entity_id, kind], at, facets)
    bodies = {body.hash: body for body in by_kind[FacetBody]}
    for (entity_id, kind), winners in entities.items():
        for at, facet in winners.values():
            own, deleted = _own_body(facet), int(facet.deleted)
            if own is None:
                bodies[facet.hash] = FacetBody(facet.hash, facet.body)
            stored_as = kind + QUARANTINED if facet.problem else kind
            by_kind[FacetSeen].append(
                FacetSeen(
                    entity_id, facet.key, stored_as, at, facet.hash, own, deleted, facet.problem
                )
            )
    by_kind[FacetBody] = list(bodies.values())


def _add_winners(winners: dict[str, tuple[int, Facet]], at: int, facets: Sequence[Facet]) -> None:
    """Add facets that are no newer than those before.

    They win where there is none, or by their hash.
    """
    for facet in facets:
        # One that does not count is only its like's rival.
        key = f"\0{facet.key}" if facet.problem else facet.key
        winner = winners.get(key)
        if winner is None or (at == winner[0] and facet.hash > winner[1].hash):
            winners[key] = at, facet


def fold_rows(kind: type[R], rows: Sequence[R]) -> list[R]:
    """Fold the rows of one kind to one a key, sorted by key.

    Folding folded rows again with others changes nothing.
    """
    folded = _MERGES[kind](_KEYS[kind], rows)
    return [folded[key] for key in sorted(folded)]


def key_of(kind: type[Any], row: Row) -> Any:
    """Return the key that rows of this kind are folded by."""
    return _KEYS[kind](row)


def _key_of(kind: type[Any], fold: Fold) -> Key:
    return itemgetter(*_indexes(kind, fold.key))


def _merge_of(kind: type[Any], fold: Fold) -> Merge:
    """Return how the rows of each key become one."""
    if fold.least or fold.most:
        return _by_columns(kind, fold)
    if fold.rank:
        return _by_rank(itemgetter(*_indexes(kind, fold.rank)))
    return _any


def _any(key: Key, rows: Sequence[Row]) -> dict[Any, Row]:
    return dict(zip(map(key, rows), rows, strict=True))


def _by_rank(rank: Key) -> Merge:
    """Return a merge in which the greatest rank wins, of equal ones the first row."""

    def merge(key: Key, rows: Sequence[Row]) -> dict[Any, Row]:
        merged = _any(key, rows)
        if len(merged) == len(rows):
            return merged
        return _any(key, sorted(rows, key=rank, reverse=True)[::-1])

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
        same_key = defaultdict(list)
        for row in rows:
            same_key[key(row)].append(row)
        return {
            of_key: same[0] if len(same) == 1 else merged(same) for of_key, same in same_key.items()
        }

    return merge


def _extreme(which: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Return the least or greatest value that events state, None if they state none."""
    if None not in values:
        return which(values)
    return which((value for value in values if value is not None), default=None)


def _indexes(kind: type[Any], names: Sequence[str]) -> list[int]:
    return [kind._fields.index(name) for name in names]


_KEYS: dict[Any, Key] = {kind: _key_of(kind, fold) for kind, fold in FOLDS.items()}
_MERGES: dict[Any, Merge] = {kind: _merge_of(kind, fold) for kind, fold in FOLDS.items()}
_KEYS |= {EdgeSet: itemgetter(0), AliasSet: itemgetter(0, 1), FacetSet: itemgetter(0)}
_MERGES |= {EdgeSet: _any, AliasSet: _any, FacetSet: _any}
