"""Runs of the fault world in processes of their own: they replace the clock of modules, plant bugs and fork."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
Ran = subprocess.CompletedProcess[str]


def run(module: str, *arguments: str) -> Ran:
    """`python -m MODULE ARGUMENTS`."""
    path = os.pathsep.join(str(ROOT / part) for part in ("collector", "spark_integration", "tests", "."))
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


def run_shares(module: str, first: int, count: int, *more: str) -> list[str]:
    """So many seeds from the first one, in a process for each core: prints what was run, and gives the output of those that failed."""
    processes = os.cpu_count() or 1
    share = -(-count // processes)
    with ThreadPoolExecutor(processes) as pool:
        parts = list(pool.map(lambda n: run(module, str(first + n * share), str(share), *more), range(processes)))
    print(commit(), *(one.stdout for one in parts), sep=": ")
    return [one.stdout + one.stderr for one in parts if one.returncode]


def commit() -> str:
    """What was run."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "no commit"
