"""More simulated worlds than tests/store/test_simulation.py plays, and the bugs that its few seeds have to catch.

`make soak` plays STRANDLINE_SOAK_SEEDS (20,000) from STRANDLINE_SOAK_SEED, in a process for each core.
"""

import os

import pytest

from worlds.simulation.planted import BUGS, FOUND_DIRECTLY
from worlds.simulation.running import play, run, run_shares, run_test_with

SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "100000"))
SEEDS = int(os.environ.get("STRANDLINE_SOAK_SEEDS", "20000"))
POINTS = 100  # at which something strikes at least once: a kind of fault, and a statement
DIRECT_TESTS = {
    "retention drops what is used": (
        "tests/store/test_retention.py::test_columns_and_facets_of_runs_that_stay_survive"
    ),
}


def test_soak_worlds_end_as_the_oracle_expects() -> None:
    assert play(301, 2_000) >= POINTS


def test_the_seeds_of_the_short_run_catch_all_bugs_but_those_with_a_test_of_their_own() -> None:
    result = run("worlds.simulation", "1", "300", "--plant", "all")

    caught = len(BUGS) - len(FOUND_DIRECTLY)
    survived = ", ".join(FOUND_DIRECTLY)
    assert (
        result.stdout.splitlines()[-1]
        == f"{caught} of {len(BUGS)} bugs caught; survived: {survived}"
    ), result.stderr


@pytest.mark.parametrize("bug", FOUND_DIRECTLY)
def test_a_test_of_its_own_catches_a_bug_that_few_worlds_reach(bug: str) -> None:
    result = run_test_with(bug, DIRECT_TESTS[bug])

    assert result.returncode == 1, result.stdout + result.stderr
    assert "failed" in result.stdout.splitlines()[-1]


@pytest.mark.soak
def test_every_world_ends_as_the_oracle_expects() -> None:
    assert run_shares("worlds.simulation", SEED, SEEDS) == []
