"""The CPU time of commands, and as a multiple of a bare interpreter's start.

The multiple says how much is imported, on any machine; the seconds are what a person waits for on
this one.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence

from bench._machine import ROOT, opened
from bench._stores import store
from bench.report import record

HELP_SECONDS, COMMAND_HELP_SECONDS, ANSWER_SECONDS = 0.1, 0.3, 0.6
ANSWERS = (
    ("lineage", "bank.balance"),
    ("jobs",),
    ("runs", "--failed", "--since", "yesterday"),
    ("search", "amount"),
    ("versions", "bank.balance", "--weak"),
    ("expire", "bank.balance"),
)


def run(short: bool) -> None:
    """Measure `--help`, and answers on a store of the tests' bank."""
    times = 3 if short else 9
    bare = _least_cpu(["-c", "pass"], "", times)
    with store("sqlite") as url:
        _fill(url)
        commands: dict[str, tuple[Sequence[str], float]] = {
            "help": (["--help"], HELP_SECONDS),
            "help.lineage": (["lineage", "--help"], COMMAND_HELP_SECONDS),
        }
        commands |= {f"answer.{argv[0]}": (argv, ANSWER_SECONDS) for argv in ANSWERS}
        for name, (argv, most) in commands.items():
            seconds = _least_cpu(["-m", "strandline", *argv], url, times)
            record(f"commands.{name}", seconds, "s of CPU", most=most)
            record(f"commands.{name}.ratio", seconds / bare, "bare starts")


def _least_cpu(argv: Sequence[str], url: str, times: int) -> float:
    """The least CPU time of several runs: whatever else the machine does only adds to it."""
    return min(_cpu(argv, url) for _ in range(times))


def _cpu(argv: Sequence[str], url: str) -> float:
    environ = {**os.environ, "STRANDLINE_DATABASE_URL": url}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *argv]
    subprocess.run(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _fill(url: str) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from worlds.scenarios.bank import bank
    from worlds.scenarios.taking import fill

    with opened(url) as engine:
        fill(engine, bank())
