"""A program's end is seen as a scheduler sees it: by its exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys
from strandline_spark.runs.exits import note_exits, uncaught
atexit.register(lambda: print(uncaught()))
note_exits()
note_exits()
{}
"""


@pytest.mark.parametrize(
    ("ending", "code", "seen"),
    [
        ("sys.exit(3)", 3, "SystemExit: 3"),
        ("sys.exit('no input')", 1, "SystemExit: no input"),
        ("sys.exit((1, 2))", 1, "SystemExit: (1, 2)"),
        ("sys.exit(0)", 0, "None"),
        ("sys.exit()", 0, "None"),
        ("sys.exit(False)", 0, "None"),
        ("pass", 0, "None"),
        ("raise ValueError('boom')", 1, "ValueError: boom"),
        ("try:\n    sys.exit(3)\nexcept SystemExit as end:\n    assert end.code == 3", 0, "None"),
        ("try:\n    sys.exit(3)\nexcept SystemExit:\n    sys.exit(0)", 0, "None"),
        ("import argparse\nargparse.ArgumentParser().parse_args(['--odd'])", 2, "SystemExit: 2"),
        (
            "import runpy\nopen('t.py', 'w').write('import sys; sys.exit(5)')\nrunpy.run_path('t.py')",
            5,
            "SystemExit: 5",
        ),
    ],
)
def test_exit_code_tells_how_a_program_ended(
    ending: str, code: int, seen: str, tmp_path: object
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(ending)],
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (code, seen)
