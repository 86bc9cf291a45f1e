"""Strong and weak versions.

Invariants over random histories against the definitions, and controls that must fire.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from worlds.barriers.history import World, history, small_world, table
from worlds.barriers.oracle import Oracle
from worlds.barriers.running import (
    Outcome,
    play,
    shows_the_truth,
    strong_barriers_of,
    strong_by_definition,
    strong_of,
    weak_by_definition,
    weak_of,
)
from worlds.barriers.sizes import each_size


@each_size
def test_answers_over_random_histories_match_the_definitions(seeds: range) -> None:
    """One barrier per pipeline, true contents, V never goes back, strong <= weak <= latest."""
    for seed in seeds:
        play(seed, checking(seed))


def checking(seed: int) -> Callable[[World, Model, Oracle], None]:
    """A check that remembers what was answered before."""
    answered: dict[Table, tuple[int, int]] = {}

    def check(world: World, model: Model, oracle: Oracle) -> None:
        for one in world.truth:
            outcome = strong_of(model, one)
            assert outcome == strong_by_definition(oracle, one), f"history {seed}: {one}"
            if one in answered and answered[one][0] == oracle.generation:
                assert isinstance(outcome, int), f"history {seed}: {one} turned into none"
            if isinstance(outcome, int):
                version = (oracle.generation, outcome)
                assert version >= answered.get(one, version), f"history {seed}: {one} went back"
                if answered.get(one) != version:
                    assert shows_the_truth(world, model, one), f"history {seed}: {one}"
                answered[one] = version
        query = world.random.sample(sorted(world.truth), min(2, len(world.truth)))
        weak = weak_of(model, query)
        assert weak == weak_by_definition(oracle, query), f"history {seed}: {query}"
        check_order(model, query, weak, seed)

    return check


def check_order(model: Model, query: list[Table], weak: dict[Table, int] | str, seed: int) -> None:
    """Strong <= weak <= latest, table by table, of one query.

    A weak answer shows one barrier, with tables that join too.
    """
    if isinstance(weak, dict):
        outcomes = strong_barriers_of(model, sorted(weak))
        assert len(set(weak.values())) <= 1, f"history {seed}: {query}"
        for one, barrier in weak.items():
            assert all(outcome <= barrier for outcome in outcomes), f"history {seed}: {one}"
            assert barrier <= max(model.done[one].order), f"history {seed}: {one}"


@each_size
def test_an_answer_over_two_tables_shows_one_barrier(seeds: range) -> None:
    """Over two parts of a group that no job connects, too; contents are true, V never goes back."""
    apart = 0
    for seed in seeds:
        check = PairCheck(seed)
        play(seed, check)
        apart += check.apart
    assert apart > 3 * len(seeds)


@dataclass
class PairCheck:
    """A check of the strong answer over each two tables, which remembers what was answered before.

    `apart` counts the answers over two tables whose own versions differ.
    """

    seed: int
    apart: int = 0
    answered: dict[tuple[Table, Table], tuple[int, int]] = field(default_factory=dict)

    def __call__(self, world: World, model: Model, oracle: Oracle) -> None:
        """Ask over each two tables of the world."""
        for pair in combinations(sorted(world.truth), 2):
            barriers = strong_barriers_of(model, list(pair))
            if barriers:
                self.compare(world, model, pair, barriers, oracle.generation)

    def compare(
        self,
        world: World,
        model: Model,
        pair: tuple[Table, Table],
        barriers: set[int],
        generation: int,
    ) -> None:
        """Compare an answer with those of one table, with the weak one and with the one before."""
        where = f"history {self.seed}: {pair}"
        assert len(barriers) == 1, where
        version = (generation, max(barriers))
        alone = [strong_of(model, one) for one in pair]
        weak = weak_of(model, list(pair))
        self.apart += len(set(alone)) > 1

        assert all(isinstance(one, int) and max(barriers) <= one for one in alone), where
        assert isinstance(weak, dict), where
        assert max(barriers) <= min(weak.values()), where
        assert version >= self.answered.get(pair, version), f"{where} went back"
        if version != self.answered.get(pair):
            assert all(shows_the_truth(world, model, one, pair) for one in pair), where
        self.answered[pair] = version


def test_control_the_version_of_each_pipeline_shows_two_barriers() -> None:
    """Each table at the version of its own part: the rule before."""
    pairs = Counter[bool]()

    def check(world: World, model: Model, _: Oracle) -> None:
        for pair in combinations(sorted(world.truth), 2):
            versions = [strong_of(model, one) for one in pair]
            if all(isinstance(version, int) for version in versions):
                pairs[len(set(versions)) > 1] += 1

    for seed in range(60):
        play(seed, check)

    assert pairs[True] > pairs[False] / 20


def violations(
    make: Callable[[], Oracle], wrong: Callable[[Oracle, Table], Outcome], histories: int = 150
) -> int:
    """Count the answers of a wrong system that go back.

    Also those that name a barrier which a table of the component lacks.
    """
    found = 0
    for seed in range(histories):
        world, oracle, seen = small_world(Random(seed)), make(), dict[Table, int]()
        for fact in history(world, 25):
            oracle.take(fact)
            for one in world.truth:
                answer = wrong(oracle, one)
                if isinstance(answer, int):
                    found += answer < seen.get(one, answer) or answer not in oracle.done[one]
                    seen[one] = answer
    return found


def test_rules_show_no_violation() -> None:
    """The baseline for the controls below."""
    assert violations(Oracle, strong_by_definition) == 0


def test_control_versions_go_back_where_members_count_at_every_barrier() -> None:
    """Jobs that count at barriers of before drag everybody's version back."""
    assert violations(lambda: Oracle(from_barrier=False), strong_by_definition) > 50


def test_control_versions_go_back_without_membership() -> None:
    """A job that ends removes its table and drags the version back when it returns."""
    assert violations(lambda: Oracle(from_barrier=False, place=False), strong_by_definition) > 50


def test_control_minimum_of_maxima_picks_barriers_that_a_table_lacks() -> None:
    """The proposal's rule, with skipped checkpoints."""

    def minimum_of_latest(oracle: Oracle, one: Table) -> Outcome:
        if isinstance(outcome := strong_by_definition(oracle, one), str):
            return outcome
        return min(max(oracle.done[other]) for other in oracle.pipeline(one, max(oracle.born)))

    assert violations(Oracle, minimum_of_latest) > 5


def test_worlds_cover_every_promised_case() -> None:
    """Late, repeated and reordered facts, stops, takeovers, retirements and rollbacks all occur."""
    kinds: set[str] = set()
    rollbacks = 0
    for seed in range(60):
        world, model = play(seed, lambda *_: None)
        rollbacks += world.rollbacks
        kinds |= {worker.state for worker in world.workers}
        kinds |= {"takeover" for place in model.places.values() if len(place.runs) > 1}

    assert kinds >= {"running", "stopped", "retired", "takeover"}
    assert rollbacks > 6
    assert table("root0") == ("lake", "root0")
