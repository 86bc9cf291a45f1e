"""Where datasets lead, as ids alone: what a walk needs that shows nodes and no edges."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from strandline.core.changes.extraction import SINK
from strandline.store.graph.entries import FOREVER, JobEntry
from strandline.store.graph.looked import LookedAt

Ids = tuple[int, ...]


class Leads(NamedTuple):
    """Where one dataset leads one way.

    Jobs that lead on from it, and the datasets that they lead to.

    idle: jobs that touch it and lead nowhere from it. since, until: the moments between which this
    is so.
    """

    jobs: Ids
    datasets: Ids
    idle: Ids
    since: int
    until: int

    @property
    def size(self) -> int:
        """About how many bytes it takes, with its place in a dict."""
        return 450 + 8 * (len(self.jobs) + len(self.datasets) + len(self.idle))


def leads_of(looked: LookedAt, near: int, ids: Collection[int]) -> dict[int, Leads]:
    """Where these datasets lead by way of the jobs that touch them in the direction `near`.

    Notes what is looked at.
    """
    jobs = looked.jobs_at((), ids, near)
    beyond = _beyond(jobs.values(), near, frozenset(ids))
    return {
        id_: _leads(beyond[id_], [jobs[job] for job in looked.jobs_around(id_, near)])
        for id_ in ids
    }


Beyond = dict[int, tuple[dict[int, None], dict[int, None]]]


def _beyond(jobs: Collection[JobEntry], near: int, ids: Collection[int]) -> Beyond:
    """By dataset the jobs that have steps from it, and where those lead."""
    found: Beyond = defaultdict(lambda: ({}, {}))
    for job in jobs:
        for step in job.steps:
            here, there = (step.target, step.source) if near == SINK else (step.source, step.target)
            if here is not None and here in ids:
                passed, reached = found[here]
                passed[job.id] = None
                if there is not None:
                    reached[there] = None
    return found


def _leads(
    beyond: tuple[Mapping[int, None], Mapping[int, None]], around: Collection[JobEntry]
) -> Leads:
    passed, reached = beyond
    idle = tuple(job.id for job in around if job.id not in passed)
    since, until = (
        max((job.since for job in around), default=0),
        min((job.until for job in around), default=FOREVER),
    )
    return Leads((*passed,), (*reached,), idle, since, until)


class LeadShelf:
    """Where datasets lead, by direction and dataset; an id stands in memory once.

    Whoever changes it holds a lock.
    """

    def __init__(self) -> None:
        self._kept: tuple[dict[int, Leads], dict[int, Leads]] = ({}, {})
        self._changing: tuple[set[int], set[int]] = (
            set(),
            set(),
        )  # datasets whose leads are not so at all times
        self._same: dict[int, int] = {}
        self._bytes = 0

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self._bytes + 130 * len(self._same)

    def among(self, near: int, ids: Collection[int], moment: int) -> dict[int, Leads]:
        """What is kept of these datasets and still so."""
        kept = self._kept[near]
        found = {id_: leads for id_ in ids if (leads := kept.get(id_)) is not None}
        for id_ in self._changing[near] and self._changing[near].intersection(found):
            if not found[id_].since < moment <= found[id_].until:
                del found[id_]
        return found

    def put(self, near: int, id_: int, leads: Leads) -> None:
        """Keep where a dataset leads."""
        self.discard(near, id_)
        jobs, datasets, idle = (self._shared(ids) for ids in leads[:3])
        self._kept[near][id_] = leads = Leads(jobs, datasets, idle, leads.since, leads.until)
        self._bytes += leads.size
        if (leads.since, leads.until) != (0, FOREVER):
            self._changing[near].add(id_)

    def _shared(self, ids: Ids) -> Ids:
        return tuple([self._same.setdefault(id_, id_) for id_ in ids])

    def discard(self, near: int, id_: int) -> None:
        """Forget where a dataset leads."""
        found = self._kept[near].pop(id_, None)
        if found is not None:
            self._changing[near].discard(id_)
            self._bytes -= found.size
            if not any(self._kept):
                self._same.clear()

    def discard_around(self, job: JobEntry) -> None:
        """Forget where any dataset leads that this job touches, or was ever reported to."""
        keys = {
            (end, id_) for step in job.steps for end, id_ in enumerate((step.source, step.target))
        }
        keys.update(job.unstepped, ((direction, id_) for _, direction, id_ in job.reported))
        for near, id_ in keys:
            if id_ is not None:
                self.discard(near, id_)

    def clear(self) -> None:
        """Forget everything."""
        for kept in (*self._kept, *self._changing, self._same):
            kept.clear()
        self._bytes = 0
