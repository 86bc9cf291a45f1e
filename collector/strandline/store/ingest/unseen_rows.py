"""Rows without those that are known to be stored already and can never change."""

from typing import TypeVar

from strandline.core.changes.compact import KEPT_WITH_THE_ROW, Rows, fold_rows, rows_of_set
from strandline.core.changes.facet_sets import FacetSet
from strandline.core.changes.rows import (
    AliasSet,
    BarrierSeen,
    DatasetAlias,
    DatasetSeen,
    EdgeSeen,
    EdgeSet,
    FacetBody,
    FacetSeen,
    JobSeen,
    NamespaceSeen,
    SetFacet,
)
from strandline.core.identity import SPELLING
from strandline.core.openlineage.names import plain_spelling
from strandline.store.ingest.writer_state import Caches
from strandline.store.sql.compression import Compression

F = TypeVar("F", FacetSeen, SetFacet)


def only_news(rows: Rows, caches: Caches) -> Rows:
    """Return the rows without what this writer stored before, as they are stored.

    Sets become rows of their own.
    """
    compression = caches.compression
    mentions: list[DatasetSeen] = []

    edge_sets = [edges for edges in rows.take(EdgeSet) if caches.is_new("edges", edges.hash)]
    edges: list[EdgeSeen] = []
    for edge_set in edge_sets:
        mentions += edge_set.mentions
        edges += [
            edge._replace(columns=compression.shrink(edge.columns)) for edge in edge_set.edges
        ]
    rows.put(EdgeSeen, sorted(edges))

    aliases: set[DatasetAlias] = set()
    for alias_set in rows.take(AliasSet):
        if caches.is_new("aliases", (alias_set.dataset_id, alias_set.hash)):
            mentions += alias_set.mentions
            aliases.update(alias_set.aliases)
    rows.put(DatasetAlias, fold_rows(DatasetAlias, list(aliases)))

    rows.sets = {facet_set.id: facet_set for facet_set in rows.take(FacetSet)}
    set_facets: list[SetFacet] = []
    bodies = {body.hash: body for body in rows.of(FacetBody)}
    for facet_set in rows.sets.values():
        if caches.is_new("facets", facet_set.id):
            of_set, own_bodies = rows_of_set(facet_set)
            set_facets += of_set
            bodies |= {body.hash: body for body in own_bodies}
    rows.put(SetFacet, [_packed(facet, compression) for facet in sorted(set_facets)])
    rows.put(FacetSeen, [_packed(facet, compression) for facet in rows.of(FacetSeen)])
    new_bodies = [bodies[hash_] for hash_ in sorted(bodies) if caches.is_new("body", hash_)]
    rows.put(
        FacetBody, [FacetBody(body.hash, compression.shrink(body.body)) for body in new_bodies]
    )

    rows.put(DatasetSeen, _new_datasets([*rows.of(DatasetSeen), *mentions], caches))
    _add_plain_spellings(rows, caches)
    rows.put(JobSeen, [job for job in rows.of(JobSeen) if _is_new_job(job, caches)])
    rows.put(NamespaceSeen, _new_namespaces(rows, caches))
    pack = compression.small.pack
    barriers = [barrier._replace(facet=pack(barrier.facet)) for barrier in rows.of(BarrierSeen)]
    rows.put(BarrierSeen, barriers)
    return rows


def _packed(facet: F, compression: Compression) -> F:
    """Return the facet with its body packed, unless it is read with the row."""
    if facet.body is None or facet.key in KEPT_WITH_THE_ROW:
        return facet
    return facet._replace(body=compression.shrink_small(facet.hash, facet.body))


def _is_new_job(job: JobSeen, caches: Caches) -> bool:
    """Return whether an event is about the job, or nobody here has stored that it is mentioned."""
    return job.first_at is not None or caches.is_new("job", job.id)


def _new_datasets(changes: list[DatasetSeen], caches: Caches) -> list[DatasetSeen]:
    """Return one row a dataset; mentions only of those that nobody here has stored."""
    by_id: dict[int, DatasetSeen] = {}
    for dataset in changes:
        by_id.setdefault(dataset.id, dataset)
    new = []
    for id_ in sorted(by_id):
        is_new = caches.is_new("dataset", id_)
        if is_new or by_id[id_].first_at is not None:
            new.append(by_id[id_])
    return new


def _add_plain_spellings(rows: Rows, caches: Caches) -> None:
    """Join each new name of a place with the plain spelling of it, as an alias."""
    aliases = set(rows.of(DatasetAlias))
    plain: dict[int, DatasetSeen] = {}
    for named in rows.of(DatasetSeen):
        spelling = plain_spelling(named.namespace, named.name)
        if spelling == (named.namespace, named.name) or not caches.is_new("spelling", named.id):
            continue
        other = caches.memory.dataset(*spelling)
        if other.id != named.id:
            plain[other.id] = other
            aliases.add(DatasetAlias(named.id, other.id, SPELLING))
    if not plain:
        return
    rows.put(DatasetAlias, sorted(aliases))
    plain |= {named.id: named for named in rows.of(DatasetSeen)}
    rows.put(DatasetSeen, [plain[id_] for id_ in sorted(plain)])


def _new_namespaces(rows: Rows, caches: Caches) -> list[NamespaceSeen]:
    """Return the namespaces of the jobs and datasets, where nobody here has stored them."""
    names = {job.namespace_id: job.namespace for job in rows.of(JobSeen)}
    names |= {dataset.namespace_id: dataset.namespace for dataset in rows.of(DatasetSeen)}
    return [
        NamespaceSeen(id_, names[id_]) for id_ in sorted(names) if caches.is_new("namespace", id_)
    ]
