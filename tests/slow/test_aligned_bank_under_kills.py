"""The aligned bank, read strongly all the while, under kills: `make soak`.

A random process is killed every few seconds: a job's driver, the collector, or the reader. In the
end everything that was read, and every snapshot that was made, is compared with a recomputation
from the transfers. STRANDLINE_SOAK_READS (500) and _BARRIERS (300) say how long it goes on,
STRANDLINE_SOAK_SEED repeats a run.
"""

import os
import random
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from strandline.cli.commands import demo
from strandline.demo import bank as demo_bank
from strandline.demo import lake as demo_lake
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoProcess, Processes, processes
from strandline.errors import DemoError
from worlds.aligned_tables import INPUTS, expected_of, faults_of, tables_in

pytestmark = [pytest.mark.soak, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]
JOBS = ("ingest", "credits", "debits", "balance")
READERS = ("reads", "collector")
SUMS = r" +([\d,]+) +([\d,]+) +(-?[\d,]+) \|"
READ = re.compile(rf"^\| +(\d+) \|{SUMS}{SUMS}{SUMS}$", re.MULTILINE)
SECONDS = 600  # that one thing may take
READS = int(os.environ.get("STRANDLINE_SOAK_READS", "500"))
BARRIERS = int(os.environ.get("STRANDLINE_SOAK_BARRIERS", "300"))
READS_BETWEEN_KILLS = 5
TRIGGER = "1 second"
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1"))


@dataclass
class World:
    """A bank that runs, and what was killed in it."""

    bank: Bank
    started: Processes
    reader: str
    parts: dict[str, DemoProcess] = field(default_factory=dict)
    kills: int = 0
    late: int = 0

    def start(self, name: str) -> None:
        """Start a process, or start it again."""
        if name == "collector":
            self.parts[name] = demo.start_collector(self.bank, None, self.started)
            return
        example = "bank" if name == "ingest" else "bank_aligned"
        environ = self.bank.environ(keep=True) | {
            "BANK_TRIGGER": TRIGGER,
            "BANK_READS": "1000000",
            "BANK_READ_SECONDS": "0",
        }
        self.parts[name] = self.started.start(
            name, self.bank.job(name, example), self.bank.folder, environ
        )

    def kill(self, name: str) -> None:
        """SIGKILL to a process and its JVM; it is started again at once."""
        self.parts[name].end(signal.SIGKILL)
        self.parts[name].process.wait(60)
        self.kills += 1
        self.start(name)

    def reads(self) -> list[tuple[int, ...]]:
        """Barrier, then credits, debits and difference, strong, at one instant and latest, of each read so far."""
        found = READ.findall((self.bank.folder / "logs" / f"{self.reader}.log").read_text())
        return [tuple(int(number.replace(",", "")) for number in row) for row in found]

    def barriers(self) -> int:
        """Count the checkpoints that have reached the last table."""
        return len(demo_lake.snapshots(self.bank, "aligned")["balance"])

    def until(self, question: Callable[[], bool], what: str) -> None:
        """Wait; raise when a job fails, or nothing comes of it."""
        deadline = time.monotonic() + SECONDS
        while not question():
            for name in self.parts:
                self._check(name)
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} within {SECONDS} s; see {self.bank.folder}")
            time.sleep(0.3)

    def _check(self, name: str) -> None:
        """Start a job again that gave up waiting for inputs whose job was killed, as a scheduler would; any other end is a failure."""
        try:
            self.parts[name].check()
        except DemoError as error:
            if "InputsLateError" not in str(error):
                raise
            self.late += 1
            self.start(name)


def test_strong_reads_and_barriers_are_right_under_kills(tmp_path: Path, iceberg_jars: str) -> None:
    bank = Bank(ROOT, tmp_path / "bank", demo_bank.FOREVER, demo_bank.port_or_another(0))
    demo_bank.empty_folder(bank.folder)
    with processes(bank.folder / "logs") as started:
        world = World(bank, started, "reads")
        world.start("collector")
        transport = demo_bank.http_transport(bank.url)
        demo_bank.write_conf(bank, iceberg_jars, transport, cores=1)
        demo_lake.make_tables(bank)
        demo_lake.make_tables(bank, "bank_aligned")
        play(world)
        end(world)
    reads, found = world.reads(), tables_in(bank.folder)
    expected = expected_of(found)
    wrong = [read for read in reads if not right(read, expected["credits"][read[0]].total())]
    print(f"{len(reads)} reads, {world.kills} kills, {world.late} gave up waiting, seed {SEED}")
    assert wrong == []
    assert faults_of(found, rejoined=INPUTS) == []
    assert any(read[9] != 0 for read in reads), "the latest snapshots agreed all the time"


def play(world: World) -> None:
    """Four drivers, a reader and the collector; one of them is killed every few seconds."""
    chance = random.Random(SEED)
    for name in (*JOBS, "reads"):
        world.start(name)
    world.until(lambda: len(world.reads()) >= 3, "read")
    while len(world.reads()) < READS or world.barriers() < BARRIERS:
        world.kill(chance.choice((*JOBS, *READERS)))
        reads, barriers = len(world.reads()) + READS_BETWEEN_KILLS, world.barriers() + 3
        world.until(partial(_has_come_to, world, reads, barriers), "progress")
        time.sleep(chance.uniform(0, 6))


def _has_come_to(world: World, reads: int, barriers: int) -> bool:
    return len(world.reads()) >= reads and world.barriers() >= barriers


def end(world: World) -> None:
    """Let everything but the collector end between two micro-batches."""
    world.bank.stop_file.touch()
    world.until(
        lambda: not any(part.running for name, part in world.parts.items() if name != "collector"),
        "end",
    )


def right(read: tuple[int, ...], sum_of_transfers: int) -> bool:
    """Return true if a strong read shows the sum of the transfers up to its barrier."""
    _, credits, debits, difference, *_ = read
    return (credits, debits, difference) == (sum_of_transfers, sum_of_transfers, 0)
