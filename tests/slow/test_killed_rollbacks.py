"""Executed rollbacks on real Iceberg tables, half of them killed in a step and typed again.

A job multiplies by 7, `strandline rollback --execute` takes that back. After each rollback the
tables equal those of a run that never diverged. `make soak` makes STRANDLINE_SOAK_ROLLBACKS (100).
"""

import os
import random
import signal
import subprocess
import time

import pytest

from worlds.driven_lake import Driven, driven

pytestmark = [pytest.mark.spark]

SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))
ROLLBACKS = int(os.environ.get("STRANDLINE_SOAK_ROLLBACKS", "100"))
STEPS = 5  # of the plan: two tables, two checkpoints, the generation
SECONDS = 120


@pytest.mark.parametrize(
    "rollbacks", [pytest.param(2), pytest.param(ROLLBACKS, id="soak", marks=pytest.mark.soak)]
)
def test_executed_rollback_restores_what_the_tables_held(rollbacks: int, iceberg_jars: str) -> None:
    chance, barrier = random.Random(SEED), 0
    with driven(iceberg_jars) as lake:
        for number in range(1, rollbacks + 1):
            right, barrier = barrier + 1, barrier + 2
            for committed, factor in ((right, 1), (barrier, 7)):
                lake.tell("commit", committed)
                lake.tell("work", factor)
            roll_back(lake, right, chance.randint(1, STEPS) if number % 2 == 0 else None)
            lake.tell("work", 1)
            assert derived_rows(lake) == expected_rows(barrier), f"rollback {number}, seed {SEED}"
        assert lake.tell("strong")["barrier"] == barrier


def roll_back(lake: Driven, barrier: int, step: int | None) -> None:
    """Roll credits back once the jobs' ends are known.

    Where a step is given, the command is killed when it begins that step, and typed again.
    """
    command = lake.command("rollback", "lake.h.credits", str(barrier), "--execute")
    deadline, is_killed = time.monotonic() + SECONDS, False
    while time.monotonic() < deadline:
        code, last_line = run_until(command, None if is_killed else step)
        if code == 0:
            return
        is_killed = is_killed or code is None
        if code is not None and "stop these jobs first" not in last_line:
            raise RuntimeError(f"rollback to {barrier}: {last_line}")
    raise TimeoutError(f"rollback to {barrier}: {last_line}")


def run_until(command: list[str], step: int | None) -> tuple[int | None, str]:
    """Run a command, or kill it when it begins a step; its exit code (None: killed), last line."""
    begun, line = 0, ""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            begun += line.rstrip("\n").endswith("...")
            if begun == step:
                process.send_signal(signal.SIGKILL)
                return None, line
    return process.returncode, line


def derived_rows(lake: Driven) -> dict[str, list[list[int]]]:
    """Return the rows of credits and balance."""
    found = lake.tell("rows")
    return {table: found[table] for table in ("credits", "balance")}


def expected_rows(barriers: int) -> dict[str, list[list[int]]]:
    """Return the rows of credits and balance after so many barriers.

    In a run that never diverged.
    """
    rows = sorted([one % k, 10 * one + k] for one in range(1, barriers + 1) for k in (2, 3, 5))
    totals: dict[int, int] = {}
    for account, amount in rows:
        totals[account] = totals.get(account, 0) + amount
    return {"credits": rows, "balance": sorted(map(list, totals.items()))}
