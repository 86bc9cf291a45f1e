"""The product's own commands as processes, with what they took."""

import subprocess
import sys
import time
from tempfile import TemporaryFile
from typing import NamedTuple

from bench._machine import ROOT, cpu_micros

LOOK_SECONDS = 0.5


class Ran(NamedTuple):
    """The end of a command: its time, the processor time of all its processes in seconds, and
    its output.
    """

    seconds: float
    processor: float
    output: str


def strandline(*argv: str) -> Ran:
    """Run a command; raises RuntimeError with what it said where it fails."""
    began = time.perf_counter()
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        command = [sys.executable, "-m", "strandline", *argv]
        running = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=errors)
        processor = 0.0
        while (
            running.poll() is None
        ):  # a JVM that has ended is nobody's child any more: what it took is asked while it lives
            processor = max(processor, cpu_micros(running.pid) / 1e6)
            time.sleep(LOOK_SECONDS)
        for file in (output, errors):
            file.seek(0)
        ran = Ran(time.perf_counter() - began, processor, output.read())
        if running.returncode:
            raise RuntimeError(
                f"strandline {argv[0]}: exit {running.returncode}: {(ran.output + errors.read())[-500:]}"
            )
    return ran
