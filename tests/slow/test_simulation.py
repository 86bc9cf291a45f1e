"""The collector in a simulated world (tests/worlds/simulation): every seed ends as the oracle says, and planted bugs do not.

`make soak` runs more, in a process for each core: STRANDLINE_SOAK_MINUTES, STRANDLINE_SOAK_SEEDS (as many as fit),
STRANDLINE_SOAK_SEED (the first one).
"""

import os
import re

import pytest

from worlds.simulation.planted import BUGS, KILLS_BUGS
from worlds.simulation.running import ROOT, run, run_shares

MINUTES = float(os.environ.get("STRANDLINE_SOAK_MINUTES", "10"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "100000"))
SEEDS = int(os.environ.get("STRANDLINE_SOAK_SEEDS", "1000000"))
CI_SEEDS, SHARE = 5_000, 2_500  # in shares, as a suite may run on several cores
POINTS = 40  # at which something has struck at least once: a kind of fault, and a statement


@pytest.mark.parametrize("first", range(1, CI_SEEDS, SHARE))
def test_every_world_ends_as_the_oracle_says(first: int) -> None:
    told = run("worlds.simulation", str(first), str(SHARE))
    print(told.stdout)

    assert told.returncode == 0, told.stdout + told.stderr
    found = re.match(rf"(\d+) seeds from {first}, .* (\d+) points of fault;", told.stdout)
    assert found
    assert int(found[1]) == SHARE
    assert int(found[2]) >= POINTS


def test_every_planted_bug_is_caught() -> None:
    """By far fewer seeds than the suite plays."""
    told = run("worlds.simulation", "1000", "2000", "--plant", "all")

    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout.splitlines()[-1] == f"{len(BUGS)} of {len(BUGS)} bugs caught; survived: none"


def test_a_failing_seed_is_the_same_story_again() -> None:
    first, again = (run("worlds.simulation", "1", "400", "--plant", "offset moves blindly").stdout for _ in range(2))

    assert "the offset of" in first
    assert first == again


def test_there_are_thirty_bugs_and_each_has_its_place() -> None:
    for name, bug in {**BUGS, **KILLS_BUGS}.items():
        source = (ROOT / "collector" / bug.module.replace(".", "/")).with_suffix(".py").read_text()
        assert source.count(bug.right) == 1, name
        compile(source.replace(bug.right, bug.wrong), name, "exec")
    assert len(BUGS) >= 30


@pytest.mark.soak
def test_many_worlds_end_as_the_oracle_says() -> None:
    assert run_shares("worlds.simulation", SEED, SEEDS, "--seconds", str(MINUTES * 60)) == []
