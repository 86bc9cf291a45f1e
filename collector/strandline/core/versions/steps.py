"""The steps of a job that states no barriers: its micro-batches and batch runs.

Where a snapshot stands in its inputs follows from the step that made it and from the snapshot that
this step was written on. So the same steps give the same states, in whichever order they come.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import BarrierCommitted, Job, Table, WrittenSnapshot

Key: TypeAlias = tuple[str, int]  # the query and the micro-batch; of a batch run its id and RUN
Made: TypeAlias = tuple[Table, str]  # a table and one of its snapshots
RUN = -1


@dataclass(frozen=True, slots=True)
class TableState:
    """The position of a table in each input, after a step.

    `unsure`: the inputs of which no id is certain. `broken`: why the content is not known to be
    made from the whole inputs; empty where it is. `snapshot`: the table's newest one then.
    `is_empty`: it was emptied there.
    """

    stands: Mapping[Table, str]
    unsure: frozenset[Table] = frozenset()
    broken: str = ""
    snapshot: str = ""
    is_empty: bool = False


@dataclass(slots=True, eq=False)
class Step:
    """One micro-batch or batch run.

    `own`: the end of each input that it read, where one is certain. `began`: the exclusive start of
    incremental reads. `skipped`: the inputs of which it passed over changes. `outputs`: the last
    snapshot that it made of each table. `itself`: the snapshots that it read of tables that it
    writes, empty where none is certain. `written_tables`: those of `fact.written`, by their
    canonical names.
    """

    key: Key
    job: Job
    fact: BarrierCommitted
    own: dict[Table, str]
    unsure: frozenset[Table]
    began: dict[Table, str]
    lookups: frozenset[Table]
    skipped: frozenset[Table]
    outputs: dict[Table, Completion]
    itself: dict[Table, str]
    written_tables: tuple[Table, ...] = ()
    states: dict[Table, TableState] = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        """True for a batch run."""
        return self.key[1] == RUN

    @property
    def committed(self) -> float:
        """The time at which its last output was committed."""
        return max(
            (output.committed for output in self.outputs.values()), default=self.fact.committed
        )

    @property
    def when(self) -> tuple[float, str]:
        """The order of two records of one step."""
        return self.fact.committed, self.fact.run

    def written_to(self, table: Table) -> list[WrittenSnapshot]:
        """Return the step's snapshots of a table, in commit order."""
        return [
            written
            for written, canonical in zip(self.fact.written, self.written_tables, strict=True)
            if canonical == table
        ]

    def written_on(self, table: Table) -> list[str]:
        """Return the snapshot that the step was written on, with those below it."""
        first = self.written_to(table)[0]
        return [] if first.parent is None else [first.parent, *first.under]

    def was_empty(self, table: Table) -> bool:
        """Return whether the table is known to have had no rows before the step."""
        return self.written_to(table)[0].was_empty

    def replaces(self, table: Table) -> bool:
        """Return whether nothing is left of the rows that were in the table before."""
        return all(write.replaces or write.completes for write in self.written_to(table))

    def is_complete(self, table: Table) -> bool:
        """Return whether the author asserts that the table shows the state of its inputs."""
        return self.written_to(table)[-1].completes

    def empties(self, table: Table) -> bool:
        """Return whether the table has no rows after the step."""
        return self.replaces(table) and self.written_to(table)[-1].rows == 0


@dataclass(slots=True, eq=False)
class Steps:
    """The newest steps of one job.

    `at`: the steps that stand at a snapshot of an input; `queries`: when each began; `lookups`:
    tables that the job only looks up.
    """

    of: dict[Key, Step] = field(default_factory=dict)
    at: dict[Made, set[Key]] = field(default_factory=dict)
    queries: dict[str, float] = field(default_factory=dict)
    lookups: frozenset[Table] = frozenset()

    def before(self, step: Step) -> Step | None:
        """The micro-batch before this one, if it is known."""
        query, number = step.key
        return None if step.is_run else self.of.get((query, number - 1))

    def after(self, step: Step) -> Step | None:
        """The micro-batch after this one, if it is known."""
        query, number = step.key
        return None if step.is_run else self.of.get((query, number + 1))

    def restarted(self, step: Step) -> bool:
        """Return whether another query of the job wrote before this one began.

        A new checkpoint folder reads all again.
        """
        query = step.key[0]
        began = self.queries[query]
        return any(at < began for other, at in self.queries.items() if other != query)

    def put(self, step: Step) -> None:
        """Add a step, or put it in the place of an earlier record of it."""
        self.of[step.key] = step
        query, committed = step.key[0], step.fact.committed
        self.queries[query] = min(committed, self.queries.get(query, committed))

    def place(self, step: Step, states: dict[Table, TableState]) -> None:
        """Note where a step stands."""
        self.leave(step)
        step.states = states
        for table in step.outputs:
            for place in states[table].stands.items():
                self.at.setdefault(place, set()).add(step.key)

    def leave(self, step: Step) -> None:
        """Forget where a step stands."""
        for table in step.outputs.keys() & step.states.keys():
            for place in step.states[table].stands.items():
                keys = self.at.get(place, set())
                keys.discard(step.key)
                if not keys:
                    self.at.pop(place, None)
        step.states = {}
