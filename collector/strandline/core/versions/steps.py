"""The steps of a job that states no barriers.

Its micro-batches and batch runs, with where each stood in its inputs.

A micro-batch may name only the inputs that had something new; where it stands in the others follows
from the one before it. Steps are kept by what identifies them, so that a repeated or a late event
changes nothing that another order would not.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import BarrierCommitted, Table

Key: TypeAlias = tuple[
    str, int
]  # the streaming query and the micro-batch; of a batch run its id, and RUN
RUN = -1


@dataclass(slots=True, eq=False)
class Step:
    """One micro-batch or batch run.

    `itself`: the snapshots that it read of tables that it writes, empty where none is certain.
    `stands`: per input the snapshot up to which it was consumed, where that is certain.
    """

    key: Key
    fact: BarrierCommitted
    own: dict[Table, str]
    unsure: frozenset[Table]
    began: dict[Table, str]
    lookups: frozenset[Table]
    outputs: tuple[Completion, ...]
    tables: tuple[Table, ...]
    itself: dict[Table, str] = field(default_factory=dict)
    stands: dict[Table, str] = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        """Whether it is a batch run, which depends on no step before it."""
        return self.key[1] == RUN

    @property
    def committed(self) -> float:
        """When the last of what it wrote was committed."""
        return max((one.committed for one in self.outputs), default=self.fact.committed)

    @property
    def when(self) -> tuple[float, str]:
        """What orders the runs of several jobs."""
        return self.fact.committed, self.fact.run


@dataclass(slots=True, eq=False)
class Steps:
    """The newest steps of one job.

    `at`: the steps that stand at a snapshot of an input; `queries`: when each began.
    """

    of: dict[Key, Step] = field(default_factory=dict)
    at: dict[tuple[Table, str], set[Key]] = field(default_factory=dict)
    queries: dict[str, float] = field(default_factory=dict)

    def add(self, step: Step, most: int) -> list[Step]:
        """Take a step in; the steps that now stand somewhere they did not.

        At most `most` are kept.
        """
        before = self.of.get(step.key)
        if before is not None and before.when >= step.when:
            return []
        if before is not None:
            self._leave(before)
        self.of[step.key] = step
        query, committed = step.key[0], step.fact.committed
        self.queries[query] = min(committed, self.queries.get(query, committed))
        self._trim(most)
        return self._settled(step)

    def before(self, step: Step) -> Step | None:
        """The micro-batch before this one, if it is known."""
        query, number = step.key
        return None if step.is_run else self.of.get((query, number - 1))

    def restarted(self, step: Step) -> bool:
        """Whether another query of the job wrote before this one began.

        A new checkpoint folder reads all again.
        """
        query = step.key[0]
        began = self.queries[query]
        return not step.is_run and any(
            at < began for other, at in self.queries.items() if other != query
        )

    def cut_back(self, committed: float) -> None:
        """Forget the steps committed after a moment: their table was rolled back."""
        for step in [step for step in self.of.values() if step.committed > committed]:
            self._forget(step)
        kept = {query for query, _ in self.of}
        self.queries = {query: at for query, at in self.queries.items() if query in kept}

    def _settled(self, step: Step) -> list[Step]:
        """Say anew where a step stands, and those after it that depend on it."""
        found: list[Step] = []
        following: Step | None = step
        while following is not None:
            stands = self._where(following)
            if following is not step and stands == following.stands:
                break
            self._leave(following)
            following.stands = stands
            before = self.before(following)
            following.lookups |= before.lookups if before is not None else frozenset()
            for place in stands.items():
                self.at.setdefault(place, set()).add(following.key)
            found.append(following)
            following = (
                None if step.is_run else self.of.get((following.key[0], following.key[1] + 1))
            )
        if following is not None:
            found.append(
                following
            )  # what it completes depends on whether the step before it stands there too
        return found

    def _where(self, step: Step) -> dict[Table, str]:
        before = self.before(step)
        carried = before.stands if before is not None else {}
        return {
            t: at
            for t, at in {**carried, **step.own}.items()
            if t in step.own or t not in step.unsure
        }

    def _leave(self, step: Step) -> None:
        for place in step.stands.items():
            keys = self.at.get(place, set())
            keys.discard(step.key)
            if not keys:
                self.at.pop(place, None)

    def _forget(self, step: Step) -> None:
        self._leave(step)
        del self.of[step.key]

    def _trim(self, most: int) -> None:
        while len(self.of) > most:
            self._forget(next(iter(self.of.values())))
