"""Run the suite in two processes side by side.

The collector's tests beside the emitter's, the page's and the rest.

`python tests/run.py MARKS [PYTEST_ARG...]`. Each process starts each part that it needs once. The
second half is shown while it runs and the collector's when both are done; each ends with what was
skipped and why.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
COLLECTOR = (
    "tests/rules",
    "tests/store",
    "tests/api",
    "tests/commands",
    "tests/transports",
    "tests/slow",
)
OTHERS = ("tests/emitter", "tests/spark", "tests/page", "tests/package", "tests/compatibility")


def main(marks: str, arguments: list[str]) -> int:
    """Run both halves, and return the exit code of one that failed, or 0."""
    pytest = [sys.executable, "-m", "pytest", "-m", marks, *arguments]
    with tempfile.TemporaryFile("w+") as output:
        print(
            f"Beside these tests run those of {', '.join(COLLECTOR)}; their output follows at the end.",
            flush=True,
        )
        collector = subprocess.Popen(
            [*pytest, *COLLECTOR], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
        others = subprocess.Popen([*pytest, *OTHERS], cwd=ROOT)

        def interrupt(_: int, __: FrameType | None) -> None:
            for process in (collector, others):
                process.send_signal(signal.SIGINT)

        signal.signal(signal.SIGTERM, interrupt)
        codes = {"collector": 0, "others": wait(others)}
        codes["collector"] = wait(collector)
        output.seek(0)
        print(f"\nThe output of {', '.join(COLLECTOR)}:\n", flush=True)
        for line in output:
            print(line, end="")
    print(
        "\nBoth halves passed." if not any(codes.values()) else f"\nExit codes of pytest: {codes}"
    )
    return codes["others"] or codes["collector"]


def wait(process: subprocess.Popen[bytes]) -> int:
    """Wait until a half has ended.

    Ctrl-C reaches both halves from the terminal, and they stop the parts they started.
    """
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
