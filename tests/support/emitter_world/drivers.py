"""Drivers: Python programs with a Spark of their own, run as a user runs them, and the events that they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emitter_world.builders import line_of

SECONDS = 240  # a Spark on a busy machine of two cores starts within half a minute
_QUICK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
}


@dataclass(frozen=True)
class Ran:
    """What a driver left."""

    code: int
    out: str
    err: str

    def answer(self) -> Any:
        """The last line of its standard output, as JSON."""
        return json.loads(self.out.strip().splitlines()[-1])


@dataclass
class Driver:
    """A program in a folder, with its conf in spark-defaults.conf as an administrator would have it."""

    folder: Path
    program: str
    conf: Mapping[str, str] = field(default_factory=dict)
    python: Path = Path(sys.executable)
    environ: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    @property
    def events_file(self) -> Path:
        """Where the file transport writes."""
        return self.folder / "events.jsonl"

    def events(self) -> list[dict[str, Any]]:
        """The events that it told by the file transport."""
        if not self.events_file.exists():
            return []
        return [json.loads(line) for line in self.events_file.read_text().splitlines()]

    def lines(self) -> list[str]:
        """Each event in a line, without heartbeats."""
        return [line_of(event) for event in self.events() if event["job"].get("facets")]

    def run(self, command: Sequence[str] = ()) -> Ran:
        """Runs it to its end."""
        with self.started(command) as process:
            out, err = process.communicate(timeout=SECONDS)
        return Ran(process.returncode, out, err)

    @contextmanager
    def started(self, command: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
        """Runs it beside the test; whatever is left of it is killed at the end."""
        self._write()
        with subprocess.Popen(
            [*(command or [str(self.python)]), str(self.folder / "job.py"), *self.arguments],
            cwd=self.folder,
            env=self._environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                kill_group(process)

    def _write(self) -> None:
        (self.folder / "conf").mkdir(parents=True, exist_ok=True)
        (self.folder / "job.py").write_text(self.program)
        conf = {**_QUICK, "spark.sql.warehouse.dir": str(self.folder / "warehouse"), **self.conf}
        lines = (f"{key} {value}\n" for key, value in conf.items())
        (self.folder / "conf" / "spark-defaults.conf").write_text("".join(lines))
        (self.folder / "conf" / "log4j2.properties").write_text("rootLogger.level = off\n")

    def _environ(self) -> dict[str, str]:
        return {
            **{key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")},
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": str(self.python),
            "XDG_STATE_HOME": str(self.folder / "state"),
            **self.environ,
        }


def emitting(folder: Path, **more: str) -> dict[str, str]:
    """The conf that switches the emitter on with the file transport; `a__b` in a key stands for a.b."""
    return {
        "spark.strandline.enabled": "true",
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(folder / "events.jsonl"),
        "spark.openlineage.appName": "bank",
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def kill_group(process: subprocess.Popen[str]) -> None:
    """SIGKILL for a driver and its JVM, as a power cut would have it."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return
