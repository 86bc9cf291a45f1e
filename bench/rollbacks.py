"""Executed rollbacks on real Iceberg tables.

A job multiplies by 7, `strandline rollback --execute` takes that back, half of the
commands are killed in a step and typed again. After each, the tables are compared with a run that
never diverged. STRANDLINE_ROLLBACKS and _ROLLBACK_SECONDS say when a full run ends.
"""

import os
import random
import signal
import subprocess
import time

from bench._histories import Driven, driven
from bench.report import record

ROLLBACKS = int(os.environ.get("STRANDLINE_ROLLBACKS", "100"))
LONGEST = float(os.environ.get("STRANDLINE_ROLLBACK_SECONDS", "7200"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))
STEPS = 5  # of the plan: two tables, two checkpoints, the generation
SECONDS = 120


def run(short: bool) -> None:
    """Roll back again and again.

    Record how often it was done, how often killed, and how often the end was wrong.
    """
    chance, wanted, deadline = (
        random.Random(SEED),
        2 if short else ROLLBACKS,
        time.monotonic() + LONGEST,
    )
    done, killed, barrier, wrong = 0, 0, 0, list[str]()
    with driven() as lake:
        while done < wanted and time.monotonic() < deadline:
            right, barrier, done = barrier + 1, barrier + 2, done + 1
            for number, factor in ((right, 1), (barrier, 7)):
                lake.tell("commit", number)
                lake.tell("work", factor)
            killed += roll_back(lake, right, chance.randint(1, STEPS) if done % 2 == 0 else None)
            lake.tell("work", 1)
            wrong += faults_of(lake, done, barrier)
        found = lake.tell("strong")
    if found["barrier"] != barrier:
        wrong.append(f"the last strong read is at barrier {found['barrier']}, not {barrier}")
    enough = None if short else done >= ROLLBACKS
    record(
        "rollbacks.executed",
        done,
        "rollbacks",
        "" if short else f">= {ROLLBACKS}",
        enough,
        f"seed {SEED}",
    )
    record("rollbacks.killed", killed, "rollbacks", note="killed in a step, and typed again")
    record("rollbacks.wrong", len(wrong), "rollbacks", "0", not wrong, "; ".join(wrong[:2]))
    if wrong:
        raise AssertionError("; ".join(wrong[:3]))


def roll_back(lake: Driven, barrier: int, step: int | None) -> bool:
    """Roll credits back, once the jobs' ends are heard of.

    Where a step is given, kill the command when it begins that one.

    Whether it was killed, and typed again.
    """
    command = lake.command("rollback", "lake.h.credits", str(barrier), "--execute")
    deadline, is_killed = time.monotonic() + SECONDS, False
    while time.monotonic() < deadline:
        code, told = run_until(command, None if is_killed else step)
        if code == 0:
            return is_killed
        is_killed = is_killed or code is None
        if code is not None and "stop these jobs first" not in told:
            raise RuntimeError(f"rollback to {barrier}: {told}")
    raise TimeoutError(f"rollback to {barrier}: {told}")


def run_until(command: list[str], step: int | None) -> tuple[int | None, str]:
    """Run a command, or kill it when it begins its so-many-th step.

    Its exit code, None if it was killed, and its last line.
    """
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


def faults_of(lake: Driven, number: int, barriers: int) -> list[str]:
    """What the tables hold otherwise than in a run that never diverged."""
    rows = sorted([one % k, 10 * one + k] for one in range(1, barriers + 1) for k in (2, 3, 5))
    totals: dict[int, int] = {}
    for account, amount in rows:
        totals[account] = totals.get(account, 0) + amount
    found = lake.tell("rows")
    wanted = {
        "credits": rows,
        "balance": sorted([account, amount] for account, amount in totals.items()),
    }
    return [
        f"rollback {number}: {table} is wrong" for table in wanted if found[table] != wanted[table]
    ]
