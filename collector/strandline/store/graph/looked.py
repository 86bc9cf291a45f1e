"""What a walk over entries looks at: datasets and the jobs that touch them.

And how much it does not show.

The same as store/lineage/hidden.py counts, without the database.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.store.graph.entries import DatasetEntry, JobEntry, NodeLabel
from strandline.store.lineage.hidden import Key
from strandline.store.lineage.lookup import Node


class NotKeptError(Exception):
    """The question, or something that it leads to, is answered by the database alone."""


class Entries(Protocol):
    """Where entries come from: out of memory, or else read now."""

    def datasets(self, ids: Collection[int]) -> Mapping[int, DatasetEntry]:
        """The entries of these datasets, at least."""

    def jobs(self, ids: Collection[int]) -> Mapping[int, JobEntry]:
        """The entries of these jobs and of those that runs of these names belong to, at least."""


def _by_direction() -> dict[int, set[int]]:
    return {SOURCE: set(), SINK: set()}


@dataclass(slots=True)
class LookedAt:
    """The entries that a walk led to. starts: jobs that it starts from. nodes.

    Whose steps were asked for, by the direction in
    which jobs touch them; passed: the jobs that steps led by, by the direction in which they led
    on; met: other jobs that were seen.
    """

    entries: Entries
    starts: frozenset[int]
    datasets: dict[int, DatasetEntry] = field(default_factory=dict)
    jobs: dict[int, JobEntry] = field(default_factory=dict)
    nodes: dict[int, set[int]] = field(default_factory=_by_direction)
    passed: dict[int, set[int]] = field(default_factory=_by_direction)
    met: set[int] = field(default_factory=set)

    @classmethod
    def from_(cls, entries: Entries, nodes: Collection[Node]) -> "LookedAt":
        """At the beginning of a walk from these nodes.

        NotKeptError where one of them stands for others.
        """
        return cls(
            entries, frozenset(_starting_job(entries, node) for node in nodes if node.kind == "job")
        )

    def jobs_at(
        self, starts: Collection[int], asked: Collection[int], direction: int
    ) -> Mapping[int, JobEntry]:
        """These jobs, and those that touch these datasets, each under the name that it was reported by or belongs to."""
        datasets = self.entries.datasets(asked)
        self.datasets.update(datasets)
        names = dict.fromkeys(starts)
        for node in asked:
            names.update(datasets[node].touching[direction])
        every = self.entries.jobs(names)
        if len(every) > len(names):  # more than was asked for
            every = {job: every[job] for name in names for job in (name, *every[name].also)}
        if any(job.is_open for job in every.values()):
            raise NotKeptError
        self.jobs.update(every)
        return every

    def jobs_around(self, dataset: int, direction: int) -> Iterable[int]:
        """Of these jobs those that touch one dataset that was asked for.

        Others may be news since: they were not looked at.
        """
        names = [
            name for name in tuple(self.datasets[dataset].touching[direction]) if name in self.jobs
        ]
        return dict.fromkeys(job for name in names for job in (name, *self.jobs[name].also))

    def take_met(self) -> None:
        """Take the entries of jobs that were passed or met by a walk over ids."""
        ids = self.passed[SOURCE] | self.passed[SINK] | self.met
        self.jobs.update((id_, job) for id_, job in self.entries.jobs(ids).items() if id_ in ids)

    def labels(self, ids: Collection[int]) -> dict[int, NodeLabel]:
        """How these nodes are shown; what has no row any more is not."""
        jobs = self.jobs
        missing = [id_ for id_ in ids if id_ not in jobs and id_ not in self.datasets]
        if missing:
            self.datasets.update(self.entries.datasets(missing))
        kept: Mapping[int, DatasetEntry | JobEntry] = {**self.datasets, **jobs}
        return {id_: label for id_ in ids if (label := kept[id_].label) is not None}

    def hidden(self) -> int:
        """How many relations were reported of what was looked at, and are none of those that are known."""
        reported = self._reported_at_datasets() | self._reported_of_jobs()
        return sum(1 for key in reported if not self._is_found(*key) and not self._is_touched(*key))

    def _is_found(self, job: int, direction: int, dataset: int) -> bool:
        """Whether a step that the walk looked at shows it."""
        entry, (down, up) = self.jobs.get(job), (self.nodes[SOURCE], self.nodes[SINK])
        return entry is not None and any(
            dataset == (step.source, step.target)[direction]
            and (job in self.starts or step.source in down or step.target in up)
            for step in entry.steps
        )

    def _is_touched(self, job: int, direction: int, dataset: int) -> bool:
        return job in self.jobs and self.jobs[job].touches(direction, dataset)

    def _reported_at_datasets(self) -> set[Key]:
        having = [job.reported for job in self.jobs.values() if job.reported]
        return {key for reported in having for key in reported if key[2] in self.nodes[key[1]]}

    def _reported_of_jobs(self) -> set[Key]:
        passed = self.passed[SOURCE] | self.passed[SINK]
        having = [job for id_ in passed if (job := self.jobs[id_]).reported]
        others = {
            name for id_ in passed if (names := self.jobs[id_].names) for name in names
        } - passed
        if others:
            having += [job for job in self.entries.jobs(others).values() if job.reported]
        return {key for job in having for key in job.reported if key[0] in self.passed[key[1]]}


def _starting_job(entries: Entries, node: Node) -> int:
    """The job, where it stands for itself alone and has relations."""
    job = entries.jobs([node.id])[node.id]
    if job.also or not job.has_relations or job.has_nested:
        raise NotKeptError
    return job.id
