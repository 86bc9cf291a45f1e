"""A bounded answer is within its bound or an error."""

from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import Reading, refuse_stale, strong
from strandline.errors import RefusedError
from worlds.barriers.history import World
from worlds.barriers.oracle import Oracle
from worlds.barriers.running import play
from worlds.barriers.sizes import each_size


def first_not_shown(oracle: Oracle, barrier: int) -> float | None:
    """Return the birth of the first barrier after `barrier`."""
    later = {b for done in oracle.done.values() for b in done if b > barrier}
    return oracle.birth(min(later)) if later else None


@each_size
def test_a_bounded_answer_is_within_its_bound_or_an_error(seeds: range) -> None:
    answered = refused = 0

    def check(world: World, model: Model, oracle: Oracle) -> None:
        nonlocal answered, refused
        one: Table = world.random.choice(sorted(world.truth))
        now, bound = world.clock + 5, world.random.choice((0.0, 3.0, 10.0, 100.0))
        try:
            readings: list[Reading] = strong(model, [one])
        except RefusedError:
            return
        born = first_not_shown(oracle, readings[0].barrier)
        late = 0.0 if born is None else max(0.0, now - born)
        assert late == readings[0].lag(now)
        try:
            refuse_stale(readings, bound, now)
            answered += 1
            assert late <= bound
        except RefusedError as error:
            refused += error.code == "lag"
            assert late > bound

    for seed in seeds:
        play(seed, check, overwrites=seed % 2 / 5)
    assert answered > len(seeds)
    assert refused > len(seeds)
