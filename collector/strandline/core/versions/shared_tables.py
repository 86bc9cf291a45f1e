"""Tables that batch jobs write, each with its own INSERT.

What is there completes a barrier once all of it does.

A table completes b when the newest contribution of each of its known writers was made at b. The
contributions are followed back from snapshot to parent; where one in between is not known, nothing
before it is taken to be the newest.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.steps import Step

Writer: TypeAlias = tuple[Job, frozenset[Table]]
RECENT_RUNS = (
    10  # an INSERT that none of so many latest runs of its job did is none of its writers any more
)


@dataclass(frozen=True, slots=True)
class Contribution:
    """A run that wrote the table.

    `barriers` at which all that it read stood, `reads` what that was.
    """

    job: Job
    inputs: frozenset[Table]
    barriers: frozenset[int]
    reads: dict[Table, str] = field(hash=False)
    step: Step
    output: Completion

    @property
    def writer(self) -> Writer:
        """One job may have several INSERTs, which differ in what they read."""
        return self.job, self.inputs


def shared_completions(
    runs: Sequence[Contribution], jobs: frozenset[Job]
) -> Iterator[tuple[frozenset[int], Contribution, int]]:
    """Of each run after which the table stood at barriers.

    These, the run, and how many INSERTs were known by then.

    `runs` in the order of their commits.
    """
    counted = [run for run in runs if run.inputs]
    by_snapshot = {run.output.snapshot: run for run in counted}
    seen: list[Contribution] = []
    for run in counted:
        seen.append(run)
        newest = _newest(run, by_snapshot, _writers(seen))
        if run.barriers and newest is not None and jobs <= {job for job, _ in newest}:
            barriers = _common_barriers(newest.values())
            if barriers:
                yield barriers, run, len(newest)


def _writers(seen: Sequence[Contribution]) -> set[Writer]:
    """The INSERTs that are known by now."""
    found: set[Writer] = set()
    runs_of: dict[Job, int] = {}
    for run in reversed(seen):
        number = runs_of[run.job] = runs_of.get(run.job, 0) + 1
        if number <= RECENT_RUNS:
            found.add(run.writer)
    return found


def _newest(
    last: Contribution, by_snapshot: dict[str, Contribution], writers: set[Writer]
) -> dict[Writer, Contribution] | None:
    """The newest contribution of each writer, from `last` back; None where it is not known."""
    found: dict[Writer, Contribution] = {}
    at: Contribution | None = last
    steps = 0
    while at is not None and found.keys() < writers and steps <= len(by_snapshot):
        found.setdefault(at.writer, at)
        at, steps = by_snapshot.get(at.output.parent or ""), steps + 1
    return found if found.keys() >= writers else None


def _common_barriers(runs: Iterable[Contribution]) -> frozenset[int]:
    return frozenset.intersection(*(one.barriers for one in runs))
