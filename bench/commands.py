"""The CPU time of a command before and while it answers, and as a multiple of a bare
interpreter's start.

The multiple says how much is imported, on any machine; the seconds are what a person waits for on this one.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.report import record

ROOT = Path(__file__).resolve().parent.parent
HELP_SECONDS, ANSWER_SECONDS = 0.3, 0.6
ANSWERS = (
    ("lineage", "bank.balance"),
    ("jobs",),
    ("runs", "--failed", "--since", "yesterday"),
    ("search", "amount"),
    ("versions", "bank.balance", "--weak"),
    ("expire", "bank.balance"),
)


def run(short: bool) -> None:
    """Measure `--help` and answers on the bank's store."""
    times = 3 if short else 9
    bare = least_cpu([sys.executable, "-c", "pass"], os.environ, times)
    with TemporaryDirectory(prefix="strandline-bench-") as folder:
        environ = {**os.environ, "STRANDLINE_DATABASE_URL": filled(Path(folder))}
        measure("help", ["--help"], environ, times, bare, HELP_SECONDS)
        for argv in ANSWERS:
            measure(f"answer.{argv[0]}", argv, environ, times, bare, ANSWER_SECONDS)


def measure(
    name: str,
    argv: Sequence[str],
    environ: Mapping[str, str],
    times: int,
    bare: float,
    target: float,
) -> None:
    """Record the CPU time of a command, and the multiple of a bare start."""
    seconds = least_cpu([sys.executable, "-m", "strandline", *argv], environ, times)
    record(f"commands.{name}", seconds, "s of CPU", f"<= {target}", seconds <= target)
    record(f"commands.{name}.ratio", seconds / bare, "bare starts")


def least_cpu(command: Sequence[str], environ: Mapping[str, str], times: int) -> float:
    """The least CPU time of several runs: whatever else the machine does only adds to it."""
    return min(_cpu(command, environ) for _ in range(times))


def _cpu(command: Sequence[str], environ: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=dict(environ), cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def filled(folder: Path) -> str:
    """The URL of a store that has heard of the tests' bank."""
    sys.path.insert(0, str(ROOT / "tests"))
    from strandline.store.sql.engine import make_engine, migrate
    from worlds.scenarios.bank import bank
    from worlds.scenarios.taking import fill

    url = f"sqlite:///{folder / 'bank.db'}"
    engine = make_engine(url)
    migrate(engine)
    fill(engine, bank())
    engine.dispose()
    return url
