"""The collector in a simulated world (tests/support/fault_world): every seed ends as the oracle says, and planted bugs do not.

`make soak` runs more, in a process for each core: STRANDLINE_SOAK_MINUTES, STRANDLINE_SOAK_SEEDS (as many as fit),
STRANDLINE_SOAK_SEED (the first one).
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fault_world.planted import BUGS

ROOT = Path(__file__).resolve().parents[2]
MINUTES = float(os.environ.get("STRANDLINE_SOAK_MINUTES", "10"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1000"))
SEEDS = int(os.environ.get("STRANDLINE_SOAK_SEEDS", "1000000"))
SAMPLE = ("cache survives a rollback", "offset moves blindly", "records are skipped", "changes of one event only")


def simulated(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """The simulation in a process of its own: it replaces the clock of the modules that it runs."""
    path = os.pathsep.join(
        str(ROOT / part) for part in ("collector", "spark_integration", "tests/support", "tests", ".")
    )
    command = [sys.executable, "-m", "fault_world", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


def commit() -> str:
    """What was simulated."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "no commit"


def test_every_world_ends_as_the_oracle_says() -> None:
    told = simulated("1", "120", "--seconds", "100")

    assert told.returncode == 0, told.stdout + told.stderr


def test_planted_bugs_are_caught() -> None:
    told = simulated("1", "40", "--seconds", "100", "--plant", ",".join(SAMPLE))

    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout.splitlines()[-1] == f"{len(SAMPLE)} of {len(SAMPLE)} bugs caught; survived: none"


def test_a_failing_seed_is_the_same_story_again() -> None:
    first, again = (simulated("1", "40", "--plant", "offset moves blindly").stdout for _ in range(2))

    assert "the offset of" in first
    assert first == again


def test_there_are_thirty_bugs_and_each_has_its_place() -> None:
    for name, bug in BUGS.items():
        source = (ROOT / "collector" / bug.module.replace(".", "/")).with_suffix(".py").read_text()
        assert source.count(bug.right) == 1, name
        compile(source.replace(bug.right, bug.wrong), name, "exec")
    assert len(BUGS) >= 30


@pytest.mark.soak
def test_many_worlds_end_as_the_oracle_says() -> None:
    processes = os.cpu_count() or 1
    share = -(-SEEDS // processes)

    def part(number: int) -> "subprocess.CompletedProcess[str]":
        return simulated(str(SEED + number * share), str(share), "--seconds", str(MINUTES * 60))

    with ThreadPoolExecutor(processes) as pool:
        parts = list(pool.map(part, range(processes)))
    print(commit(), *(one.stdout for one in parts), sep=": ")

    assert [one.stdout + one.stderr for one in parts if one.returncode] == []


@pytest.mark.soak
def test_every_planted_bug_is_caught() -> None:
    told = simulated("1", "400", "--seconds", "300", "--plant", "all")
    print(f"{commit()}: {told.stdout}")

    assert told.returncode == 0, told.stdout + told.stderr
