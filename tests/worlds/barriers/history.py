"""A small world of streaming jobs that truly compute, and tells of it late, twice and out of order.

Every snapshot has a content: a base table's is random, a derived one is computed from what the
micro-batch really read. The world knows what is true; what it delivers is a stream of facts as a
collector would see them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from strandline.core.versions import facts
from strandline.core.versions.facts import Job, Table

GROUP = "bank"


def table(name: str) -> Table:
    return ("lake", name)


def job(name: str) -> Job:
    return ("jobs", name)


@dataclass
class Worker:
    """A job as it really is."""

    job: Job
    reads: list[Table]
    writes: Table
    state: str = "new"
    run: int = 0
    position: int = 0
    head: str | None = None


@dataclass
class World:
    """Tables, jobs and what is on its way to the collector.

    `overwrites`: how often a micro-batch writes again.

    `moves`: how often a base table has a new snapshot at a cut.
    """

    random: Random
    roots: list[Table] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    barrier: int = 0
    clock: float = 0.0
    truth: dict[Table, dict[int, str]] = field(default_factory=dict)
    content: dict[str, int] = field(default_factory=dict)
    waiting: list[facts.Fact] = field(default_factory=list)
    rollbacks: int = 0
    overwrites: float = 0.0
    moves: float = 0.7

    def tick(self) -> float:
        """A time that never comes twice."""
        self.clock += 1.0
        return self.clock


def small_world(random: Random, jobs: int = 5) -> World:
    """One to three base tables, and jobs that each read one to three tables made before theirs."""
    world = World(random)
    world.roots = [table(f"root{n}") for n in range(random.randint(1, 3))]
    world.truth = {root: {} for root in world.roots}
    for number in range(random.randint(1, jobs)):
        known = [*world.roots, *(worker.writes for worker in world.workers)]
        reads = random.sample(known, random.randint(1, min(3, len(known))))
        world.workers.append(Worker(job(f"job{number}"), reads, table(f"table{number}")))
        world.truth[table(f"table{number}")] = {}
    return world


def history(world: World, steps: int) -> Iterator[facts.Fact]:
    """Facts as they arrive: most at once, some late, some twice."""
    yield facts.GroupDeclared(GROUP, tuple(world.roots), world.tick())
    for _ in range(steps):
        happened = act(world)
        for fact in happened:
            if world.random.random() < 0.2:
                world.waiting.append(fact)
            else:
                yield fact
            if world.random.random() < 0.1:
                world.waiting.append(fact)
        while world.waiting and world.random.random() < 0.3:
            yield world.waiting.pop(world.random.randrange(len(world.waiting)))
    world.random.shuffle(world.waiting)
    while world.waiting:
        yield world.waiting.pop()


def act(world: World) -> list[facts.Fact]:
    """Something happens in the world."""
    dice = world.random.random()
    if dice < 0.25:
        return [cut(world)]
    worker = world.random.choice(world.workers)
    if (
        worker.state == "new"
        or (worker.state == "stopped" and dice < 0.8)
        or (worker.state == "retired")
    ):
        return start(world, worker) if worker.state != "retired" or dice > 0.8 else []
    if worker.state == "running" and dice < 0.9:
        return commit(world, worker)
    if worker.state == "running" and dice < 0.96:
        return [stop(world, worker)]
    if worker.state == "running" and dice < 0.98:
        return start(world, worker)  # a takeover, without an end of the run before
    return [retire(world, worker)]


def cut(world: World) -> facts.Fact:
    """The coordinator cuts the next barrier through all base tables.

    Some have a new snapshot, some the same.
    """
    world.barrier += 1
    made = []
    for root in world.roots:
        before = world.truth[root].get(world.barrier - 1)
        if before is None or world.random.random() < world.moves:
            snapshot = f"{root[1]}@{world.barrier}"
            world.content[snapshot] = world.random.getrandbits(32)
        else:
            snapshot = before
        world.truth[root][world.barrier] = snapshot
        made.append(facts.WrittenSnapshot(root, snapshot, before))
    return facts.RootsCut(GROUP, world.barrier, tuple(made), world.tick())


def start(world: World, worker: Worker) -> list[facts.Fact]:
    """A new run; sometimes announced over REST before."""
    worker.run += 1
    worker.state = "running"
    at, reads, writes = world.tick(), tuple(worker.reads), (worker.writes,)
    announced: list[facts.Fact] = []
    if world.random.random() < 0.3:
        announced = [facts.JobRegistered(worker.job, reads, writes, at, GROUP)]
    return [
        *announced,
        facts.RunStarted(worker.job, run_id(worker), world.tick(), GROUP, reads, writes),
    ]


def run_id(worker: Worker) -> str:
    """The id of the worker's current run."""
    return f"{worker.job[1]}-run{worker.run}"


def next_barrier(world: World, worker: Worker) -> int | None:
    """By definition: the least barrier after the position that all inputs completed."""
    common = set.intersection(*(set(world.truth[source]) for source in worker.reads))
    return min((barrier for barrier in common if barrier > worker.position), default=None)


def commit(world: World, worker: Worker) -> list[facts.Fact]:
    """The worker takes its next barrier, commits it, sometimes with an overwrite, or aborts it and goes past it."""
    barrier = next_barrier(world, worker)
    if barrier is None:
        return []
    worker.position = barrier
    if world.random.random() < 0.12:
        return []
    first = written(world, worker, barrier, f"{worker.writes[1]}@{barrier}#{world.rollbacks}")
    if not world.overwrites or world.random.random() >= world.overwrites:
        return [first]
    return [
        first,
        written(
            world, worker, barrier, f"{worker.writes[1]}@{barrier}#{world.rollbacks}, overwritten"
        ),
    ]


def written(world: World, worker: Worker, barrier: int, snapshot: str) -> facts.Fact:
    """The worker's table gets a snapshot for a barrier; it may have one for it already."""
    started, used = world.tick(), {source: world.truth[source][barrier] for source in worker.reads}
    world.content[snapshot] = derived(
        worker, [world.content[used[source]] for source in worker.reads]
    )
    made = facts.WrittenSnapshot(worker.writes, snapshot, worker.head)
    worker.head = snapshot
    world.truth[worker.writes][barrier] = snapshot
    read = tuple(facts.Used(source, used[source]) for source in worker.reads)
    return facts.BarrierCommitted(
        worker.job,
        run_id(worker),
        GROUP,
        barrier,
        started,
        world.tick(),
        (made,),
        read,
        batch=barrier,
    )


def derived(worker: Worker, contents: list[int]) -> int:
    """Compute a worker's output from the contents of its inputs."""
    return hash((worker.job[1].encode(), *contents)) & 0xFFFFFFFF


def stop(world: World, worker: Worker) -> facts.Fact:
    worker.state = "stopped"
    return facts.RunEnded(worker.job, run_id(worker), world.tick(), "FAIL")


def retire(world: World, worker: Worker) -> facts.Fact:
    """The job gives up its place; its table stays as it is."""
    worker.state = "retired"
    return facts.JobRetired(worker.job, world.tick(), "unregistered")


def recomputed(world: World, wanted: Table, barrier: int) -> int:
    """content(T, b) from the base tables at b alone, by the definition of every job on the way."""
    if wanted in world.roots:
        return world.content[world.truth[wanted][barrier]]
    worker = next(worker for worker in world.workers if worker.writes == wanted)
    return derived(worker, [recomputed(world, source, barrier) for source in worker.reads])
