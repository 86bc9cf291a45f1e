"""The model of consistent versions: jobs with places, tables with completed barriers, groups.

It holds what the facts so far came to: apply.py applies a fact, strong_weak.py and its neighbours
answer. The same facts in the same order give the same model, on every server.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from shlex import quote
from sys import intern

from msgspec.structs import replace

from strandline.core.versions.completions import Completions
from strandline.core.versions.facts import BarrierCommitted, Fact, Job, RunEnded, RunStarted, Table
from strandline.core.versions.group_jobs import Ending, GroupJob, Registration, Retirement
from strandline.core.versions.steps import Key, Made, Steps


@dataclass(slots=True)
class Group:
    """A group with its barriers.

    `declared`: its base tables, where somebody declared them; `ingested`: those that streams fill
    which read no table of the group. `stands`: the base snapshots that the last step of each job
    shows, where there are several base tables.
    """

    name: str
    declared: tuple[Table, ...] = ()
    ingested: set[Table] = field(default_factory=set)
    stands: dict[Job, dict[Table, str]] = field(default_factory=dict)
    generation: int = 1
    births: dict[int, float] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    looked_at: int = 0  # how many barriers were needed when last something was forgotten (prune.py)
    forgotten: int = 0  # barriers before this one are of long ago

    @property
    def bases(self) -> tuple[Table, ...]:
        """The base tables; the barriers of several are taken here, in one cut through all."""
        return self.declared or tuple(sorted(self.ingested))

    def born(self, barrier: int, at: float) -> None:
        """Note that a table completed `barrier` at `at`; the first one is its birth."""
        if barrier < self.forgotten:
            return
        if barrier not in self.births:
            insort(self.order, barrier)
        self.births[barrier] = min(at, self.births.get(barrier, at))

    def forget(self, before: int) -> None:
        """Forget the barriers before one."""
        self.forgotten = before
        place = bisect_left(self.order, before)
        for barrier in self.order[:place]:
            del self.births[barrier]
        del self.order[:place]

    def overdue(self, timeout: float | None, now: float) -> set[int]:
        """Return the barriers that are older than the timeout.

        For a table that completed one of them, that one is not overdue.
        """
        if timeout is None:
            return set()
        return {barrier for barrier, birth in self.births.items() if birth + timeout < now}

    def first_after(self, barrier: int | None) -> int | None:
        """The first barrier born after `barrier`, or None."""
        index = 0 if barrier is None else bisect_right(self.order, barrier)
        return self.order[index] if index < len(self.order) else None

    def after(self, barrier: int | None) -> list[int]:
        """All barriers born after `barrier` (after none: all), ascending."""
        return self.order[0 if barrier is None else bisect_right(self.order, barrier) :]

    @property
    def newest(self) -> int | None:
        """The greatest barrier that anybody completed, or None."""
        return self.order[-1] if self.order else None


KEEPS = 100
CAUGHT_UP = 20


@dataclass(slots=True, eq=False)
class Model:
    """Everything that answers need; changed by `apply` only, but for `called`.

    `keeps`: how many barriers stay that nobody needs.
    `caught_up`: a stream has caught up when its tables have one of so many newest barriers.
    `starting`: jobs not yet placed.
    `steps`: what jobs did without stating a barrier.
    `made`, `based`: the steps by what they wrote and by what they wrote it on.
    `changed`, `rederive`, `unsettled`: barriers and jobs to look at again, empty between facts.
    `reused`: since when a name that other tables had before means its table.
    `of_former`: the last barrier in a group of those other tables.
    `names`: of tables and jobs, each once.
    `called`: what people call tables, for words.
    """

    groups: dict[str, Group] = field(default_factory=dict)
    group_of: dict[Table, str] = field(default_factory=dict)
    done: dict[Table, Completions] = field(default_factory=dict)
    roots: set[Table] = field(default_factory=set)
    places: dict[Job, GroupJob] = field(default_factory=dict)
    registered: dict[Job, Registration] = field(default_factory=dict)
    retired: dict[Job, Retirement] = field(default_factory=dict)
    endings: dict[Job, dict[str, Ending]] = field(default_factory=dict)
    writers: dict[Table, set[Job]] = field(default_factory=dict)
    readers: dict[Table, set[Job]] = field(default_factory=dict)
    abandoned: dict[Table, Job] = field(default_factory=dict)
    unsettled: set[Job] = field(default_factory=set)
    starting: set[Job] = field(default_factory=set)
    keeps: int = KEEPS
    caught_up: int = CAUGHT_UP
    steps: dict[Job, Steps] = field(default_factory=dict)
    made: dict[Made, tuple[Job, Key]] = field(default_factory=dict)
    based: dict[Made, set[tuple[Job, Key]]] = field(default_factory=dict)
    changed: deque[tuple[Table, int]] = field(default_factory=deque)
    rederive: set[Job] = field(default_factory=set)
    reused: dict[Table, float] = field(default_factory=dict)
    of_former: dict[tuple[str, Table], int] = field(default_factory=dict)
    names: dict[Table, Table] = field(default_factory=dict)
    called: dict[Table, str] = field(default_factory=dict)

    def name(self, named: Table | Job) -> Table:
        """The one object for this name.

        Thousands of barriers share it, and a lookup by it compares no texts.
        """
        known = self.names.get(named)
        if known is None:
            known = (intern(named[0]), named[1])
            self.names[known] = known
        return known

    def has(self, table: Table) -> bool:
        """Return whether anything is known of a table of this name."""
        return table in self.names or table in self.group_of

    def call(self, table: Table) -> str:
        """Return the table's name in messages: its label if known, else its name."""
        return self.called.get(table, table[1])

    def group(self, name: str) -> Group:
        """The group of this name, made at first mention."""
        known = self.groups.get(name)
        if known is None:
            known = self.groups[name] = Group(name)
        return known

    def group_at(self, table: Table) -> Group | None:
        """The group that the table belongs to, if it belongs to any."""
        return self.groups.get(self.group_of[table]) if table in self.group_of else None

    def writer(self, table: Table) -> Job | None:
        """Return the tracked job that writes `table`; of several batch jobs, the first by name.

        None if several jobs contend.
        """
        writers = self.writers.get(table, ())
        if len(writers) < 2:
            return next(iter(writers), None)
        counted = self.counted_writers(table)
        return min(counted) if len(counted) == 1 or self.is_shared(table) else None

    def counted_writers(self, table: Table) -> set[Job]:
        """Return the jobs whose commits count.

        Streams come first; commits of batch jobs beside them are backfills.
        """
        writers = self.writers.get(table, set())
        return {job for job in writers if not self.places[job].batch} or writers

    def is_shared(self, table: Table) -> bool:
        """Return whether several batch jobs and no stream write the table."""
        writers = self.writers.get(table, ())
        return len(writers) > 1 and all(self.places[job].batch for job in writers)

    def is_tracked(self, table: Table) -> bool:
        """Return true if one tracked stream or batch jobs alone write it.

        A base table of a group that no tracked job writes counts, too.
        """
        if table not in self.group_of:
            return False
        writers = self.writers.get(table, ())
        if len(writers) < 2:
            return len(writers) == 1 or table in self.roots
        return len(self.counted_writers(table)) == 1 or self.is_shared(table)

    def is_batch_table(self, table: Table) -> bool:
        """Return whether batch jobs write the table, and no stream."""
        writers = self.writers.get(table, ())
        return bool(writers) and all(self.places[job].batch for job in writers)

    def has_barriers(self, table: Table) -> bool:
        """Return whether the table completed a barrier.

        An untracked table keeps those that it has.
        """
        return table in self.group_of and bool(self.done[table].order)

    def carried_together(self, stands: Mapping[Table, str], barrier: int | None) -> set[int]:
        """Return the barriers that all these snapshots carry; look at one only, if given."""
        carried = [self.done[table].carried.get(at, []) for table, at in stands.items()]
        fewest = min(carried, key=len)
        if barrier is not None:
            fewest = [barrier] if barrier in fewest else []
        return {
            barrier
            for barrier in fewest
            if all(self.done[table].carries(at, barrier) for table, at in stands.items())
        }

    def is_member(self, table: Table) -> bool:
        """Return whether a member writes the table."""
        writers = self.writers.get(table, ())
        return any(self.places[job].counts_from is not None for job in writers)

    def is_joining(self, table: Table) -> bool:
        """Return whether a stream writes the table that is no member yet."""
        writers = self.writers.get(table, set())
        return bool(writers) and not self.is_batch_table(table) and not self.is_member(table)

    def connects(self, place: GroupJob) -> set[Table]:
        """Return the tables that a job holds at one version; a batch job holds none."""
        return set() if place.batch else self.links(place)

    def links(self, place: GroupJob) -> set[Table]:
        """The tables through which a job counts.

        Tracked ones of its own group, but what it only fills in.
        """
        return {
            table
            for table in place.tables
            if self.group_of.get(table) == place.group
            and self.is_tracked(table)
            and not self._fills(place, table)
        }

    def _fills(self, place: GroupJob, table: Table) -> bool:
        """Return whether a batch job writes the table of a stream."""
        return (
            place.batch and table in place.writes and place.job not in self.counted_writers(table)
        )

    def jobs_at(self, table: Table) -> set[Job]:
        """The tracked jobs that read or write `table`."""
        return self.readers.get(table, set()) | self.writers.get(table, set())

    def sources(self, table: Table) -> set[Table]:
        """The tracked tables of the same group from which the writer of `table` makes it."""
        if self.writer(table) is None:
            return set()
        places = [self.places[job] for job in self.counted_writers(table)]
        return {
            source for place in places for source in self.links(place) & place.reads - place.writes
        }

    def sinks(self, table: Table) -> set[Table]:
        """The tracked tables of the same group that are made from `table`."""
        tables: set[Table] = set()
        for job in self.readers.get(table, ()):
            place = self.places[job]
            tables |= {sink for sink in self.links(place) if sink in place.writes and sink != table}
        return tables

    def unplaced(self) -> list[GroupJob]:
        """Return the running jobs without a commit whose start has not been decided.

        They have reported what they read.
        """
        return [
            self.places[job]
            for job in self.starting
            if self.places[job].reads and self.places[job].ended is None
        ]

    def knows(self, job: Job) -> bool:
        """Return whether facts of the job without a group may be wanted."""
        return job in self.places or job in self.registered or job in self.retired

    def without_former(self, fact: RunStarted) -> RunStarted:
        """Return a start without the names that may have meant other tables then."""
        if not self.reused:
            return fact
        return replace(
            fact,
            reads=tuple([read for read in fact.reads if fact.at >= self.reused.get(read, -inf)]),
            writes=tuple(
                [write for write in fact.writes if fact.at >= self.reused.get(write, -inf)]
            ),
        )

    def wants(self, fact: Fact) -> bool:
        """Return whether a fact of a run changes anything: most say what is known already."""
        match fact:
            case RunStarted():
                return self._wants_start(fact)
            case BarrierCommitted():
                return (
                    fact.group is not None or fact.job in self.places or fact.job in self.registered
                )
            case RunEnded():
                return self.knows(fact.job) and fact.run not in self.endings.get(fact.job, {})
        return True

    def _wants_start(self, fact: RunStarted) -> bool:
        place = self.places.get(fact.job)
        if place is None:
            return fact.group is not None or fact.job in self.registered
        if fact.run not in place.runs:
            return True
        if fact.run == place.run:
            named = self.without_former(fact)
            if not place.of_run.has(named.reads, named.writes):
                return True
        if place.inferred and fact.group not in (None, place.group):
            return True
        ended = place.ended
        return ended is not None and ended.how == "LOST" and fact.seen > ended.at

    def why_anew(self, table: Table) -> str:
        """In words, why the barriers of a table begin anew; empty where they do not."""
        if table not in self.reused:
            return ""
        return (
            f"{self.call(table)} was the name of another table before, so its barriers start again"
        )

    def why_untracked(self, table: Table) -> str:
        """In words, why `table` has no consistent versions."""
        writers, called = sorted(name for _, name in self.writers.get(table, ())), self.call(table)
        if len(writers) > 1:
            return f"{called}: untracked: {len(writers)} jobs write it ({', '.join(writers)})"
        if table in self.abandoned:
            return f"{called}: untracked: its writer {self.abandoned[table][1]} was retired"
        if table in self.reused:
            return f"{called}: untracked: {self.why_anew(table)}"
        return (
            f"{called}: untracked: no job that carries barriers writes it, "
            "and it is not a base table of a group"
        )

    def how_to_track(self, table: Table) -> str:
        """In words, what gives an untracked table barriers."""
        writers = sorted(name for _, name in self.writers.get(table, ()))
        if len(writers) > 1:
            return (
                f"retire all but one (strandline retire {quote(writers[0])}), "
                "then replace the whole table"
            )
        if table in self.abandoned:
            return "start its writer again, or ask without the table"
        return "give its job the group: spark.strandline.group"


