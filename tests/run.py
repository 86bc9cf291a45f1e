"""Run the suite in five processes side by side.

`python tests/run.py MARKS [PYTEST_ARG...]`. Tests wait for browsers, brokers and queries as long as
they work, so five processes keep two cores busy. Each process starts each part that it needs once.
The output of the longest is shown while it runs, that of the others when all are done; each ends
with what was skipped and why.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
SPARK = ROOT / "tests" / "spark"
LONGEST = ("tests/spark/aligned", "tests/spark/formats")
OTHER_SPARK = tuple(
    path
    for path in sorted(str(path.relative_to(ROOT)) for path in SPARK.glob("[!_]*"))
    if path not in (*LONGEST, "tests/spark/conftest.py")
)
GROUPS = (
    LONGEST,
    OTHER_SPARK,
    ("tests/rules", "tests/store"),
    ("tests/api", "tests/commands", "tests/transports"),
    ("tests/emitter", "tests/page", "tests/package", "tests/compatibility", "tests/slow"),
)
NO_TEST_SELECTED = 5  # pytest's exit code


def main(marks: str, arguments: list[str]) -> int:
    """Run all groups, and return 1 if one failed, or 0."""
    pytest = [sys.executable, "-m", "pytest", "-m", marks, *arguments]
    shown, *others = GROUPS
    names = ", ".join(folder for group in others for folder in group)
    print(f"Beside {', '.join(shown)} run {names}; their output follows at the end.", flush=True)
    begun = time.monotonic()
    # A background job of a shell ignores SIGINT, and so would the processes that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in others]
        processes = [subprocess.Popen([*pytest, *shown], cwd=ROOT)] + [
            subprocess.Popen([*pytest, *group], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
            for group, output in zip(others, outputs, strict=True)
        ]

        def interrupt(_: int, __: FrameType | None) -> None:
            for process in processes:
                process.send_signal(signal.SIGINT)

        signal.signal(signal.SIGTERM, interrupt)
        codes = [wait(process) for process in processes]
        for group, output in zip(others, outputs, strict=True):
            print(f"\nThe output of {', '.join(group)}:\n", flush=True)
            output.seek(0)
            sys.stdout.writelines(output)
    failed = [
        f"{', '.join(group)} ({code})"
        for group, code in zip(GROUPS, codes, strict=True)
        if code not in (0, NO_TEST_SELECTED)
    ]
    minutes, seconds = divmod(round(time.monotonic() - begun), 60)
    outcome = f"Failed, with pytest's exit code: {'; '.join(failed)}" if failed else "All passed"
    print(f"\n{outcome}, in {minutes}:{seconds:02} minutes.")
    return 1 if failed else 0


def wait(process: subprocess.Popen[bytes]) -> int:
    """Wait until a process has ended.

    Ctrl-C reaches all processes from the terminal, and they stop the parts they started.
    """
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
