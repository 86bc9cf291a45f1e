"""One schedule of two servers, a lake, and jobs that ask before each checkpoint.

Anybody may crash between two steps.

What decides is the product's own code; the database is a list of facts that only grows under a
lock. The switches turn protections off: the wrong systems that the negative controls show.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from strandline.core.versions import facts
from strandline.core.versions.apply import apply
from strandline.core.versions.checkpoint import Decision, decide
from strandline.core.versions.completions import Completions
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.rollback import plan
from strandline.core.versions.root_barriers import (
    cut_each_commit,
    cut_through,
    single_roots,
    to_cut,
)
from strandline.errors import RefusedError
from worlds.barriers.history import GROUP, job, table

INTERVAL = 1.0
TIMEOUT = 40.0


@dataclass(slots=True)
class Server:
    """A server's model, and how far in the log it is."""

    model: Model = field(default_factory=Model)
    seq: int = 0
    heads: dict[Table, str] = field(default_factory=dict)


@dataclass(slots=True)
class Asking:
    """A job between asking, writing, checkpointing and telling."""

    name: str
    reads: list[Table]
    writes: Table
    run: int = 1
    position: int | None = None
    decision: Decision | None = None
    written: facts.BarrierCommitted | None = None
    untold: deque[facts.Fact] = field(default_factory=deque)


@dataclass(slots=True)
class Schedule:
    """Everything there is. `locked`, `looks`, `aligned`, `dated`: the protections."""

    random: Random
    locked: bool = True
    looks: bool = True
    aligned: bool = True
    dated: bool = True
    clock: float = 0.0
    count: int = 0
    generation: int = 1
    log: list[facts.Fact] = field(default_factory=list)
    servers: list[Server] = field(default_factory=lambda: [Server(), Server()])
    roots: list[Table] = field(default_factory=list)
    commits: dict[Table, list[str]] = field(default_factory=dict)
    known: dict[Table, int] = field(default_factory=dict)
    jobs: list[Asking] = field(default_factory=list)
    lake: dict[Table, dict[int, str]] = field(default_factory=dict)
    twice: int = 0

    def now(self) -> float:
        """A time that never comes twice."""
        self.clock += 1.0
        return self.clock

    def server(self) -> Server:
        """One of the two."""
        return self.servers[self.random.random() < 0.5]

    def snapshot(self, of: Table) -> str:
        """An id that never comes twice."""
        self.count += 1
        return f"{of[1]}#{self.count}"


def schedule(seed: int, without: str = "", steps: int = 100) -> Schedule:
    """Play one schedule, without one of the protections."""
    world = Schedule(Random(seed))
    if without:
        setattr(world, without, False)
    _begin(world)
    for _ in range(steps):
        world.clock += 0.5
        STEPS[int(world.random.random() * len(STEPS))](world)
    return world


def _begin(world: Schedule) -> None:
    world.roots = [table("r0"), table("r1")][: 1 + (world.random.random() < 0.5)]
    first = Asking("j0", list(world.roots), table("t0"))
    second = Asking(
        "j1",
        [table("t0")] if world.random.random() < 0.5 else [world.roots[0], table("t0")],
        table("t1"),
    )
    world.jobs = [first, second]
    world.commits = {root: [] for root in world.roots}
    world.known = dict.fromkeys(world.roots, 0)
    world.lake = {asking.writes: {} for asking in world.jobs}
    world.log = [facts.GroupDeclared(GROUP, tuple(world.roots), world.now())]
    world.log += [_started(world, asking) for asking in world.jobs]


def _started(world: Schedule, asking: Asking) -> facts.RunStarted:
    reads, writes = tuple(asking.reads), (asking.writes,)
    return facts.RunStarted(job(asking.name), _run(asking), world.now(), GROUP, reads, writes)


def _run(asking: Asking) -> str:
    return f"{asking.name}/{asking.run}"


def fold(world: Schedule, server: Server) -> Model:
    """The server's model with all that is in the log."""
    for fact in world.log[server.seq :]:
        apply(server.model, fact)
    server.seq = len(world.log)
    return server.model


def commit_root(world: Schedule) -> None:
    """An ingest job commits; it knows nothing of barriers."""
    root = world.random.choice(world.roots)
    world.commits[root].append(world.snapshot(root))


def hear_of_root(world: Schedule) -> None:
    """The events of some commits arrive."""
    for root in world.roots:
        world.known[root] = world.random.randint(world.known[root], len(world.commits[root]))


def look(world: Schedule) -> None:
    """A server looks for what is due, without a lock; nothing may come of what it saw."""
    server = world.server()
    fold(world, server)
    server.heads = {
        root: world.commits[root][known - 1] for root, known in world.known.items() if known
    }


def cut(world: Schedule) -> None:
    """A server cuts barriers under the lock, on the newest model.

    Without the lock, on what it looked at before.
    """
    server = world.server()
    look_at = Server(fold(world, server), heads=_heads(world)) if world.locked else server
    now = world.now()
    for group in to_cut(look_at.model, INTERVAL, now):
        world.log += cut_through(look_at.model, group, look_at.heads, now)
    for root in single_roots(look_at.model):
        world.log += cut_each_commit(
            root, world.commits[root.table][: world.known[root.table]], now
        )


def _heads(world: Schedule) -> dict[Table, str]:
    return {root: world.commits[root][known - 1] for root, known in world.known.items() if known}


