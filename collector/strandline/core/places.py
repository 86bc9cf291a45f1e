"""The place of a managed job: its part in a component and its pins. It outlives the run that took it.

A place ends by retirement only. A new run of the job takes it over; the tables that only the run before had named stay
until the new run committed once, so that nothing falls apart in between.
"""

from dataclasses import dataclass, field

from strandline.core.barriers import Job, Table


@dataclass(slots=True)
class Tables:
    """What a job reads and writes."""

    reads: set[Table] = field(default_factory=set)
    writes: set[Table] = field(default_factory=set)

    def add(self, reads: tuple[Table, ...], writes: tuple[Table, ...]) -> bool:
        """Take tables in; True when one is new."""
        before = len(self.reads) + len(self.writes)
        self.reads.update(reads)
        self.writes.update(writes)
        return len(self.reads) + len(self.writes) > before

    def has(self, reads: tuple[Table, ...], writes: tuple[Table, ...]) -> bool:
        """Whether all of these are known."""
        return self.reads.issuperset(reads) and self.writes.issuperset(writes)

    def __or__(self, other: "Tables") -> "Tables":
        return Tables(self.reads | other.reads, self.writes | other.writes)


@dataclass(slots=True)
class Registration:
    """What a job announced over REST, with a domain if it named one. Invisible until it runs."""

    tables: Tables = field(default_factory=Tables)
    domain: str | None = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Ending:
    """When a run ended, and how; the time to come back counts from when that was heard."""

    at: float
    how: str
    heard: float


@dataclass(frozen=True, slots=True)
class Retirement:
    """When a job gave up its place, and why: its runs of before do not come back."""

    at: float
    why: str
    runs: frozenset[str]


@dataclass(slots=True)
class Place:
    """A managed job with its current run. `admitted`: the tables with which it counts in a component."""

    job: Job
    domain: str
    inferred: bool
    run: str
    since: float
    ended: Ending | None = None
    of_run: Tables = field(default_factory=Tables)
    of_before: Tables = field(default_factory=Tables)
    announced: Tables = field(default_factory=Tables)
    effective: Tables = field(default_factory=Tables)
    admitted: set[Table] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    position: int | None = None
    checkpoint: str | None = None
    placed: bool = False
    start_barrier: int | None = None
    started_up: dict[Table, str] = field(default_factory=dict)

    def take_over(self, run: str, at: float, ended: Ending | None) -> None:
        """Another run has the place now; the one before is fenced."""
        self.of_before = self.of_before | self.of_run
        self.of_run = Tables()
        self.run, self.since, self.ended = run, at, ended

    def settle(self) -> None:
        """Say anew what counts: what was announced, what this run named, and what the runs before left."""
        self.effective = self.announced | self.of_run | self.of_before

    @property
    def reads(self) -> set[Table]:
        """The tables that the job reads (its own sink may be among them)."""
        return self.effective.reads

    @property
    def writes(self) -> set[Table]:
        """The tables that the job writes."""
        return self.effective.writes

    @property
    def tables(self) -> set[Table]:
        """All tables of the job."""
        return self.effective.reads | self.effective.writes
