"""A small world of jobs that nobody adapted: plain streams, and batch runs.

They know nothing of barriers. A micro-batch consumes each input up to some snapshot, wherever that
is; one that gives no row makes no snapshot; a flush consumes nothing and still changes the content; a query with a new checkpoint folder
reads all again and overwrites. A batch run replaces its table, or writes a part of it; where its
author asserts that it completes the table, what it leaves there is the whole. Two batch jobs may
make the same table. Somebody who reports nothing may have filled a stream's table before it began,
and may have emptied it again; a stream that appends goes on above those rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from msgspec.structs import replace

from strandline.core.versions import facts
from strandline.core.versions.facts import Job, Table
from worlds.barriers.history import GROUP, job, table

Kind = Literal["stream", "batch"]
EMPTY = 0


@dataclass
class Plain:
    """A job: where it stands in the line of each input, and how many micro-batches its query has run.

    `found`: what the rows that it found in its table add to what it makes.
    """

    job: Job
    kind: Kind
    reads: list[Table]
    writes: Table
    names_all: bool
    overwrites: bool
    run: int = 1
    query: int = 1
    batch: int = -1
    found: int = 0
    at: dict[Table, int] = field(default_factory=dict)
    last: facts.BarrierCommitted | None = None


@dataclass
class PlainWorld:
    """`lines`: the snapshots of each table, oldest first; `content`: what is in each."""

    random: Random
    roots: list[Table] = field(default_factory=list)
    jobs: list[Plain] = field(default_factory=list)
    lines: dict[Table, list[str]] = field(default_factory=dict)
    cuts: dict[int, dict[Table, str]] = field(default_factory=dict)
    content: dict[str, int] = field(default_factory=dict)
    writes: set[str] = field(default_factory=set)
    clock: float = 0.0
    count: int = 0

    def tick(self) -> float:
        """A time that never comes twice."""
        self.clock += 1.0
        return self.clock

    def add(self, to: Table, content: int) -> facts.WrittenSnapshot:
        """A new snapshot on top of a table."""
        self.count += 1
        line, snapshot = self.lines[to], f"{to[1]}#{self.count}"
        parent = line[-1] if line else None
        was_empty = bool(line) and self.content[line[-1]] == EMPTY
        line.append(snapshot)
        self.content[snapshot] = content
        return facts.WrittenSnapshot(to, snapshot, parent, self.tick(), was_empty=was_empty)


def plain_world(seed: int, most: int = 5) -> PlainWorld:
    """One or two base tables; jobs that read one to three tables before theirs.

    Now and then two batch jobs make the same table from the same inputs.
    """
    world = PlainWorld(Random(seed))
    world.roots = [table(f"root{n}") for n in range(world.random.randint(1, 2))]
    known = list(world.roots)
    for number in range(world.random.randint(1, most)):
        writes = table(f"table{number}")
        kind: Kind = "batch" if world.random.random() < 0.3 else "stream"
        reads = world.random.sample(known, world.random.randint(1, min(3, len(known))))
        for part in range(2 if kind == "batch" and world.random.random() < 0.4 else 1):
            names_all, overwrites = world.random.random() < 0.5, world.random.random() < 0.3
            world.jobs.append(
                Plain(job(f"job{number}.{part}"), kind, reads, writes, names_all, overwrites)
            )
        known.append(writes)
    world.lines = {one: [] for one in known}
    for stream in [one for one in world.jobs if one.kind == "stream"]:
        fill_unreported(world, stream)
    return world


def fill_unreported(world: PlainWorld, stream: Plain) -> None:
    """Let a plain job of which nothing is known fill the table of a stream, and maybe empty it."""
    dice = world.random.random()
    if dice >= 0.3:
        return
    world.add(stream.writes, world.random.getrandbits(32))
    if dice < 0.1:
        world.add(stream.writes, EMPTY)
        world.writes.add("emptied")
        return
    world.writes.add("filled")
    stream.found = 0 if stream.overwrites else 0x3C3C


def plain_history(world: PlainWorld, steps: int, late: float = 0.3) -> Iterator[facts.Fact]:
    """Facts as they arrive: commits and cuts at once, late or twice.

    Which jobs there are is known from the start.
    """
    yield facts.GroupDeclared(GROUP, tuple(world.roots), world.tick())
    for one in world.jobs:
        yield started(world, one)
    waiting: list[facts.Fact] = []
    for _ in range(steps):
        for fact in act(world):
            if world.random.random() < late:
                waiting.append(fact)
            else:
                yield fact
            if world.random.random() < 0.1:
                waiting.append(fact)
        while waiting and world.random.random() < 0.3:
            yield waiting.pop(world.random.randrange(len(waiting)))
    world.random.shuffle(waiting)
    yield from waiting


def started(world: PlainWorld, one: Plain) -> facts.RunStarted:
    return facts.RunStarted(
        one.job,
        run_of(one),
        world.tick(),
        GROUP,
        tuple(one.reads),
        (one.writes,),
        batch=one.kind == "batch",
    )


def run_of(one: Plain) -> str:
    """The id of the current run."""
    return f"{one.job[1]}/{one.run}"


def act(world: PlainWorld) -> list[facts.Fact]:
    """Something happens: a cut, a step of a job, a restart."""
    dice = world.random.random()
    if dice < 0.25:
        return [cut(world)]
    one = world.random.choice(world.jobs)
    if dice < 0.3:
        return restart(world, one)
    return run_batch(world, one) if one.kind == "batch" else micro_batch(world, one)


def cut(world: PlainWorld) -> facts.Fact:
    """The next barrier: some base tables have new rows, some a snapshot without rows, some nothing."""
    made, barrier = [], len(world.cuts) + 1
    for root in world.roots:
        line, dice = world.lines[root], world.random.random()
        if not line or dice < 0.6:
            world.add(root, world.random.getrandbits(32))
        elif dice < 0.75:
            world.add(root, world.content[line[-1]])
        before = world.cuts.get(barrier - 1, {}).get(root)
        made.append(facts.WrittenSnapshot(root, line[-1], before))
    world.cuts[barrier] = {one.table: one.snapshot for one in made}
    return facts.RootsCut(GROUP, barrier, tuple(made), world.tick())


def restart(world: PlainWorld, one: Plain) -> list[facts.Fact]:
    """A new run of the job; its last micro-batch is told of again, or a lost checkpoint folder begins from nothing."""
    one.run += 1
    found: list[facts.Fact] = [started(world, one)]
    if one.kind == "stream" and one.overwrites and world.random.random() < 0.3:
        one.query, one.batch, one.at, one.last = one.query + 1, -1, {}, None
    elif one.last is not None and world.random.random() < 0.5:
        found.append(replayed(one))
    return found


def replayed(one: Plain) -> facts.Fact:
    """Return the new run's report of the micro-batch before it."""
    last = one.last
    assert last is not None
    return facts.BarrierCommitted(
        last.job, run_of(one), last.group, last.barrier, last.started, last.committed, last.written, last.used,
        batch=last.batch, stated=False, query=last.query,
    )  # fmt: skip


