"""The place of a tracked job: its part in a pipeline and its pins.

It outlives the run that took it.

A place ends by retirement only. A new run of the job takes it over. Tables that only the previous
run named stay until the new run has committed once, so that nothing falls apart in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from strandline.core.versions.facts import BarrierCommitted, Job, Table

ReadAndWritten: TypeAlias = tuple[
    tuple[Table, ...], tuple[Table, ...]
]  # what was read, what was written


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that a job reads and writes."""

    reads: frozenset[Table] = frozenset()
    writes: frozenset[Table] = frozenset()

    def has(self, reads: Iterable[Table], writes: Iterable[Table]) -> bool:
        """Return whether all of these are known."""
        return self.reads.issuperset(reads) and self.writes.issuperset(writes)

    def __or__(self, other: "Tables") -> "Tables":
        """Return the union; if one side contains the other, that side itself.

        There are many such values and most are alike, so this saves memory.
        """
        if self.has(other.reads, other.writes):
            return self
        if other.has(self.reads, self.writes):
            return other
        return Tables(self.reads | other.reads, self.writes | other.writes)

    def without(self, table: Table) -> "Tables":
        """The same without one of them."""
        return Tables(self.reads - {table}, self.writes - {table})

    def renamed(self, old: Table, other: Table) -> "Tables":
        """The same with another name for one of them; itself where it does not have that."""
        if old not in self.reads | self.writes:
            return self
        reads, writes = (
            frozenset(other if table == old else table for table in of)
            for of in (self.reads, self.writes)
        )
        return Tables(reads, writes)


NO_TABLES = Tables()


@dataclass(slots=True)
class Registration:
    """The announcement of a job over REST, with a group if it named one.

    Invisible until it runs.
    """

    tables: Tables = NO_TABLES
    group: str | None = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Ending:
    """The time and manner of a run's end; the time to come back counts from its receipt."""

    at: float
    how: str
    heard: float


@dataclass(frozen=True, slots=True)
class Retirement:
    """The time and reason of a job's retirement: its earlier runs do not come back."""

    at: float
    why: str
    runs: frozenset[str]


@dataclass(slots=True)
class GroupJob:
    """A tracked job with its current run.

    `connected`: the tables that it holds at one version, from barrier `counts_from` on (None: it is
    no member). `last_tables`: what the run's last commit read and wrote. `batch`: its runs are no
    streams. `fills`: the tables that a stream fills from outside of the group. `began_after`: of
    such a stream the last barrier before each query.
    """

    job: Job
    group: str
    inferred: bool
    run: str
    since: float
    ended: Ending | None = None
    of_run: Tables = NO_TABLES
    of_before: Tables = NO_TABLES
    announced: Tables = NO_TABLES
    effective: Tables = NO_TABLES
    connected: frozenset[Table] = frozenset()
    counts_from: int | None = None
    runs: set[str] = field(default_factory=set)
    position: int | None = None
    checkpoint: str | None = None
    placed: bool = False
    start_barrier: int | None = None
    started_up: dict[Table, str] = field(default_factory=dict)
    last_tables: ReadAndWritten = ((), ())
    batch: bool = False
    fills: set[Table] = field(default_factory=set)
    began_after: dict[str, int] = field(default_factory=dict)

    def take_over(self, run: str, at: float, ended: Ending | None) -> None:
        """Another run has the place now; the one before is fenced."""
        self.of_before = self.of_before | self.of_run
        self.of_run, self.last_tables = NO_TABLES, ((), ())
        self.run, self.since, self.ended = run, at, ended

    def rename(self, old: Table, other: Table) -> None:
        """Let the place say another name of a table."""
        self.of_run, self.of_before = (
            self.of_run.renamed(old, other),
            self.of_before.renamed(old, other),
        )
        self.announced, self.effective = (
            self.announced.renamed(old, other),
            self.effective.renamed(old, other),
        )
        self.connected = frozenset(other if table == old else table for table in self.connected)
        self.fills = {other if table == old else table for table in self.fills}
        self.last_tables = ((), ())

    def repeats(self, fact: BarrierCommitted, tables: ReadAndWritten) -> bool:
        """Return whether a commit adds nothing to the job and run of the one before it.

        Nearly all commits do not.
        """
        same = fact.run == self.run and tables == self.last_tables and fact.started >= self.since
        return same and not (self.inferred and fact.group not in (None, self.group))

    def settle(self) -> None:
        """Decide anew what counts.

        What was announced, what this run named, and what the runs before left.
        """
        self.effective = self.announced | self.of_run | self.of_before

    @property
    def reads(self) -> frozenset[Table]:
        """The tables that the job reads (its own sink may be among them)."""
        return self.effective.reads

    @property
    def writes(self) -> frozenset[Table]:
        """The tables that the job writes."""
        return self.effective.writes

    @property
    def tables(self) -> frozenset[Table]:
        """All tables of the job."""
        return self.effective.reads | self.effective.writes
