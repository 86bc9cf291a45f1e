"""The aligned bank on real Spark and Iceberg, read strongly all the while, with a random process killed every few seconds: a job's
driver, the collector, or the reader.

In the end everything that was read, and every snapshot that was made, is compared with a recomputation from the
transfers; beside it stand reads at one catalog instant, and latest ones. A short run has one application instead of four, and
kills it once. STRANDLINE_BANK_READS, _BARRIERS and _SECONDS say when a full one ends, the last whatever was reached;
_BETWEEN says how many reads there are at least from one kill to the next, and _TRIGGER how often the streams look for news.
"""

import os
import random
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.bank_tables import INPUTS, AlignedTables, expected_of, faults_of, tables_in
from bench.report import record
from deploy import jars
from strandline.cli.commands import demo
from strandline.demo import bank as demo_bank
from strandline.demo import lake as demo_lake
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoError, DemoProcess, Processes, processes

ROOT = Path(__file__).resolve().parent.parent
JOBS = ("ingest", "credits", "debits", "balance")
READERS = ("reads", "collector")
SUMS = r" +([\d,]+) +([\d,]+) +(-?[\d,]+) \|"
READ = re.compile(rf"^\| +(\d+) \|{SUMS}{SUMS}{SUMS}$", re.MULTILINE)
SECONDS = 600  # that one thing may take
READS = int(os.environ.get("STRANDLINE_BANK_READS", "500"))
BARRIERS = int(os.environ.get("STRANDLINE_BANK_BARRIERS", "300"))
BETWEEN = int(os.environ.get("STRANDLINE_BANK_BETWEEN", "5"))
TRIGGER = os.environ.get("STRANDLINE_BANK_TRIGGER", "1 second")
LONGEST = float(os.environ.get("STRANDLINE_BANK_SECONDS", "7200"))
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
        """How many checkpoints have gone through to the last table."""
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


def run(short: bool) -> None:
    """Run it and record the figures."""
    folder = Path(tempfile.mkdtemp(prefix="strandline-bank-"))
    bank = Bank(ROOT, folder / "bank", demo_bank.FOREVER, demo_bank.port_or_another(0))
    demo_bank.empty_folder(bank.folder)
    with processes(bank.folder / "logs") as started:
        world = World(bank, started, "together" if short else "reads")
        world.start("collector")
        transport = demo_bank.http_transport(bank.url)
        demo_bank.write_conf(
            bank, jars.comma_list(["iceberg-4.1"]), transport, cores=2 if short else 1
        )
        demo_lake.make_tables(bank)
        demo_lake.make_tables(bank, "bank_aligned")
        play_short(world) if short else play(world)
        end(world)
    told(world, tables_in(bank.folder), short)
    shutil.rmtree(folder, ignore_errors=True)


def play_short(world: World) -> None:
    """One application with all streams and the reader, killed once."""
    world.start("ingest")
    world.start("together")
    world.until(lambda: len(world.reads()) >= 2, "read")
    world.kill("together")
    before = world.barriers()
    world.until(lambda: len(world.reads()) >= 5 and world.barriers() > before, "read after a kill")


def play(world: World) -> None:
    """Four drivers, a reader and the collector; one of them is killed every few seconds."""
    chance, deadline = random.Random(SEED), time.monotonic() + LONGEST
    for name in (*JOBS, "reads"):
        world.start(name)
    world.until(lambda: len(world.reads()) >= 3, "read")
    while (
        len(world.reads()) < READS or world.barriers() < BARRIERS
    ) and time.monotonic() < deadline:
        world.kill(chance.choice((*JOBS, *READERS)))
        reads, barriers = len(world.reads()) + BETWEEN, world.barriers() + 3
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


def told(world: World, found: AlignedTables, short: bool) -> None:
    """Compare with the recomputation and write the figures down."""
    reads, expected, faults = world.reads(), expected_of(found), faults_of(found, rejoined=INPUTS)
    wrong = [read for read in reads if not right(read, expected["credits"][read[0]].total())]
    barriers = len(found.barriers("aligned.balance"))
    note = f"{world.kills} kills, {world.late} gave up waiting, seed {SEED}" + (
        ", short run" if short else ""
    )
    enough = None if short else len(reads) >= READS
    record("bank.strong_reads", len(reads), "reads", "" if short else f">= {READS}", enough, note)
    record(
        "bank.strong_reads.wrong",
        len(wrong),
        "reads",
        "0",
        not wrong,
        "compared with a recomputation",
    )
    record(
        "bank.instant_reads.wrong",
        sum(read[6] != 0 for read in reads),
        "reads",
        note="at one catalog instant",
    )
    record(
        "bank.latest_reads.wrong", sum(read[9] != 0 for read in reads), "reads", note="beside them"
    )
    enough = None if short else barriers >= BARRIERS
    record("bank.barriers", barriers, "barriers", "" if short else f">= {BARRIERS}", enough)
    record(
        "bank.barriers.misaligned", len(faults), "barriers", "0", not faults, "; ".join(faults[:2])
    )
    if wrong or faults:
        raise AssertionError(f"strong reads {wrong[:3]}, faults {faults[:3]}")


def right(read: tuple[int, ...], sum_of_transfers: int) -> bool:
    """Whether a strong read shows what the transfers up to its barrier come to."""
    _, credits, debits, difference, *_ = read
    return (credits, debits, difference) == (sum_of_transfers, sum_of_transfers, 0)
