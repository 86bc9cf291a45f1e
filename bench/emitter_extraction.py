"""The time in which the emitter's thread reads a plan, its CPU in Python and JVM together, and
the memory that stays.

Statements are analysed and not run: an insert-select, five joins with a window, 1,000 columns, a read of 2,000 files. The
full run also reads 10,000 different statements and looks at the driver's memory.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench import report

DRIVER = Path(__file__).parent / "_extraction_driver.py"
ROOT = DRIVER.parent.parent
SECONDS = 1800
STATEMENTS = 10_000
# Figures to reach, in ms: (median, 95th percentile).
TARGETS: dict[str, tuple[float | None, float | None]] = {
    "insert-select": (3, None),
    "5-joins": (None, 15),
    "1000-columns": (150, None),
    "2000-files": (None, None),
}
MEMORY = 48.0


def run(short: bool) -> None:
    """Measure and record."""
    size = (
        {"rounds": 3, "warm_up": 1, "statements": 0}
        if short
        else {"rounds": 200, "warm_up": 30, "statements": STATEMENTS}
    )
    for row in driven(size):
        if row["name"] == "memory":
            record_memory(row)
        else:
            record_statement(row, short)


def record_statement(row: dict[str, Any], short: bool) -> None:
    """Median and 95th percentile of the wall time, median of the CPU."""
    name, walls = row["name"], row["wall"]
    figures = {"p50": median(walls), "p95": quantiles(walls, n=20)[-1]}
    for (figure, value), target in zip(figures.items(), TARGETS[name], strict=True):
        wanted = f"<= {target:g}" if target is not None else ""
        met = None if short or target is None else value <= target
        report.record(f"emitter.extraction.{name}.{figure}", value, "ms", wanted, met)
    report.record(f"emitter.extraction.{name}.cpu", median(row["cpu"]), "ms", note="Python and JVM")


def record_memory(row: dict[str, Any]) -> None:
    """Record the memory left by 10,000 statements, from the first thousand on."""
    added = row["python"] + row["jvm"]
    note = f"Python {row['python']:+.1f}, JVM {row['jvm']:+.1f}"
    report.record(
        "emitter.extraction.memory.added", added, "MiB", f"<= {MEMORY:g}", added <= MEMORY, note
    )


def driven(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the driver's measurements."""
    path = os.pathsep.join(str(ROOT / part) for part in ("", "spark_integration"))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(DRIVER), json.dumps({**wanted, "folder": folder})],
            env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"the driver failed: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
