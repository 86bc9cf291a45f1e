"""End-to-end delay: its parts sum to it, none is negative, and no table is ahead of what it is made from."""

from itertools import pairwise

from strandline.core.versions.delays import delay, staleness
from strandline.core.versions.model import Model
from worlds.barriers.history import GROUP, World
from worlds.barriers.oracle import Oracle
from worlds.barriers.running import play
from worlds.barriers.sizes import each_size


@each_size
def test_parts_sum_to_the_delay_and_no_table_is_ahead_of_its_inputs(seeds: range) -> None:
    for seed in seeds:
        _, model = play(seed, lambda *_: None)
        for one, done in model.done.items():
            for barrier in done.of if model.is_tracked(one) else ():
                found = delay(model, one, barrier)
                assert abs(sum(part.seconds for part in found.parts) - found.seconds) < 1e-6, (
                    f"history {seed}: {one}"
                )
                assert all(part.seconds >= 0 for part in found.parts), f"history {seed}: {one}"
                inputs = [source for source in model.sources(one) if barrier in model.done[source]]
                assert all(
                    delay(model, source, barrier).seconds <= found.seconds for source in inputs
                )


@each_size
def test_delay_lasts_from_the_barriers_birth_to_the_commit(seeds: range) -> None:
    def check(world: World, model: Model, oracle: Oracle) -> None:
        one = world.random.choice(sorted(world.truth))
        for barrier in oracle.done.get(one, ()) if model.is_tracked(one) else ():
            assert model.group(GROUP).births[barrier] == oracle.birth(barrier)
            assert model.done[one].of[barrier].committed == oracle.committed(one, barrier)

    for seed in seeds:
        play(seed, check, overwrites=seed % 2 / 5)


@each_size
def test_staleness_grows_only_while_a_barrier_is_missing(seeds: range) -> None:
    for seed in seeds:
        _, model = play(seed, lambda *_: None)
        for one in model.done:
            if model.is_tracked(one):
                ages = [staleness(model, one, now) for now in (100.0, 200.0, 300.0)]
                assert all(age.seconds >= 0 for age in ages)
                assert all(before.seconds <= after.seconds for before, after in pairwise(ages))
                assert all(age.local_seconds <= age.seconds for age in ages), (
                    f"history {seed}: {one}"
                )
                assert (ages[-1].barrier is None) == (newest(model, one) == model.done[one].last)


def newest(model: Model, one: tuple[str, str]) -> int | None:
    """The newest barrier of a table's group."""
    return model.group(model.group_of[one]).newest
