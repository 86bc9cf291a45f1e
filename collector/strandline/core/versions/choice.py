"""A choice among the snapshots that carry a barrier: one of each table, none in two states.

Several runs may have replaced a table at one barrier, and what was made from it shows one of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import Table, Used
from strandline.core.versions.model import Model

MOST_TRIES = 1000  # where runs overlapped so often that more are needed, there is no choice

Candidates = Mapping[Table, Sequence[Completion]]


def newest_choice(
    model: Model, tables: Iterable[Table], barrier: int, chosen: Mapping[Table, str] | None = None
) -> dict[Table, Completion] | None:
    """Return the newest choice for `tables` and all that their snapshots were made from.

    Table by table, in the order of `tables`, the newest candidate that fits is taken. None where no
    choice fits. `chosen`: snapshots that were chosen before.
    """
    tables = list(tables)
    if not chosen:
        newest = _newest_of_each(model, tables, barrier)
        if newest is not None:
            return newest
    lineage = _Lineage(model, barrier, chosen or {})
    lineage.add(tables)
    waiting: list[Candidates] = [lineage.candidates]
    for _ in range(MOST_TRIES):
        if not waiting:
            break
        candidates = lineage.without_misfits(waiting.pop())
        if not all(candidates.values()):
            continue
        undecided = next((table for table in candidates if len(candidates[table]) > 1), None)
        if undecided is None:
            return {table: candidate for table, (candidate,) in candidates.items()}
        for candidate in candidates[undecided]:
            waiting.append({**candidates, undecided: [candidate]})
    return None


def _newest_of_each(
    model: Model, tables: Iterable[Table], barrier: int
) -> dict[Table, Completion] | None:
    """Return the newest candidates where they fit each other, as nearly always."""
    choice: dict[Table, Completion] = {}
    waiting = list(tables)
    while waiting:
        table = waiting.pop()
        if table in choice:
            continue
        newest = model.done[table].of.get(barrier)
        if newest is None:
            return None
        choice[table] = newest
        for used in _inputs(model, table, newest):
            if model.done[used.table].of[barrier].snapshot not in (used.snapshot, used.shows):
                return None
            waiting.append(used.table)
    return choice


@dataclass
class _Lineage:
    """The candidates of a barrier, with what each was made from.

    `reads`: of a table's candidate the ids of each input that it shows; `neighbours`: the tables
    whose candidates have to fit a table's.
    """

    model: Model
    barrier: int
    chosen: Mapping[Table, str]
    candidates: dict[Table, list[Completion]] = field(default_factory=dict)
    reads: dict[tuple[Table, str], dict[Table, set[str]]] = field(default_factory=dict)
    neighbours: dict[Table, set[Table]] = field(default_factory=dict)

    def add(self, tables: Iterable[Table]) -> None:
        """Add tables, and all that their candidates were made from."""
        waiting = list(tables)
        for table in waiting:
            if table in self.candidates:
                continue
            chosen = self.chosen.get(table)
            candidates = self.model.done[table].candidates(self.barrier)
            self.candidates[table] = [
                candidate
                for candidate in candidates
                if chosen is None or candidate.snapshot == chosen
            ]
            for candidate in self.candidates[table]:
                inputs = _inputs(self.model, table, candidate)
                self.reads[table, candidate.snapshot] = {
                    used.table: {used.snapshot, used.shows} for used in inputs
                }
                for used in inputs:
                    self.neighbours.setdefault(table, set()).add(used.table)
                    self.neighbours.setdefault(used.table, set()).add(table)
                    waiting.append(used.table)

    def without_misfits(self, candidates: Candidates) -> Candidates:
        """Drop candidates until each that is left fits some candidate of every neighbour."""
        left = dict(candidates)
        waiting = dict.fromkeys(left)
        while waiting:
            table, _ = waiting.popitem()
            neighbours = self.neighbours.get(table, ())
            fitting = [
                candidate
                for candidate in left[table]
                if all(
                    self._fits(table, candidate, neighbour, left[neighbour])
                    for neighbour in neighbours
                )
            ]
            if len(fitting) < len(left[table]):
                left[table] = fitting
                waiting |= dict.fromkeys(neighbours)
        return left

    def _fits(
        self, table: Table, candidate: Completion, neighbour: Table, others: Sequence[Completion]
    ) -> bool:
        """Return whether one of a neighbour's candidates shows the same as this one."""
        shown = self.reads[table, candidate.snapshot].get(neighbour)
        for other in others:
            read = self.reads[neighbour, other.snapshot].get(table)
            if shown is not None and other.snapshot not in shown:
                continue
            if read is None or candidate.snapshot in read:
                return True
        return False


def _inputs(model: Model, table: Table, candidate: Completion) -> list[Used]:
    """Return the inputs of a snapshot that carry its barrier too."""
    group = model.group_of.get(table)
    return [
        use
        for use in candidate.used
        if use.exact
        and not use.lookup
        and use.table != table
        and model.group_of.get(use.table) == group
        and candidate.barrier in model.done[use.table]
    ]
