"""Runs of the simulation in processes of their own.

They replace the clock of modules, plant bugs and fork.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ProgramResult = subprocess.CompletedProcess[str]


def run(module: str, *arguments: str) -> ProgramResult:
    """Run `python -m MODULE ARGUMENTS`."""
    return _run("-m", module, *arguments)


def _run(*arguments: str) -> ProgramResult:
    path = os.pathsep.join(
        str(ROOT / part) for part in ("collector", "spark_integration", "tests", ".")
    )
    environ = os.environ | {"PYTHONPATH": path}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )


def play(first: int, count: int) -> int:
    """Play the worlds of seeds, each of which has to end right.

    Return at how many points a fault struck.
    """
    result = run("worlds.simulation", str(first), str(count))
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
    line = re.match(rf"(\d+) seeds from {first}, .* (\d+) points of fault;", result.stdout)
    assert line
    assert int(line[1]) == count
    return int(line[2])


def run_test_with(bug: str, test: str) -> ProgramResult:
    """Run a test of the suite in a process with a planted bug."""
    program = "import sys, pytest; from worlds.simulation.planted import plant; plant(sys.argv[1]); sys.exit(pytest.main(sys.argv[2:]))"
    return _run("-c", program, bug, "-q", "-m", "not postgres", test)


def run_shares(module: str, first: int, count: int, *more: str) -> list[str]:
    """Run so many seeds in a process for each core; return the output of those that failed."""
    processes = os.cpu_count() or 1
    share = -(-count // processes)
    with ThreadPoolExecutor(processes) as pool:
        parts = list(
            pool.map(
                lambda n: run(module, str(first + n * share), str(share), *more), range(processes)
            )
        )
    print(commit(), *(one.stdout for one in parts), sep=": ")
    return [one.stdout + one.stderr for one in parts if one.returncode]


def commit() -> str:
    """Return the commit that runs."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "no commit"
