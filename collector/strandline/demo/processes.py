"""The demo's processes, each with a log file; all of them end when the demo ends.

Every process leads a group of its own, so that a driver's JVM ends with it and Ctrl-C reaches only
the demo, which then ends the others in good order. On Linux they also end when the demo itself is
killed.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from strandline.errors import DemoError

STOP_SECONDS = 15
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class DemoProcess:
    """One process of the demo."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    log_start: int  # bytes of an earlier process of its name

    @property
    def running(self) -> bool:
        """True if it has not ended."""
        return self.process.poll() is None

    @property
    def killed(self) -> bool:
        """Return true if SIGKILL ended the process."""
        return self.process.poll() == -signal.SIGKILL

    def output(self) -> str:
        """Return its output in the log."""
        return self.log.read_bytes()[self.log_start :].decode(errors="replace")

    def last_lines(self, count: int = 15) -> str:
        """The end of its output, indented."""
        lines = self.output().expandtabs().splitlines()[-count:]
        return "\n".join(f"    {line}" for line in lines) or "    (it wrote nothing)"

    def check(self) -> None:
        """Raise DemoError when it has failed."""
        if self.process.poll() not in (None, 0):
            raise DemoError(
                f"{self.name} ended with code {self.process.returncode}; "
                f"{self.log}:\n{self.last_lines()}"
            )

    def end(self, signal_: signal.Signals) -> None:
        """Send a signal to the process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal_)


class Processes:
    """The processes of one demo, in the order in which they were started."""

    def __init__(self, logs: Path, stop_seconds: float) -> None:
        self._logs = logs
        self._stop_seconds = stop_seconds
        self.parts: list[DemoProcess] = []
        logs.mkdir(parents=True, exist_ok=True)

    def start(
        self, name: str, command: Sequence[str], cwd: Path, environ: Mapping[str, str]
    ) -> DemoProcess:
        """Start a process; its output goes to a file of its name."""
        log = self._logs / f"{name}.log"
        with log.open("ab") as output:
            log_start = output.tell()
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(environ),
                stdin=subprocess.PIPE,  # closed by the demo's own end: the broker stops then
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  (no threads here)
            )
        part = DemoProcess(name, process, log, log_start)
        self.parts.append(part)
        return part

    def check(self) -> None:
        """Raise DemoError when any of them has failed."""
        for part in self.parts:
            part.check()

    def stop(self, parts: Sequence[DemoProcess] | None = None) -> None:
        """End these, or all, the youngest first; whatever does not obey in time is killed."""
        deadline = time.monotonic() + self._stop_seconds
        for part in reversed(self.parts if parts is None else parts):
            part.end(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                part.process.wait(max(0.0, deadline - time.monotonic()))
            part.end(signal.SIGKILL)  # also what an ended process left behind in its group
            part.process.wait()
            if part.process.stdin:
                part.process.stdin.close()


@contextlib.contextmanager
def processes(logs: Path, stop_seconds: float = STOP_SECONDS) -> Iterator[Processes]:
    """Processes that end with the block: when it is done, on an error, on Ctrl-C and on SIGTERM."""
    started = Processes(logs, stop_seconds)
    before = {
        number: signal.signal(number, interrupted) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield started
    finally:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        started.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupted(number: int, frame: FrameType | None) -> None:
    """Take SIGTERM and SIGHUP as Ctrl-C."""
    raise KeyboardInterrupt


def end_with_parent() -> None:
    """Ask Linux for SIGTERM when the demo is gone (runs in the new process, before its program)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
