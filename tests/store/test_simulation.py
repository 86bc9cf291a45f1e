"""The collector in a simulated world (tests/worlds/simulation): every seed ends as the oracle says.

Few seeds are enough to catch the planted bugs, which tests/slow/test_simulation.py checks: it also
plays more.
"""

import pytest

from worlds.simulation.planted import BUGS, FOUND_DIRECTLY, KILLS_BUGS
from worlds.simulation.running import ROOT, play, run

POINTS = 40  # at which something strikes at least once: a kind of fault, and a statement


def test_three_hundred_worlds_end_as_the_oracle_says() -> None:
    assert play(1, 300) >= POINTS


@pytest.mark.slow
def test_failing_seed_is_reproducible() -> None:
    first, again = (
        run("worlds.simulation", "1", "400", "--plant", "offset moves blindly").stdout
        for _ in range(2)
    )

    assert "the offset of" in first
    assert first == again


def test_every_planted_bug_has_its_place() -> None:
    for name, bug in {**BUGS, **KILLS_BUGS}.items():
        source = (ROOT / "collector" / bug.module.replace(".", "/")).with_suffix(".py").read_text()
        compile(bug.planted_in(source), name, "exec")
    assert (len(BUGS), len(KILLS_BUGS)) == (31, 4)
    assert BUGS.keys() >= set(FOUND_DIRECTLY)
