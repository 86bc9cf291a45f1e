"""Unpacking bundles into the rows that their events would have left one by one.

What a batch says with one outline is folded before: its first and newest moment, for each run and
over all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from strandline.core.changes.bundles import (
    AliasSet,
    EdgeSet,
    FacetRow,
    FacetsSeen,
    FamilySeen,
    Link,
    Outline,
    OutlineSeen,
)
from strandline.core.changes.facet_sets import FacetSet, SharedFacets
from strandline.core.changes.rows import (
    QUARANTINED,
    DatasetSeen,
    EdgesUsed,
    FacetBody,
    FacetSeen,
    FacetSetUsed,
    JobRelation,
    JobSeen,
    RelationSeen,
    RunSeen,
    SetFacet,
)
from strandline.core.openlineage.facets import DATASET, JOB, SHARED_SIZE

MENTION_AT = -(2**62)  # a parent facet knows the job's name, but any event of the run knows better
KEPT_WITH_THE_ROW = frozenset(
    ("catalog",)
)  # as long as it may be: whoever labels datasets reads it with the row
Found = dict[Any, list[Any]]


def unpack(found: Found, shared: SharedFacets | None = None) -> None:
    """Put rows in the place of the bundles."""
    _unpack_families(found, found.pop(FamilySeen, ()))
    _unpack_outlines(found, found.pop(OutlineSeen, ()))
    seen = found.pop(FacetsSeen, ())
    if shared is not None:
        seen = _take_sets(found, seen, shared)
    rows, bodies = _facets(seen)
    found[FacetSeen] += rows
    found[FacetBody] += bodies


def _unpack_families(found: Found, seen: Iterable[FamilySeen]) -> None:
    newest: dict[bytes, FamilySeen] = {}
    for one in seen:
        if one.hash not in newest or newest[one.hash].received_at < one.received_at:
            newest[one.hash] = one
    for _, family, received_at in newest.values():
        for job, run in family.mentions:
            found[JobSeen].append(job)
            found[RunSeen].append(
                RunSeen(*run, job.id, MENTION_AT, job.id, child_received_at=received_at)
            )


def _unpack_outlines(found: Found, seen: Iterable[OutlineSeen]) -> None:
    by_outline: dict[Outline, dict[int, tuple[int, int, int]]] = defaultdict(dict)
    for outline, run_id, first_at, newest_at, ran in seen:
        spans = by_outline[outline]
        first, newest, _ = spans.get(run_id, (first_at, newest_at, ran))
        spans[run_id] = min(first, first_at), max(newest, newest_at), ran
    for outline, spans in by_outline.items():
        for run_id, (first, newest, _) in spans.items():
            _unpack_run(found, outline, run_id, first, newest)
        first = min(first for first, _, _ in spans.values())
        newest = max(newest for _, newest, _ in spans.values())
        _unpack_job(found, outline, first, newest)
        ran, at, run_id = max((ran, at, run_id) for run_id, (_, at, ran) in spans.items())
        found[JobRelation] += [
            JobRelation(outline.job.id, *related, run_id, at, ran) for related in outline.related
        ]


def _unpack_run(found: Found, outline: Outline, run_id: int, first: int, newest: int) -> None:
    for link in outline.links:
        found[RelationSeen].append(
            RelationSeen(run_id, link.direction, link.dataset.id, link.creates, first, newest)
        )
    for sink_id, rule, edge_set in outline.edges:
        found[EdgesUsed].append(EdgesUsed(run_id, sink_id, rule, edge_set.hash, newest))


def _unpack_job(found: Found, outline: Outline, first: int, newest: int) -> None:
    """Put the rows that do not differ from run to run."""
    job_id = outline.job.id
    found[JobSeen].append(outline.job.between(first, newest, outline.noise, outline.data))
    found[FacetsSeen].append(FacetsSeen(job_id, JOB, newest, outline.facets))
    found[EdgeSet] += [edge_set for _, _, edge_set in outline.edges]
    for link in outline.links:
        _unpack_link(found, link, first, newest)


def _unpack_link(found: Found, link: Link, first: int, newest: int) -> None:
    if link.elsewhere:
        found[DatasetSeen].append(link.dataset)
        return
    found[DatasetSeen].append(link.dataset.between(first, newest))
    found[FacetsSeen].append(FacetsSeen(link.dataset.id, DATASET, newest, link.group.rows))
    if link.group.aliases is not None:
        found[AliasSet].append(link.group.aliases)


def _take_sets(found: Found, seen: Iterable[FacetsSeen], shared: SharedFacets) -> list[FacetsSeen]:
    """Note the sets that entities had; gives what is stored facet by facet."""
    left: list[FacetsSeen] = []
    used: dict[tuple[int, int], int] = {}
    sets: dict[int, FacetSet] = {}
    for one in seen:
        own, others = shared.split(one.entity_id, one.kind, one.facets)
        if own is not None:
            place = one.entity_id, own.id
            used[place] = max(one.at, used.get(place, one.at))
            sets[own.id] = own
        if others:
            left.append(one if own is None else one._replace(facets=others))
    found[FacetSet] += sets.values()
    found[FacetSetUsed] += [FacetSetUsed(*place, at) for place, at in used.items()]
    return left


def rows_of_set(facets: FacetSet) -> tuple[list[SetFacet], list[FacetBody]]:
    """The rows of a set, and the bodies that are stored once."""
    rows, bodies = [], []
    for key, hash_, body, deleted, _ in facets.facets:
        own = body if len(body) <= SHARED_SIZE or key in KEPT_WITH_THE_ROW else None
        if own is None:
            bodies.append(FacetBody(hash_, body))
        rows.append(SetFacet(facets.id, key, facets.kind, hash_, own, deleted))
    return rows, bodies


def _facets(seen: Iterable[FacetsSeen]) -> tuple[list[FacetSeen], list[FacetBody]]:
    """The newest facet of each key of each entity, and the bodies that are stored once.

    Most lose: no row is made of them.
    """
    entities: dict[tuple[int, int], dict[str, tuple[int, FacetRow]]] = defaultdict(dict)
    for entity_id, kind, at, facets in sorted(seen, key=itemgetter(2), reverse=True):
        _take(entities[entity_id, kind], at, facets)
    rows, bodies = [], {}
    for (entity_id, kind), winners in entities.items():
        for at, (key, hash_, body, deleted, problem) in winners.values():
            own = body if len(body) <= SHARED_SIZE or key in KEPT_WITH_THE_ROW else None
            if own is None:
                bodies[hash_] = FacetBody(hash_, body)
            stored_as = kind + QUARANTINED if problem else kind
            rows.append(FacetSeen(entity_id, key, stored_as, at, hash_, own, deleted, problem))
    return rows, list(bodies.values())


def _take(winners: dict[str, tuple[int, FacetRow]], at: int, facets: Sequence[FacetRow]) -> None:
    """Take facets that are no newer than those before.

    They win where there is none, or by their hash.
    """
    for facet in facets:
        key = (
            f"\0{facet.key}" if facet.problem else facet.key
        )  # what is not used is nobody's rival but its like's
        winner = winners.get(key)
        if winner is None or (at == winner[0] and facet.hash > winner[1].hash):
            winners[key] = at, facet
