"""`strandline serve` in a process of its own, which can be killed at any moment and started again on its port."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from strandline.api.answering.listening import listen_alone
from strandline.settings import Settings

PATIENCE = 120


class Served:
    """One server; `address` stays the same over restarts. program: a folder with another version of the program."""

    def __init__(self, url: str, folder: Path, *flags: str, program: Path | None = None) -> None:
        free = listen_alone(Settings(host="127.0.0.1", port=0))
        self.port = int(free.getsockname()[1])
        free.close()
        self._command = [sys.executable, "-m", "strandline", "serve", "--port", str(self.port), "--log-level", "error"]
        self._command += ["--database-url", url, *flags]
        self._folder = folder
        self._first = [] if program is None else [str(program)]
        self._process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        paths = os.pathsep.join([*self._first, *filter(None, sys.path)])
        log = (self._folder / f"{self.port}.log").open("ab")
        self._process = subprocess.Popen(
            self._command, stdout=log, stderr=log, cwd=self._folder, env={**os.environ, "PYTHONPATH": paths}
        )
        log.close()
        until = time.monotonic() + PATIENCE
        while not self._answers():
            assert time.monotonic() < until, (self._folder / f"{self.port}.log").read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL, whatever it is doing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE)

    def kill_who_writes(self) -> None:
        """SIGKILL for the process in which it writes, if that runs at the moment."""
        for child in self.processes()[1:]:
            os.kill(child, signal.SIGKILL)

    def processes(self) -> list[int]:
        """The server's own process, and those that it has started."""
        assert self._process is not None
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        return [self._process.pid, *map(int, " ".join(task.read_text() for task in tasks).split())]

    def stop(self) -> None:
        """End it in good order."""
        self.client.close()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE)

    def _answers(self) -> bool:
        try:
            return self.client.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def served(
    url: str, folder: Path, servers: int = 1, *flags: str, program: Path | None = None
) -> Iterator[list[Served]]:
    """So many servers on one database."""
    found = [Served(url, folder, *flags, program=program) for _ in range(servers)]
    try:
        for one in found:
            one.start()
        yield found
    finally:
        for one in found:
            one.stop()
