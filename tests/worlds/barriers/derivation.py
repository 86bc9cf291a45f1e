"""The definition of derived barriers, word for word, from a set of facts and without any care for speed or order.

`rule` turns it into the wrong systems that the negative controls show: flushes that end at a barrier count too, the
number of the micro-batch is taken for one, or rows that a stream found in its table are taken for its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from strandline.core.versions import facts
from strandline.core.versions.facts import Job, Table

Rule = Literal["moved", "any", "number", "found"]
Done = dict[Table, dict[int, set[str]]]


@dataclass
class Derivation:
    """All facts so far, as sets."""

    rule: Rule = "moved"
    cuts: dict[int, facts.RootsCut] = field(default_factory=dict)
    reads: dict[Job, set[Table]] = field(default_factory=dict)
    writes: dict[Job, set[Table]] = field(default_factory=dict)
    commits: set[facts.BarrierCommitted] = field(default_factory=set)

    def take(self, fact: facts.Fact) -> None:
        match fact:
            case facts.RootsCut():
                self.cuts[fact.barrier] = fact
            case facts.RunStarted():
                self.reads.setdefault(fact.job, set()).update(fact.reads)
                self.writes.setdefault(fact.job, set()).update(fact.writes)
            case facts.BarrierCommitted():
                self.commits.add(fact)
            case _:
                pass

    def done(self) -> Done:
        """candidates(T, b) of every table.

        Of base tables as they were cut, of the others as it follows from what was read.
        """
        found: Done = {}
        for cut in self.cuts.values():
            for one in cut.snapshots:
                found.setdefault(one.table, {}).setdefault(cut.barrier, set()).add(one.snapshot)
        waiting = sorted({table for tables in self.writes.values() for table in tables})
        while waiting:
            table = next(one for one in waiting if not self._inputs(one) & set(waiting))
            waiting.remove(table)
            found[table] = self._of(table, found)
        return found

    def _inputs(self, table: Table) -> set[Table]:
        return {source for job in self._writers(table) for source in self.reads[job]}

    def _writers(self, table: Table) -> list[Job]:
        return [job for job, tables in self.writes.items() if table in tables]

    def _of(self, table: Table, done: Done) -> dict[int, set[str]]:
        own = [one for one in self.commits if any(made.table == table for made in one.written)]
        if any(one.batch is None for one in own):
            return self._of_runs(own, done)
        writers = self._writers(table)
        idle = [one for one in self.commits if not one.written and one.job in writers]
        return self._of_stream([*own, *idle], done)

    def _of_stream(self, own: list[facts.BarrierCommitted], done: Done) -> dict[int, set[str]]:
        micro = {
            (one.query, one.batch or 0): one
            for one in sorted(own, key=lambda one: (one.committed, one.run))
        }
        if self.rule == "number":
            return {one.barrier: {one.written[0].snapshot} for one in micro.values() if one.written}
        found: dict[int, set[str]] = {}
        for one in micro.values():
            for b in self.cuts if one.written and self._counts(one, micro) else ():
                if self._ends(one, micro, done, b):
                    found.setdefault(b, set()).add(one.written[0].snapshot)
        return found

    def _counts(
        self, one: facts.BarrierCommitted, micro: dict[tuple[str, int], facts.BarrierCommitted]
    ) -> bool:
        began = {
            query: min(f.committed for (q, _), f in micro.items() if q == query)
            for query, _ in micro
        }
        if one.written[0].replaces:
            return True
        return min(began.values()) == began[one.query] and self._began_on_no_rows(one.query, micro)

    def _began_on_no_rows(
        self, query: str, micro: dict[tuple[str, int], facts.BarrierCommitted]
    ) -> bool:
        """Return true if the first snapshot of a query is known to have been made on no rows."""
        written = [one for (of, _), one in sorted(micro.items()) if of == query and one.written]
        first = written[0].written[0]
        return self.rule == "found" or first.parent is None or first.was_empty

    def _ends(
        self,
        one: facts.BarrierCommitted,
        micro: dict[tuple[str, int], facts.BarrierCommitted],
        done: Done,
        b: int,
    ) -> bool:
        """Return true if it ends at b, and is known to have consumed something."""
        at = {source: place(one, micro, source) for source in self.reads[one.job]}
        if any(snapshot not in done.get(source, {}).get(b, ()) for source, snapshot in at.items()):
            return False
        if self.rule == "any" or one.batch == 0:
            return True
        before = micro.get((one.query, (one.batch or 0) - 1))
        return before is not None and any(
            place(before, micro, source) not in (None, at[source]) for source in at
        )

    def _of_runs(self, own: list[facts.BarrierCommitted], done: Done) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for one in own:
            made = one.written[0]
            for barrier in self.cuts if made.replaces or made.completes else ():
                if stood(one, done, barrier):
                    found.setdefault(barrier, set()).add(made.snapshot)
        return found


def stood(run: facts.BarrierCommitted, done: Done, barrier: int) -> bool:
    """Return true if all reads of a batch run stood at a barrier."""
    return all(
        used.exact and used.snapshot in done.get(used.table, {}).get(barrier, ())
        for used in run.used
    )


def place(
    one: facts.BarrierCommitted, micro: dict[tuple[str, int], facts.BarrierCommitted], source: Table
) -> str | None:
    """Up to which snapshot an input was consumed, as it says or else as the micro-batch before it did."""
    named = [used for used in one.used if used.table == source]
    if named:
        return named[0].snapshot if all(used.exact for used in named) else None
    before = micro.get((one.query, (one.batch or 0) - 1))
    return place(before, micro, source) if before is not None else None


def of_all(rule: Rule, history: Iterable[facts.Fact]) -> Derivation:
    """Return the derivation from all facts of a history."""
    found = Derivation(rule)
    for fact in history:
        found.take(fact)
    return found