def work(world: Schedule) -> None:
    """A job takes its next step: it asks, commits its table, or notes the micro-batch as done."""
    asking = world.random.choice(world.jobs)
    if asking.written is not None:
        checkpoint(asking)
    elif asking.decision is not None and asking.decision.barrier is not None:
        write(world, asking)
    else:
        ask(world, asking)


def ask(world: Schedule, asking: Asking) -> None:
    """A job asks one of the servers what to do."""
    model = fold(world, world.server())
    sources = {source: model.done.get(source, Completions()) for source in asking.reads}
    if world.aligned:
        overdue = model.group(GROUP).overdue(TIMEOUT, world.now())
        asking.decision = decide(sources, asking.position, overdue)
    else:
        newest = {
            source: done.of[done.last] for source, done in sources.items() if done.last is not None
        }
        barrier = max((one.barrier for one in newest.values()), default=None)
        if len(newest) == len(sources) and barrier is not None and barrier > (asking.position or 0):
            read = tuple((source, one.snapshot) for source, one in newest.items())
            asking.decision = Decision("CHECKPOINT", barrier, (), read)


def write(world: Schedule, asking: Asking) -> None:
    """A job that was told a barrier commits its table, unless the table has that barrier already."""
    decision = asking.decision
    assert decision is not None
    assert decision.barrier is not None
    has = world.lake[asking.writes].get(decision.barrier)
    made = has if has is not None and world.looks else world.snapshot(asking.writes)
    world.twice += has is not None and made != has
    world.lake[asking.writes][decision.barrier] = made
    used = tuple(facts.Used(source, snapshot) for source, snapshot in decision.snapshots)
    at = world.now()
    asking.written = facts.BarrierCommitted(
        job(asking.name),
        _run(asking),
        GROUP,
        decision.barrier,
        at,
        at,
        (facts.WrittenSnapshot(asking.writes, made),),
        used,
    )


def checkpoint(asking: Asking) -> None:
    """Spark notes the micro-batch as done; its event waits to be sent."""
    assert asking.written is not None
    asking.position = asking.written.barrier
    asking.untold.append(asking.written)
    asking.decision = asking.written = None


def tell(world: Schedule) -> None:
    """An event arrives: not always the oldest one, and some come twice."""
    asking = world.random.choice(world.jobs)
    if asking.untold:
        world.log.append(asking.untold[0])
        if world.random.random() < 0.7:
            asking.untold.popleft()
        else:
            asking.untold.rotate(-1)


def crash_job(world: Schedule) -> None:
    """A job dies and starts again: what it was told and had not checkpointed is gone.

    What it had spooled is not.
    """
    asking = world.random.choice(world.jobs)
    asking.run += 1
    asking.decision = asking.written = None
    world.log.append(_started(world, asking))


def crash_server(world: Schedule) -> None:
    """A server dies and starts again with nothing."""
    world.servers[world.random.random() < 0.5] = Server()


def roll_back(world: Schedule) -> None:
    """Somebody carries out a rollback plan; events of before may still be on their way."""
    model = fold(world, world.server())
    asking = world.random.choice(world.jobs)
    if not world.lake[asking.writes] or world.random.random() < 0.5:
        return
    try:
        wanted = plan(model, asking.writes, world.random.choice(sorted(world.lake[asking.writes])))
    except RefusedError:
        return
    barrier = wanted.barrier or 0
    world.generation += 1
    at = world.now() if world.dated else float("-inf")
    world.log.append(facts.RolledBack(GROUP, wanted.tables, barrier, at))
    for other in world.jobs:
        if other.writes in wanted.tables:
            world.lake[other.writes] = {
                b: s for b, s in world.lake[other.writes].items() if b <= barrier
            }
            other.position = barrier or None
            other.decision = other.written = None


STEPS: tuple[Callable[[Schedule], None], ...] = (
    *(commit_root,) * 4,
    *(hear_of_root,) * 4,
    *(look,) * 3,
    *(cut,) * 5,
    *(work,) * 20,
    *(tell,) * 10,
    crash_job,
    crash_server,
    roll_back,
)


def faults(world: Schedule) -> list[str]:
    """Return the forbidden entries of the log.

    Two snapshots for one barrier, or a barrier that read others than it says.
    """
    found = ["a table was written twice for one barrier"] * world.twice
    model, seen = Model(), dict[tuple[Table, int, int], str]()
    for fact in world.log:
        apply(model, fact)
        if isinstance(fact, facts.RootsCut):
            shown = [(made.table, fact.barrier, made.snapshot) for made in fact.snapshots]
        elif isinstance(fact, facts.BarrierCommitted):
            shown = [(made.table, fact.barrier, made.snapshot) for made in fact.written]
        else:
            continue
        for of, barrier, snapshot in shown:
            accepted = model.done[of].of.get(barrier)
            key = (of, barrier, model.group(GROUP).generation)
            if (
                accepted is not None
                and accepted.snapshot == snapshot
                and seen.setdefault(key, snapshot) != snapshot
            ):
                found.append(f"{of[1]}: {seen[key]} and {snapshot} at barrier {barrier}")
    return found + misaligned(model)


def misaligned(model: Model) -> list[str]:
    """Barriers that read another snapshot of an input than the input has at that barrier."""
    return [
        f"{of[1]}: barrier {barrier} read {used.snapshot}"
        for of, done in model.done.items()
        for barrier, made in done.of.items()
        for used in made.used
        if barrier not in model.done[used.table]
        or model.done[used.table].of[barrier].snapshot != used.snapshot
    ]
