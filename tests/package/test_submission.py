"""`.ci/run` with a fake `make`: every step counts, including parallel ones."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEPS = ("check", "docs", "bench SHORT=1", "test", "test-matrix MATRIX_ARGS=--short")
# The benchmarks end only when another step has begun beside them, or after half a minute of vain
# waiting.
MAKE = """#!/bin/sh
echo "$*" >> asked
if [ "$1" = bench ]; then
  for _ in $(seq 300); do grep -q ^test asked && break; sleep 0.1; done
  grep -q ^test asked || { echo "nothing runs beside the benchmarks"; exit 9; }
  echo "figures"
fi
[ "$1" != "$FAILS" ] || exit 2
"""


def submitted(folder: Path, fails: str = "") -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Return the end of the run if this step fails, and the arguments of `make`."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    tools = folder / "tools"
    tools.mkdir()
    for name in ("make", "java", "chromium"):  # what is there is not installed
        (tools / name).write_text(MAKE)
        (tools / name).chmod(0o755)
    environ = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "FAILS": fails}
    ran = subprocess.run(
        ["bash", ".ci/run"], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    return ran, (folder / "asked").read_text().splitlines()


def test_all_steps_run_with_the_benchmarks_in_parallel(tmp_path: Path) -> None:
    ran, asked = submitted(tmp_path)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(asked) == sorted(STEPS)
    assert ran.stdout.splitlines() == ["figures"]


@pytest.mark.parametrize("step", [step.partition(" ")[0] for step in STEPS])
def test_failing_step_fails_the_run(tmp_path: Path, step: str) -> None:
    ran, asked = submitted(tmp_path, step)

    assert ran.returncode == 2
    assert any(line.startswith(step) for line in asked)
    assert ("figures" in ran.stdout) == (step not in ("check", "docs"))