def descendants(model: Model, table: Table) -> list[Table]:
    """`table` and every tracked table made from it, upstream first."""
    tables: dict[Table, None] = {}
    waiting = [table]
    while waiting:
        member = waiting.pop()
        if member not in tables:
            tables[member] = None
            waiting.extend(sorted(model.sinks(member)))
    return upstream_first(model, list(tables))


def upstream(model: Model, table: Table) -> set[Table]:
    """`table` and every tracked table that it is made from."""
    tables, waiting = {table}, [table]
    while waiting:
        new = model.sources(waiting.pop()) - tables
        tables |= new
        waiting.extend(new)
    return tables


def lacking(model: Model, tables: Iterable[Table], barrier: int) -> list[Table]:
    """Those of `tables` that lack a barrier though all that they are made from has it."""
    return [
        table
        for table in sorted(tables)
        if barrier not in model.done[table]
        and all(barrier in model.done[source] for source in model.sources(table))
    ]


def upstream_first(model: Model, tables: list[Table]) -> list[Table]:
    """`tables` so that each comes after those among them that it is made from."""
    wanted, done, ordered = set(tables), set[Table](), list[Table]()
    stack = [(table, False) for table in sorted(wanted, reverse=True)]
    while stack:
        table, entered = stack.pop()
        if entered:
            ordered.append(table)
        elif table not in done:
            done.add(table)
            stack.append((table, True))
            stack.extend((source, False) for source in sorted(model.sources(table) & wanted - done))
    return ordered
