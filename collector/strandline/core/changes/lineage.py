"""The lineage of a job: what an event states beside its run and its time.

It is read once for all events that state it in the same bytes: a pure function of the job, its
facets, and the datasets with their facets. Neither run, time nor the facets of an input or output
as such are in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from strandline.core.changes.datasets import (
    NOWHERE,
    SENDER,
    DatasetUse,
    NamedBefore,
    NamedDataset,
    Owns,
    owned,
    owner_of,
    use_of,
)
from strandline.core.changes.edges import Declared, StatedEdges, declared_by, edges_of
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.memory import Memory
from strandline.core.changes.rows import AliasSet, Change, EdgeSet, FacetsSeen, JobSeen, ParentsSeen
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.events import Dataset, Event, Job
from strandline.core.openlineage.facets import Facet
from strandline.core.openlineage.names import is_delta_log, own_job_name

_NO_TYPE = f.JobType()


@dataclass(frozen=True, slots=True, eq=False)
class JobLineage:
    """A job with the datasets that it reads and writes, and the edges between them.

    Equal only to itself: it is made once and remembered.
    job: its row without times.
    noise: 1 where the event's datasets are nobody's lineage.
    data: 1 where it has some.
    facets: to store of the job.
    reported: the uses that are inputs and outputs of the event.
    related: the datasets that the job is named with, as a source (0) or a sink (1).
    renamed: the datasets that its event says were renamed, each with its name before.
    """

    job: JobSeen
    noise: int
    data: int
    streaming: bool
    spark: bool
    facets: Sequence[Facet]
    uses: Sequence[DatasetUse]
    reported: Sequence[DatasetUse]
    edges: Sequence[StatedEdges]
    related: frozenset[tuple[int, int]]
    renamed: Sequence[NamedBefore]
    redacted: bool


class LineageSeen(NamedTuple):
    """A run, or a design (ran = 0), had events of this lineage."""

    lineage: JobLineage
    run_id: int
    first_at: int
    newest_at: int
    ran: int = 1


EventChange: TypeAlias = Change | AliasSet | EdgeSet | FacetsSeen | ParentsSeen | LineageSeen


class _Content(NamedTuple):
    """Everything that the lineage of an event is made of."""

    namespace: str
    name: str
    facets: bytes
    inputs: tuple[NamedDataset, ...]
    outputs: tuple[NamedDataset, ...]

    @property
    def size(self) -> int:
        """About how many bytes of memory the lineage takes."""
        datasets = (*self.inputs, *self.outputs)
        own = len(self.namespace) + len(self.name) + len(self.facets)
        return 2000 + own + sum(1000 + sum(map(len, named)) for named in datasets)


def lineage_of(memory: Memory, event: Event, job: Job) -> JobLineage:
    """Return the lineage that a RunEvent or JobEvent states."""
    content = _Content(
        job.namespace,
        job.name,
        bytes(job.facets),
        _named_datasets(event.inputs),
        _named_datasets(event.outputs),
    )
    place = (job.namespace, job.name, event.event_type)
    return memory.last(place, content, lambda: _lineage(memory, content), lambda _: content.size)


def _named_datasets(datasets: Iterable[Dataset] | None) -> tuple[NamedDataset, ...]:
    return tuple([(named.namespace, named.name, bytes(named.facets)) for named in datasets or ()])


def _lineage(memory: Memory, content: _Content) -> JobLineage:
    job, facets = memory.job(content.namespace, content.name), memory.facets(f.JOB, content.facets)
    kind: f.JobType = facets.value("jobType") or _NO_TYPE
    streaming = kind.processing_type.upper() == "STREAMING"
    spark = kind.integration.upper() == "SPARK"
    owns = owner_of(facets.get(SENDER))

    inputs = _uses(memory, SOURCE, content.inputs, streamed=streaming and spark)
    outputs = _uses(memory, SINK, content.outputs, streamed=False)
    sources = [owned(use, owns) for use in inputs if not is_delta_log(use.sent_as[1])]
    sinks = [owned(use, owns) for use in outputs if not is_delta_log(use.sent_as[1])]
    renamed = [(use, before) for use in sinks for before in _before(memory, use)]
    former = [before for _, before in renamed]
    hidden = any(use.redacted for use in (*inputs, *outputs, *former))
    named = {use.dataset.id for use in (*sources, *sinks)}
    sources += [owned(use, owns) for use in former if use.dataset.id not in named]

    declared = declared_by(memory, job.id, facets.value("lineage"), sources, sinks)
    stands_alone = kind.is_complete_snapshot
    edges = list(edges_of(memory, sources, sinks, declared, facets, stands_alone=stands_alone))
    uses = [*sources, *sinks]
    uses += _declared_beside(memory, declared, uses, owns)

    has_datasets = bool(content.inputs or content.outputs)
    # An RDD's job without datasets is a part of a statement that reports itself.
    is_part = spark and (kind.job_type or "").upper() == "RDD_JOB" and not has_datasets
    is_noise = is_part or (has_datasets and not uses)
    sent_name = content.namespace, content.name
    has_other_name = own_job_name(*sent_name) != sent_name
    return JobLineage(
        job,
        int(is_noise),
        int(bool(uses)),
        streaming,
        spark,
        # Which key sent the event is no property of the job.
        tuple([facet for facet in facets.stored if facet.key != SENDER]),
        uses,
        [use for use in uses if use.place != NOWHERE],
        edges,
        _related(uses, edges),
        [
            NamedBefore(memory.now.dataset(*use.sent_as), memory.now.dataset(*before.sent_as))
            for use, before in renamed
            if owns(use.dataset.namespace) and owns(before.dataset.namespace)
        ],
        hidden or facets.redacted or has_other_name,
    )


def _uses(
    memory: Memory, direction: int, datasets: Iterable[NamedDataset], *, streamed: bool
) -> list[DatasetUse]:
    return [
        use_of(memory, direction, named, place, streamed=streamed)
        for place, named in enumerate(datasets)
    ]


def _before(memory: Memory, output: DatasetUse) -> list[DatasetUse]:
    """Return the previous name of a renamed output.

    The job reads that, since it is there where it is now.
    """
    before = output.change.previous_name
    if before is None or is_delta_log(before[1]):
        return []
    return [use_of(memory, SOURCE, (*before, b""), NOWHERE, streamed=False)]


def _declared_beside(
    memory: Memory, declared: Declared, uses: Iterable[DatasetUse], owns: Owns
) -> list[DatasetUse]:
    """Return the declared datasets that are not among these uses, under any name."""
    used = set()
    for use in uses:
        used.add((use.direction, use.dataset.id))
        for other in use.aliases.mentions if use.aliases is not None else ():
            used.add((use.direction, memory.dataset(other.namespace, other.name).id))
    beside = []
    for direction, datasets in ((SOURCE, declared.sources), (SINK, declared.sinks)):
        for dataset in datasets.values():
            if (direction, dataset.id) not in used:
                name = dataset.namespace, dataset.name
                beside.append(owned(DatasetUse(direction, dataset, name), owns))
    return beside


def _related(
    uses: Iterable[DatasetUse], edges: Sequence[StatedEdges]
) -> frozenset[tuple[int, int]]:
    """Return the datasets that the job is named with: used, or as a source of an edge."""
    used = {(use.direction, use.dataset.id) for use in uses}
    sources = {(SOURCE, source.id) for _, _, edge_set in edges for source in edge_set.mentions}
    return frozenset(used | sources)
