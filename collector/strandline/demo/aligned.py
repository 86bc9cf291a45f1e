"""The demo's second act.

The same bank, aligned, with debits slower than the others, read strong and latest.

The ingest job goes on (or, with --keep, just runs on); one application holds the aligned streams
and whoever reads them. What it reads is shown while it does so.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strandline.demo import lake as demo_lake
from strandline.demo import report as demo_report
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoProcess, Processes
from strandline.demo.watch import Watch
from strandline.errors import DemoError

READS = 10
SECONDS = 240
EXAMPLE = "bank_aligned"
ABOUT = """
The same bank, aligned: credits, debits and balance carry the barriers of lake.bank.transfers,
and debits is slow. Every credit is somebody's debit, so the difference should be 0, and is in
every strong read. That all tables are read as of one instant does not help:
"""


@dataclass(frozen=True, slots=True)
class SecondAct:
    """The second act's processes: the application that ends by itself, and the ingest job.

    The ingest job only if it was started for it.
    """

    bank: Bank
    application: DemoProcess
    ingest: DemoProcess | None

    def end(self, watch: Watch) -> None:
        """Let the ingest job end between two micro-batches."""
        if self.ingest is not None:
            stop_of_ingest(self.bank).touch()
            deadline = time.monotonic() + SECONDS
            while self.ingest.running and time.monotonic() < deadline:
                watch.look()
                time.sleep(0.1)


def start(bank: Bank, keep: bool, started: Processes) -> SecondAct:
    """Make the tables and start the streams."""
    demo_lake.make_tables(bank, EXAMPLE)
    application = started.start(
        "aligned", bank.job("together", EXAMPLE), bank.folder, environ_of_streams(bank)
    )
    if keep:
        return SecondAct(bank, application, None)
    environ = bank.environ(keep=True) | {"BANK_STOP": str(stop_of_ingest(bank))}
    return SecondAct(
        bank, application, started.start("ingest", bank.job("ingest"), bank.folder, environ)
    )


def environ_of_streams(bank: Bank) -> dict[str, str]:
    """The environment of the application.

    Ten reads of each kind, debits every three seconds, two cores.
    """
    return bank.environ(keep=False) | {
        "BANK_READS": str(min(READS, bank.rounds)),
        "BANK_SLOW_TRIGGER": "3 seconds",
        "BANK_START": "latest",
        "BANK_READ_SECONDS": "1",
        "BANK_CHECKPOINTS": str(bank.folder / "checkpoints" / "aligned"),
        "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell",
    }


def stop_of_ingest(bank: Bank) -> Path:
    """The stop file of the ingest job alone."""
    return bank.folder / "stop-ingest"


def show(act: SecondAct, watch: Watch) -> None:
    """Show each read while the streams run; raise DemoError when a strong one was wrong."""
    deadline = time.monotonic() + SECONDS
    lines = table_in(act.application)
    print(ABOUT, flush=True)
    while act.application.running:
        watch.look()
        if show_new(lines):
            deadline = time.monotonic() + SECONDS  # a busy machine is slow, not stuck
        if time.monotonic() > deadline:
            raise DemoError(
                f"the aligned streams made nothing new for {SECONDS} s; see {act.application.log}"
            )
        time.sleep(0.3)
    act.application.check()
    show_new(lines)
    tell(act.bank)
    act.end(watch)


def table_in(part: DemoProcess) -> Iterator[str | None]:
    """Yield the lines of the table that a part writes to its log; None while none is new."""
    with part.log.open(errors="replace") as log:
        held = ""
        while True:
            held += log.readline()
            if not held.endswith("\n"):
                yield None
            else:
                if held.startswith("|"):
                    yield held.rstrip()
                held = ""


def show_new(lines: Iterator[str | None]) -> bool:
    """Show the new lines, and return whether there were any."""
    shown = False
    while (line := next(lines)) is not None:
        print(f"  {line}", flush=True)
        shown = True
    return shown


def tell(bank: Bank) -> None:
    """Print what the two kinds of balances came to."""
    aligned, naive = (
        demo_lake.totals(bank, f"aligned.{name}") for name in ("balance", "naive_balance")
    )
    print("\nThe sum of all balances, snapshot by snapshot (nobody made money, so it should be 0):")
    print(f"  aligned stream   {' '.join(map(str, aligned))}")
    print(f"  ordinary stream  {' '.join(map(str, naive))}", flush=True)
    demo_report.say("the aligned streams have ended")
