"""A collector killed at any write or sync, half of the times by a power cut.

`make soak` kills more, in a process for each core: STRANDLINE_SOAK_KILLS (50,000), or as many as
fit into STRANDLINE_SOAK_MINUTES (60); STRANDLINE_SOAK_SEED is the first story.
"""

import os
import re

import pytest

from worlds.simulation.planted import KILLS_BUGS
from worlds.simulation.running import run, run_shares
from worlds.simulation.tracing import may_trace

MINUTES = float(os.environ.get("STRANDLINE_SOAK_MINUTES", "60"))
KILLS = int(os.environ.get("STRANDLINE_SOAK_KILLS", "50000"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "100000"))
CI_KILLS = 300
KINDS = {"write", "sync", "truncate"}


@pytest.fixture(autouse=True, scope="module")
def tracing() -> None:
    """Skip where children may not be traced."""
    if not may_trace():
        pytest.skip(
            "this machine lets no process trace its child, or its system calls are not known"
        )


def test_thousand_kills_lose_nothing() -> None:
    result = run("worlds.simulation.kills", "1", str(CI_KILLS))
    print(result.stdout)

    assert result.returncode == 0, result.stdout + result.stderr
    line = re.match(r"(\d+) kills in .* (\d+) with the machine;", result.stdout)
    assert line
    assert int(line[1]) >= CI_KILLS
    assert int(line[2]) > CI_KILLS / 3
    assert set(re.findall(r"'(\w+) world\.db", result.stdout)) == KINDS


def test_kills_catch_every_planted_bug() -> None:
    result = run("worlds.simulation.kills", "100", "300", "--plant", "all")

    assert result.returncode == 0, result.stdout + result.stderr
    assert (
        result.stdout.splitlines()[-1]
        == f"{len(KILLS_BUGS)} of {len(KILLS_BUGS)} bugs caught; survived: none"
    )


@pytest.mark.soak
def test_soak_kills_lose_nothing() -> None:
    assert run_shares("worlds.simulation.kills", SEED, KILLS, "--seconds", str(MINUTES * 60)) == []
