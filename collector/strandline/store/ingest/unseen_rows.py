"""Leaving out rows that are known to be stored already and can never change."""

from itertools import chain

from strandline.core.changes.bundles import AliasSet, EdgeSet
from strandline.core.changes.compact import Rows
from strandline.core.changes.facet_sets import FacetSet
from strandline.core.changes.rows import (
    BarrierSeen,
    DatasetAlias,
    DatasetSeen,
    EdgeSeen,
    FacetBody,
    FacetSeen,
    JobSeen,
    NamespaceSeen,
    SetFacet,
)
from strandline.core.changes.unpack import KEPT_WITH_THE_ROW, rows_of_set
from strandline.core.identity import SPELLING
from strandline.core.openlineage.names import plain_spelling
from strandline.store.ingest.writer_state import Caches
from strandline.store.sql.compression import Compression


def only_news(rows: Rows, caches: Caches) -> Rows:
    """The rows without what this writer stored before, as they are stored.

    Sets become rows of their own.
    """
    shrink = caches.compression.shrink
    mentions = [*_unfold_edges(rows, caches), *_unfold_aliases(rows, caches)]
    _unfold_facets(rows, caches)
    bodies = [one for one in rows.of(FacetBody) if caches.is_new("body", one.hash)]
    rows.put(DatasetSeen, _datasets([*rows.of(DatasetSeen), *mentions], caches))
    _add_plain_spellings(rows, caches)
    rows.put(
        JobSeen,
        [
            one
            for one in rows.of(JobSeen)
            if one.first_at is not None or caches.is_new("job", one.id)
        ],
    )
    rows.put(NamespaceSeen, _namespaces(rows, caches))
    rows.put(FacetBody, [FacetBody(one.hash, shrink(one.body)) for one in bodies])
    _pack_small(rows, caches.compression)
    return rows


def _unfold_edges(rows: Rows, caches: Caches) -> list[DatasetSeen]:
    """Put a row for each edge of the new sets; gives the datasets that these mention."""
    sets = [one for one in rows.take(EdgeSet) if caches.is_new("edges", one.hash)]
    shrink = caches.compression.shrink
    edges = chain.from_iterable(one.edges for one in sets)
    rows.put(
        EdgeSeen,
        sorted(EdgeSeen(one.set_hash, one.source_id, shrink(one.columns)) for one in edges),
    )
    return [mention for one in sets for mention in one.mentions]


def _unfold_aliases(rows: Rows, caches: Caches) -> list[DatasetSeen]:
    """The same with sets of aliases."""
    sets = [
        one for one in rows.take(AliasSet) if caches.is_new("aliases", (one.dataset_id, one.hash))
    ]
    rows.put(DatasetAlias, sorted({alias for one in sets for alias in one.aliases}))
    return [mention for one in sets for mention in one.mentions]


def _unfold_facets(rows: Rows, caches: Caches) -> None:
    """Put a row for each facet of the new sets, and their long bodies."""
    rows.sets = {one.id: one for one in rows.take(FacetSet)}
    sets = [rows_of_set(one) for one in rows.sets.values() if caches.is_new("facets", one.id)]
    rows.put(SetFacet, sorted(chain.from_iterable(facets for facets, _ in sets)))
    bodies = {one.hash: one for one in chain(rows.of(FacetBody), *(bodies for _, bodies in sets))}
    rows.put(FacetBody, [bodies[hash_] for hash_ in sorted(bodies)])


def _pack_small(rows: Rows, compression: Compression) -> None:
    rows.put(FacetSeen, [_packed(one, compression) for one in rows.of(FacetSeen)])
    rows.put(
        SetFacet, [one._replace(body=_packed_body(one, compression)) for one in rows.of(SetFacet)]
    )
    pack = compression.small.pack
    rows.put(BarrierSeen, [one._replace(facet=pack(one.facet)) for one in rows.of(BarrierSeen)])


def _packed(one: FacetSeen, compression: Compression) -> FacetSeen:
    body = _packed_body(one, compression)
    return FacetSeen(
        one.entity_id, one.key, one.kind, one.at, one.hash, body, one.deleted, one.problem
    )


def _packed_body(one: FacetSeen | SetFacet, compression: Compression) -> bytes | None:
    """The body of a facet packed, but where whoever labels datasets reads it with the row."""
    if one.body is None or one.key in KEPT_WITH_THE_ROW:
        return one.body
    return compression.shrink_small(one.hash, one.body)


def _datasets(seen: list[DatasetSeen], caches: Caches) -> list[DatasetSeen]:
    """One row a dataset; mentions only of those that nobody here has stored."""
    by_id: dict[int, DatasetSeen] = {}
    for one in seen:
        if one.id not in by_id:
            by_id[one.id] = one
    return [
        one for key, one in sorted(by_id.items()) if caches.is_new("dataset", key) or one.first_at is not None
    ]  # fmt: skip


def _add_plain_spellings(rows: Rows, caches: Caches) -> None:
    """Join each new name of a place in a bucket with the plain spelling of it, as an alias."""
    aliases = set(rows.of(DatasetAlias))
    plain: list[DatasetSeen] = []
    for named in rows.of(DatasetSeen):
        spelling = plain_spelling(named.namespace, named.name)
        if spelling != (named.namespace, named.name) and caches.is_new("spelling", named.id):
            other = caches.memo.dataset(*spelling)
            if other.id != named.id:
                plain.append(other)
                aliases.add(DatasetAlias(named.id, other.id, SPELLING))
    rows.put(DatasetAlias, sorted(aliases))
    known = {named.id for named in rows.of(DatasetSeen)}
    added = {one.id: one for one in plain if one.id not in known}
    rows.put(DatasetSeen, sorted([*rows.of(DatasetSeen), *added.values()]))


def _namespaces(rows: Rows, caches: Caches) -> list[NamespaceSeen]:
    """The namespaces of the jobs and datasets, where nobody here has stored them."""
    names = {one.namespace_id: one.namespace for one in rows.of(JobSeen)}
    names |= {one.namespace_id: one.namespace for one in rows.of(DatasetSeen)}
    return [
        NamespaceSeen(id_, names[id_]) for id_ in sorted(names) if caches.is_new("namespace", id_)
    ]
