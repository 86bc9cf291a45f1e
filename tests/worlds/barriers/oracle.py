"""The definitions of consistent versions, word for word, without any care for speed.

Every answer is computed anew from sets. The switches turn rules off: the wrong systems that the
negative controls show.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from strandline.core.versions import facts
from strandline.core.versions.facts import Job, Table


@dataclass
class Member:
    """A tracked job with a place."""

    reads: set[Table]
    writes: set[Table]
    connected: set[Table] = field(default_factory=set)
    counts_from: int | None = None
    run: str = ""
    since: float = 0.0


@dataclass
class Oracle:
    """Everything delivered so far, as sets."""

    from_barrier: bool = True
    place: bool = True
    roots: set[Table] = field(default_factory=set)
    carrying: dict[Table, dict[int, dict[str, float]]] = field(default_factory=dict)
    done: dict[Table, dict[int, dict[str, float]]] = field(default_factory=dict)
    used: dict[tuple[Table, str], tuple[facts.Used, ...]] = field(default_factory=dict)
    floor: dict[Table, float] = field(default_factory=dict)
    jobs: dict[Job, Member] = field(default_factory=dict)
    retired: dict[Job, tuple[float, set[str]]] = field(default_factory=dict)
    runs: dict[Job, set[str]] = field(default_factory=dict)
    born: set[int] = field(default_factory=set)
    known: set[Table] = field(default_factory=set)
    generation: int = 1

    def take(self, fact: facts.Fact) -> None:
        """One more fact, then from which barrier on each job counts."""
        self._learn(fact)
        self.done = {}
        for table in self.carrying:
            self._believe(table)
        if isinstance(fact, facts.RolledBack):
            self.born = {barrier for done in self.done.values() for barrier in done}
        self._settle()

    def _learn(self, fact: facts.Fact) -> None:
        match fact:
            case facts.GroupDeclared():
                self.roots |= set(fact.roots)
                self.known |= set(fact.roots)
            case facts.RootsCut():
                for made in fact.snapshots:
                    self._complete(made.table, fact.barrier, fact.at, made.snapshot)
            case facts.RunStarted():
                self._start(fact.job, fact.run, fact.at, fact.reads, fact.writes)
            case facts.BarrierCommitted():
                self._commit(fact)
            case facts.RunEnded():
                self._end(fact.job, fact.run)
            case facts.JobRetired():
                self._retire(fact.job, fact.at)
            case facts.RolledBack():
                self._roll_back(fact)
            case _:
                pass

    def _believe(self, table: Table) -> dict[int, dict[str, float]]:
        """Return the believed barriers.

        Without outputs from other snapshots than the inputs have at the barrier.
        """
        if table not in self.done:
            self.done[table] = {}
            for barrier, carriers in self.carrying.get(table, {}).items():
                right = {
                    one: at
                    for one, at in carriers.items()
                    if not self._contradicted(table, barrier, one)
                }
                if right:
                    self.done[table][barrier] = right
        return self.done[table]

    def _contradicted(self, table: Table, barrier: int, snapshot: str) -> bool:
        inputs = [one for one in self.used.get((table, snapshot), ()) if self.tracked(one.table)]
        return any(
            one.snapshot not in self._believe(one.table).get(barrier, {one.snapshot: 0.0})
            for one in inputs
        )

    def _end(self, job: Job, run: str) -> None:
        self.runs.setdefault(job, set()).add(run)
        if not self.place and job in self.jobs and self.jobs[job].run == run:
            del self.jobs[job]

    def _retire(self, job: Job, at: float) -> None:
        if job in self.jobs:
            del self.jobs[job]
            self.retired[job] = (at, self.runs.pop(job, set()))

    def _start(
        self, job: Job, run: str, at: float, reads: Iterable[Table], writes: Iterable[Table]
    ) -> bool:
        since, runs = self.retired.get(job, (float("-inf"), set()))
        if at <= since or run in runs:
            return False
        member = self.jobs.setdefault(job, Member(set(), set()))
        member.reads |= set(reads)
        member.writes |= set(writes)
        self.known |= set(writes)
        member.run, member.since = max(
            (member.run, member.since), (run, at), key=lambda one: one[1]
        )
        self.runs.setdefault(job, set()).add(run)
        return True

    def _commit(self, fact: facts.BarrierCommitted) -> None:
        reads, writes = [used.table for used in fact.used], [made.table for made in fact.written]
        if (
            not self._start(fact.job, fact.run, fact.started, reads, writes)
            and fact.job not in self.jobs
        ):
            return
        for made in fact.written:
            self.used[made.table, made.snapshot] = fact.used
            self._complete(made.table, fact.barrier, fact.committed, made.snapshot)
        for used in fact.used:
            if (
                used.table in self.roots
                and not self.writers(used.table)
                and self._lacks(used.table, fact.barrier)
            ):
                self._complete(used.table, fact.barrier, fact.started, used.snapshot)

    def _lacks(self, table: Table, barrier: int) -> bool:
        return barrier not in self.carrying.get(table, {})

    def _complete(self, table: Table, barrier: int, at: float, snapshot: str) -> None:
        """A snapshot commits once.

        Of several times told of it (by its cut, by a job that read it) the earliest is so.
        """
        if at > self.floor.get(table, float("-inf")):
            carrying = self.carrying.setdefault(table, {}).setdefault(barrier, {})
            carrying[snapshot] = min(at, carrying.get(snapshot, at))
            self.born.add(barrier)

    def _roll_back(self, fact: facts.RolledBack) -> None:
        for table in fact.tables:
            kept = {b: how for b, how in self.carrying.get(table, {}).items() if b <= fact.barrier}
            self.carrying[table], self.floor[table] = kept, fact.at
        self.generation += 1

    def tracked(self, table: Table) -> bool:
        """Written by exactly one tracked job, or a base table."""
        writers = self.writers(table)
        return len(writers) == 1 or (not writers and table in self.roots)

    def writers(self, table: Table) -> list[Job]:
        """The tracked jobs with a place that write a table."""
        return [job for job, member in self.jobs.items() if table in member.writes]

    def links(self, member: Member) -> set[Table]:
        """A job's tracked tables."""
        return {table for table in member.reads | member.writes if self.tracked(table)}

    def pipeline(self, table: Table, barrier: int) -> set[Table]:
        """Everything reachable over members that count at a barrier."""
        found, waiting = {table}, [table]
        while waiting:
            one = waiting.pop()
            for member in self.jobs.values():
                counts = member.counts_from is not None and (
                    member.counts_from <= barrier or not self.from_barrier
                )
                if counts and one in member.connected:
                    waiting.extend(member.connected - found)
                    found |= member.connected
        return found

    def version(self, table: Table) -> int | None:
        """The greatest barrier that all tables of the pipeline at this barrier completed."""
        return max(
            (
                barrier
                for barrier in self.done.get(table, {})
                if all(barrier in self.done.get(one, {}) for one in self.pipeline(table, barrier))
            ),
            default=None,
        )

    def common(self, tables: Iterable[Table]) -> int | None:
        """The greatest barrier in the intersection."""
        return max(
            set.intersection(*(set(self.done.get(table, {})) for table in tables)), default=None
        )

    def snapshot(self, table: Table, barrier: int) -> str:
        """snap(T, b): the last of those that carry b."""
        return max(self.done[table][barrier].items(), key=lambda one: one[::-1])[0]

    def committed(self, table: Table, barrier: int) -> float:
        """commit(T, b): when snap(T, b) was committed."""
        return self.done[table][barrier][self.snapshot(table, barrier)]

    def birth(self, barrier: int) -> float:
        """Return the time of the first commit that carries the barrier.

        Of any table that still has it.
        """
        return min(at for done in self.carrying.values() for at in done.get(barrier, {}).values())

    def _settle(self) -> None:
        """A job counts from the barrier after the newest, once it caught up and all its tables are tracked."""
        recent = set(sorted(self.born)[-20:])
        for _, member in sorted(self.jobs.items()):
            links = self.links(member)
            of_group = (member.reads | member.writes) & self.known
            if not all(map(self.tracked, of_group)) or not links & member.writes:
                member.counts_from, member.connected = None, set()
            elif member.counts_from is None or member.connected != links:
                member.counts_from, member.connected = None, set()
                if all(recent & self.done.get(table, {}).keys() for table in links & member.writes):
                    member.counts_from, member.connected = max(self.born) + 1, links
