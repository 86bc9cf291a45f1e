"""A lake with a collector and one Spark application driven line by line, for long runs under faults."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strandline.cli.commands import demo
from strandline.demo import bank as demo_bank
from strandline.demo.bank import Bank
from strandline.demo.processes import processes

ROOT = Path(__file__).resolve().parents[2]
APPLICATION = Path(__file__).with_name("driven_lake_application.py")
Json = dict[str, Any]


@dataclass(frozen=True)
class Driven:
    """The application, and the commands that go at its tables from outside."""

    bank: Bank
    process: subprocess.Popen[str]

    def tell(self, word: str, number: int = 0) -> Json:
        """Let it do something; raises what it raised."""
        answer = self.ask(word, number)
        if "error" in answer:
            raise RuntimeError(f"{word}: {answer['error']}")
        return answer

    def ask(self, word: str, number: int = 0) -> Json:
        """Let it do something; an error is in the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word} {number}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Json:
        """Its next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"the application has ended; see {self.bank.folder / 'logs' / 'driver.log'}"
            )
        answer: Json = json.loads(line)
        return answer

    def command(self, *argv: str) -> list[str]:
        """A command of `strandline` on the collector's database and the lake."""
        lake = {
            "type": "sql",
            "uri": f"sqlite:///{self.bank.catalog}",
            "warehouse": (self.bank.folder / "lake").as_uri(),
        }
        named = [f"--catalog-property=lake.{key}={value}" for key, value in lake.items()]
        return [
            sys.executable,
            "-m",
            "strandline",
            *argv,
            "--database-url",
            self.bank.database,
            *named,
        ]

    def run(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*argv), capture_output=True, text=True, timeout=300, check=False
        )


@contextmanager
def driven(iceberg_jars: str) -> Iterator[Driven]:
    """The lake, its collector and the application; all is gone at the end."""
    with tempfile.TemporaryDirectory(
        prefix="strandline-histories-", ignore_cleanup_errors=True
    ) as folder:
        bank = Bank(ROOT, Path(folder) / "bank", demo_bank.FOREVER, demo_bank.port_or_another(0))
        demo_bank.empty_folder(bank.folder)
        with processes(bank.folder / "logs") as started:
            demo.start_collector(bank, None, started)
            transport = demo_bank.http_transport(bank.url)
            demo_bank.write_conf(bank, iceberg_jars, transport, cores=2)
            with (bank.folder / "conf" / "spark-defaults.conf").open("a") as conf:
                conf.write("spark.strandline.group bank\n")
            with _application(bank) as process:
                found = Driven(bank, process)
                found.answer()
                yield found


@contextmanager
def _application(bank: Bank) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(APPLICATION), str(bank.folder)]
    with (
        (bank.folder / "logs" / "driver.log").open("w") as log,
        subprocess.Popen(
            command,
            cwd=bank.folder,
            env=bank.environ(keep=True),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()
