"""Outlines: what an event says beside its run and its time, read once for all events that say it in the same bytes.

A pure function of the job, its facets, and the datasets with their facets: neither run, time nor the facets of an input
or output as such are in it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strandline.core.changes.bundles import EdgeSet, FacetRow, Group, Link, Outline
from strandline.core.changes.declared_lineage import links_beside
from strandline.core.changes.edges import edges_of, of_job
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.parse_cache import Memo
from strandline.core.changes.senders import SENDER, Owns, owned, owner_of
from strandline.core.changes.snapshot_claims import claim_of
from strandline.core.changes.usable_facets import NO_FACETS, UsableFacets
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.events import Dataset, Event, Job
from strandline.core.openlineage.names import bare, is_delta_log

Wording = tuple[
    tuple[str, str, bytes], ...
]  # datasets as an event has them: namespace, name, facets
_NO_TYPE, _NO_CHANGE = f.JobType(), f.Lifecycle("")


class Drawn(NamedTuple):
    """An outline, and what reading an event of it needs beside.

    Its inputs and outputs that are lineage (`named`).

    redacted: something secret was taken out.
    """

    outline: Outline
    kind: f.JobType
    streaming: bool
    spark: bool
    named: tuple[Link, ...]
    redacted: bool


def outline_of(memo: Memo, event: Event, job: Job) -> Drawn:
    """The outline of a RunEvent or JobEvent."""
    content = (
        job.namespace,
        job.name,
        bytes(job.facets),
        _wording(event.inputs),
        _wording(event.outputs),
    )
    place = (job.namespace, job.name, event.event_type)
    return memo.recurring(place, content, lambda: _draw(memo, *content), lambda: _size(*content))


def _wording(datasets: Iterable[Dataset] | None) -> Wording:
    return tuple(
        [(dataset.namespace, dataset.name, bytes(dataset.facets)) for dataset in datasets or ()]
    )


def _size(namespace: str, name: str, facets: bytes, inputs: Wording, outputs: Wording) -> int:
    own = len(namespace) + len(name) + len(facets)
    return (
        2000
        + own
        + sum(1000 + len(one[0]) + len(one[1]) + len(one[2]) for one in (*inputs, *outputs))
    )


def _draw(
    memo: Memo, namespace: str, name: str, facets: bytes, inputs: Wording, outputs: Wording
) -> Drawn:
    job, group = memo.job(namespace, name), memo.group(f.JOB, facets)
    owns = owner_of(group.facets.get(SENDER))
    kind: f.JobType = group.facets.value("jobType") or _NO_TYPE
    streaming, spark = (
        kind.processing_type.upper() == "STREAMING",
        kind.integration.upper() == "SPARK",
    )
    sources, hidden = _named(memo, SOURCE, inputs, owns, streamed=streaming and spark)
    sinks, hidden_too = _named(memo, SINK, outputs, owns, streamed=False)
    before, hidden_before = _named(memo, SOURCE, _renamed(sinks), owns, streamed=False)
    read = [*sources, *_beside(before, (*sources, *sinks))]
    job_edges = of_job(memo, job.id, group, read, sinks)
    edges = list(edges_of(memo, read, sinks, job_edges, kind.is_complete_snapshot))
    datasets, links = len(inputs) + len(outputs), [*read, *sinks]
    links += links_beside(job_edges.declared, links, owns)
    part = (
        spark and (kind.job_type or "").upper() == "RDD_JOB" and not datasets
    )  # of a statement that tells of itself
    noise, data = int(part or datasets > 0 == len(links)), int(len(links) > 0)
    outline = Outline(job, noise, data, _of_job(group), links, edges, _related(links, edges))
    redacted = any(
        (
            hidden,
            hidden_too,
            hidden_before,
            group.redacted,
            (job.namespace, job.name) != (namespace, name),
        )
    )
    return Drawn(outline, kind, streaming, spark, (*sources, *sinks), redacted)


def _of_job(group: Group) -> Sequence[FacetRow]:
    """The job's facets, but for the one that says who sent the event.

    That is no property of the job.
    """
    return (
        tuple([row for row in group.rows if row.key != SENDER])
        if SENDER in group.facets
        else group.rows
    )


def _named(
    memo: Memo, direction: int, datasets: Wording, owns: Owns, *, streamed: bool
) -> tuple[list[Link], bool]:
    """The datasets that are lineage, and whether something secret was taken out of any."""
    found, redacted = [], False
    for place, (namespace, name, facets) in enumerate(datasets):
        dataset, group = memo.dataset_with(
            namespace, name, facets, read=direction == SOURCE, streamed=streamed
        )
        redacted = redacted or group.redacted
        if is_delta_log(name):
            continue
        called = bare(namespace), bare(name)  # as facets have it, whose secrets are gone
        creates = int(direction == SINK and _change_of(group.facets) == "CREATE")
        claim = claim_of(group.facets, NO_FACETS)
        found.append(owned(Link(direction, dataset, called, group, creates, place, claim), owns))
    return found, redacted


def _renamed(sinks: Iterable[Link]) -> Wording:
    """What sinks that were renamed were called before.

    The job reads that, since it is there where they are now.
    """
    before = [
        _lifecycle(one.group.facets).previous_identifier
        for one in sinks
        if _change_of(one.group.facets) == "RENAME"
    ]
    return tuple(
        [
            (one.namespace, one.name, b"")
            for one in before
            if one is not None and one.namespace and one.name
        ]
    )


def _beside(named: Iterable[Link], others: Iterable[Link]) -> list[Link]:
    """Those that are none of the others."""
    ids = {one.dataset.id for one in others}
    return [one for one in named if one.dataset.id not in ids]


def _lifecycle(facets: UsableFacets) -> f.Lifecycle:
    change: f.Lifecycle = facets.value("lifecycleStateChange") or _NO_CHANGE
    return change


def _change_of(facets: UsableFacets) -> str:
    return _lifecycle(facets).lifecycle_state_change.upper()


def _related(
    links: Iterable[Link], edges: Sequence[tuple[int, int, EdgeSet]]
) -> frozenset[tuple[int, int]]:
    """Which datasets the job is named with: linked, or as a source of an edge."""
    linked = {(link.direction, link.dataset.id) for link in links}
    return frozenset(
        linked | {(SOURCE, one.id) for _, _, edge_set in edges for one in edge_set.mentions}
    )
