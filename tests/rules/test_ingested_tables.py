"""Groups whose base tables are filled by streams, and that nobody declared."""

from collections.abc import Iterator

from strandline.core.versions import facts
from strandline.core.versions.apply import apply
from strandline.core.versions.facts import Fact, RootsCut, Table
from strandline.core.versions.model import Model
from strandline.core.versions.root_barriers import cut_at, cut_through, to_cut, uncut_steps
from strandline.core.versions.strong_weak import Reading, strong, weak
from strandline.errors import RefusedError
from worlds.barriers.history import GROUP, job
from worlds.barriers.plain import (
    PlainWorld,
    micro_batch,
    plain_world,
    recomputed,
    restart,
    run_batch,
    started,
)
from worlds.barriers.sizes import each_size

STEPS = 60


def history(world: PlainWorld, late: float = 0.3) -> Iterator[Fact]:
    """Streams fill the base tables; plain jobs work below. Commits may arrive late."""
    for root in world.roots:
        yield facts.RunStarted(job(f"to_{root[1]}"), "r", world.tick(), GROUP, (), (root,))
    for one in world.jobs:
        yield started(world, one)
    batches = dict.fromkeys(world.roots, 0)
    waiting: list[Fact] = []
    for _ in range(STEPS):
        dice, root = world.random.random(), world.random.choice(world.roots)
        one = world.random.choice(world.jobs)
        if dice < 0.4:
            yield ingest(world, root, batches[root])
            batches[root] += 1
            continue
        if dice < 0.45:
            told = restart(world, one)
        else:
            told = run_batch(world, one) if one.kind == "batch" else micro_batch(world, one)
        for fact in told:
            if world.random.random() < late:
                waiting.append(fact)
            else:
                yield fact
        while waiting and world.random.random() < 0.3:
            yield waiting.pop(world.random.randrange(len(waiting)))
    yield from waiting


def ingest(world: PlainWorld, root: Table, batch: int) -> Fact:
    """The next micro-batch of the stream that fills a base table."""
    made = world.add(root, world.random.getrandbits(32))
    at = world.tick()
    return facts.BarrierCommitted(
        job(f"to_{root[1]}"), "r", GROUP, batch + 1, at, at, (made,), batch=batch, query="q"
    )


def coordinate(world: PlainWorld, model: Model, times: dict[tuple[Table, str], int]) -> None:
    """Take the barriers that are due; note what each shows."""
    found: list[RootsCut] = []
    for group, stands in uncut_steps(model)[:1]:
        found += cut_at(model, group, stands, times, world.tick())
    if not found and world.random.random() < 0.1:
        heads = {root: line[-1] for root in world.roots if (line := world.lines[root])}
        for group in to_cut(model, 0.0, world.tick()):
            found += cut_through(model, group, heads, world.tick())
    for fact in found:
        apply(model, fact)


def readings(model: Model, tables: list[Table], consistency: str) -> list[Reading]:
    try:
        return strong(model, tables) if consistency == "strong" else weak(model, tables)
    except RefusedError:
        return []


def note_cuts(world: PlainWorld, model: Model) -> None:
    """Let the world's barriers be what the base tables have; a barrier never changes."""
    for root in world.roots:
        for barrier, made in model.done[root].of.items() if root in model.done else ():
            shown = world.cuts.setdefault(barrier, {}).setdefault(root, made.snapshot)
            assert shown == made.snapshot, f"barrier {barrier} of {root} changed"


@each_size
def test_answers_match_the_base_tables_that_streams_fill(seeds: range) -> None:
    several = answers = 0
    for seed in seeds:
        world, model = plain_world(seed), Model()
        times: dict[tuple[Table, str], int] = {}
        answered: dict[Table, int] = {}
        for fact in history(world):
            apply(model, fact)
            for root in world.roots:
                for place, snapshot in enumerate(world.lines[root]):
                    times[root, snapshot] = place
            coordinate(world, model, times)
            note_cuts(world, model)
            several += len(model.group(GROUP).bases) > 1
            for one in sorted(world.lines):
                for reading in readings(model, [one], "strong"):
                    assert reading.barrier >= answered.get(one, 0), f"history {seed}: {one}"
                    answered[one] = reading.barrier
                    assert is_true(world, reading), f"history {seed}: {reading}"
            query = world.random.sample(sorted(world.lines), min(3, len(world.lines)))
            for consistency in ("strong", "weak"):
                together = readings(model, query, consistency)
                answers += len(together) > 1
                assert len({one.barrier for one in together}) <= 1, f"history {seed}"
                assert all(is_true(world, one) for one in together), f"history {seed}: {query}"
    assert several > len(seeds)
    assert answers > len(seeds)


def is_true(world: PlainWorld, reading: Reading) -> bool:
    return world.content[reading.snapshot] == recomputed(world, reading.table, reading.barrier)