def micro_batch(world: PlainWorld, one: Plain) -> list[facts.Fact]:
    """Each input is consumed a little further, or none at all.

    Then what waited in windows comes out.
    """
    before = dict(one.at)
    for source in one.reads:
        reach = len(world.lines[source]) - 1
        behind = reach - one.at.get(source, -1)
        if behind > 0 and (one.batch < 0 or world.random.random() < 0.7):
            one.at[source] = one.at.get(source, -1) + world.random.choice([1, behind, behind])
    flush = one.at == before
    if len(one.at) < len(one.reads) or (flush and world.random.random() < 0.7):
        one.at = before
        return []
    one.batch += 1
    started_at = world.tick()
    content = derived(
        one, [world.content[world.lines[source][one.at[source]]] for source in one.reads]
    )
    content ^= one.found
    line = world.lines[one.writes]
    if line and not one.overwrites and not flush and world.content[line[-1]] == content:
        world.writes.add("idle")  # no row came of what it read
        return [micro_batch_fact(world, one, before, None, started_at)]
    made = world.add(one.writes, content ^ (0x5A5A if flush else 0))
    return [micro_batch_fact(world, one, before, made, started_at)]


def micro_batch_fact(
    world: PlainWorld,
    one: Plain,
    before: dict[Table, int],
    made: facts.WrittenSnapshot | None,
    started_at: float,
) -> facts.BarrierCommitted:
    """Return the report of a micro-batch.

    Of all its inputs, or of those alone that had something new; `made` is None if it made nothing.
    """
    named = [
        source for source in one.reads if one.names_all or one.at[source] != before.get(source)
    ]
    used = tuple(
        facts.Used(
            source,
            world.lines[source][one.at[source]],
            aligned=False,
            exact=world.random.random() > 0.03,
        )
        for source in named
    )
    operation = "overwrite" if one.overwrites else "append"
    written = [
        replace(one_made, operation=operation, replaces=one.overwrites)
        for one_made in [made]
        if one_made is not None
    ]
    one.last = facts.BarrierCommitted(
        one.job, run_of(one), GROUP, one.batch + 1, started_at, world.tick(), tuple(written), used, batch=one.batch,
        stated=False, query=f"{one.job[1]}/q{one.query}",
    )  # fmt: skip
    return one.last


def run_batch(world: PlainWorld, one: Plain) -> list[facts.Fact]:
    """A batch run reads whole tables, mostly the newest snapshots.

    It replaces its table, writes a part of it, or writes a part that completes it.
    """
    if not all(world.lines[source] for source in one.reads):
        return []
    one.run += 1
    started_at = world.tick()
    read = {source: world.random.choice(world.lines[source][-3:]) for source in one.reads}
    whole = derived(one, [world.content[read[source]] for source in one.reads])
    how = world.random.choice(["replaces", "replaces", "completes", "part"])
    world.writes.add(how)
    made = replace(
        world.add(one.writes, whole ^ (0xA5A5 if how == "part" else 0)),
        operation="overwrite",
        replaces=how == "replaces",
        completes=how == "completes",
    )
    used = tuple(facts.Used(source, snapshot, aligned=False) for source, snapshot in read.items())
    return [
        facts.BarrierCommitted(
            one.job, run_of(one), GROUP, 0, started_at, world.tick(), (made,), used, stated=False
        )
    ]  # fmt: skip


def derived(one: Plain, contents: list[int]) -> int:
    """Return what the table of a job holds, made from the contents of its inputs."""
    return hash((one.writes[1].encode(), *contents)) & 0xFFFFFFFF


def recomputed(world: PlainWorld, wanted: Table, barrier: int) -> int:
    """content(T, b) from the base tables at b alone, by the definition of every job on the way."""
    if wanted in world.roots:
        return world.content[world.cuts[barrier][wanted]]
    maker = next(one for one in world.jobs if one.writes == wanted)
    return derived(maker, [recomputed(world, source, barrier) for source in maker.reads])
