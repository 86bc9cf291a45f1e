"""Play a world's history into model and oracle, and compare what both say after every fact."""

from collections.abc import Callable, Sequence
from random import Random

from strandline.core.versions import facts
from strandline.core.versions.apply import apply
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.rollback import plan
from strandline.core.versions.strong_weak import strong, weak
from strandline.errors import RefusedError
from worlds.barriers.history import GROUP, World, history, recomputed, run_id, small_world
from worlds.barriers.oracle import Oracle

Outcome = int | str


def play(
    seed: int,
    after_each: Callable[[World, Model, Oracle], None],
    steps: int = 25,
    overwrites: float = 0.0,
) -> tuple[World, Model]:
    """One random history; `after_each` looks at world, model and oracle after every fact."""
    world, model, oracle = small_world(Random(seed)), Model(), Oracle()
    world.overwrites = overwrites
    for fact in history(world, steps):
        deliver(fact, model, oracle)
        after_each(world, model, oracle)
        if world.random.random() < 0.03:
            for further in rolled_back(world, model):
                deliver(further, model, oracle)
            after_each(world, model, oracle)
    return world, model


def deliver(fact: facts.Fact, model: Model, oracle: Oracle) -> None:
    """The collector and the oracle learn of a fact."""
    apply(model, fact)
    oracle.take(fact)


def rolled_back(world: World, model: Model) -> list[facts.Fact]:
    """Carry out a rollback plan in the world, when one can be made.

    The facts that a collector sees of it.
    """
    worker = world.random.choice(world.workers)
    known = sorted(world.truth[worker.writes].keys() & model.group(GROUP).births.keys())
    if not model.is_tracked(worker.writes) or not known:
        return []
    wanted = plan(model, worker.writes, world.random.choice(known))
    barrier = wanted.barrier or 0
    if set(wanted.tables) != world_descendants(world, worker.writes):
        return []  # a job that the collector has not heard of yet
    world.rollbacks += 1
    stopped: list[facts.Fact] = []
    for other in world.workers:
        if other.writes in wanted.tables:
            stopped.append(facts.RunEnded(other.job, run_id(other), world.tick(), "ABORT"))
            other.state = "stopped" if other.state == "running" else other.state
            world.truth[other.writes] = {
                b: s for b, s in world.truth[other.writes].items() if b <= barrier
            }
            other.position, other.head = barrier, world.truth[other.writes].get(barrier)
    return [*stopped, facts.RolledBack(GROUP, wanted.tables, barrier, world.tick())]


def world_descendants(world: World, wanted: Table) -> set[Table]:
    """Every table that the world's started jobs make from one."""
    found = {wanted}
    for worker in world.workers:
        if worker.run and found & set(worker.reads):
            found.add(worker.writes)
    return found


def strong_of(model: Model, table: Table) -> Outcome:
    """The strong barrier, or why there is none."""
    try:
        return strong(model, [table])[0].barrier
    except RefusedError as error:
        return error.code


def strong_barriers_of(model: Model, tables: list[Table]) -> set[int]:
    """Return the barriers in the strong answer over several tables; none where it is refused."""
    try:
        return {reading.barrier for reading in strong(model, tables)}
    except RefusedError:
        return set()


def strong_by_definition(oracle: Oracle, table: Table) -> Outcome:
    """The same, from the definitions."""
    if not oracle.tracked(table) and not oracle.done.get(table):
        return "untracked"
    version = oracle.version(table)
    return "no_version" if version is None else version


def weak_of(model: Model, tables: list[Table]) -> dict[Table, int] | str:
    """The weak barriers of the tracked ones among `tables`, or why there are none."""
    try:
        return {reading.table: reading.barrier for reading in weak(model, tables)}
    except RefusedError as error:
        return error.code


def weak_by_definition(oracle: Oracle, tables: list[Table]) -> dict[Table, int] | str:
    """The same, from the definitions."""
    tracked = {table for table in tables if oracle.tracked(table) or oracle.done.get(table)}
    common = oracle.common(tracked) if tracked else None
    if tracked and common is None:
        return "no_version"
    return {table: common for table in tracked if common is not None}


def shows_the_truth(world: World, model: Model, table: Table, query: Sequence[Table] = ()) -> bool:
    """Return whether a table's content in the strong answer is what its base tables come to.

    `query` are the tables of the question, the table among them; the table alone unless given.
    """
    readings = strong(model, query or [table])
    one = next(reading for reading in readings if reading.table == table)
    return world.content[one.snapshot] == recomputed(world, table, one.barrier)
