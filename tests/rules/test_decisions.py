"""The decision before a checkpoint matches the definition."""

from random import Random

from strandline.core.versions.checkpoint import FEW, Decision, decide
from strandline.core.versions.completions import Completion, Completions
from worlds.barriers.history import table
from worlds.barriers.sizes import each_size


def done(barriers: set[int], name: str) -> Completions:
    """A table that completed these barriers."""
    made = {b: Completion(b, f"{name}@{b}", None, None, 0.0, float(b)) for b in barriers}
    return Completions(made, sorted(barriers))


def by_definition(sources: dict[str, set[int]], position: int, overdue: set[int]) -> Decision:
    """N = min { b > c : b in done(s) for all s, not given up }.

    Before it every b that some source has is aborted.
    """
    common = {b for b in set.intersection(*sources.values()) if b > position}
    left = common - overdue
    wanted = min(left) if left and len(left) <= FEW else max(common, default=None)
    if wanted is None:
        return Decision("PROCEED")
    aborted = tuple(sorted(b for b in set.union(*sources.values()) if position < b < wanted))
    snapshots = tuple((table(name), f"{name}@{wanted}") for name in sorted(sources))
    return Decision("ABORT" if aborted else "CHECKPOINT", wanted, aborted, snapshots)


@each_size
def test_decisions_match_the_definition(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        sources = {
            f"s{n}": set(random.sample(range(1, 12), random.randint(1, 9)))
            for n in range(random.randint(1, 3))
        }
        position, overdue = (
            random.randint(0, 8),
            set(random.sample(range(1, 12), random.choice((0, 2, 9)))),
        )
        told = decide(
            {table(name): done(found, name) for name, found in sources.items()}, position, overdue
        )

        assert told == by_definition(sources, position, overdue), f"history {seed}"


def test_a_job_without_sources_proceeds() -> None:
    assert decide({}, None) == Decision("PROCEED")
