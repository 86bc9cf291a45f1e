"""Records the bank for `strandline demo --replay`: `.venv/bin/python examples/recorded/record.py`.

It takes ten minutes and 4 GB of memory. Four Spark drivers write one connected bank, all in
`lake.bank`: ingest, credits, debits (the slow one), balance. The report is made once, and
fails when it is made again, because its table exists. Then debits stops, and the others go on.
What the collector stored is written beside this file, as `bank.jsonl.gz`; only the folder's
name is replaced.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from strandline.cli.commands import demo
from strandline.demo import bank as demo_bank
from strandline.demo import lake as demo_lake
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoProcess, Processes, processes

ROOT = Path(__file__).resolve().parents[2]
RECORDING = Path(__file__).with_name("bank.jsonl.gz")
FOLDER = "/demo"  # what the recording calls the folder of its tables
HEARTBEAT_SECONDS = 240
START_SECONDS = 240
REPORT_AT, REPORT_AGAIN_AT, DEBITS_STOP_AT, END_AT = 100, 240, 300, 520  # seconds
PACE = {
    "BANK_DATABASE": "lake.bank",
    "BANK_TRIGGER": "8 seconds",
    "BANK_SLOW_TRIGGER": "11 seconds",
    "BANK_SECONDS": "600",
}


def record(folder: Path) -> None:
    """Run the bank in a folder, and write the recording."""
    bank = Bank(ROOT, folder, demo_bank.FOREVER, demo_bank.port_or_another(0))
    demo_bank.empty_folder(folder)
    jars = demo.fetch(bank, "iceberg-4.1", "Iceberg's Spark runtime")
    with processes(folder / "logs") as started:
        demo.start_collector(bank, None, started)
        transport = demo_bank.http_transport(bank.url)
        demo_bank.write_conf(bank, jars, transport, cores=1, lease_seconds=HEARTBEAT_SECONDS)
        demo_lake.make_tables(bank)
        play(bank, started)
        write_recording(bank)


def play(bank: Bank, started: Processes) -> None:
    """Start the streams, make the report twice, stop debits, and go on for a while."""
    start(bank, "ingest", "bank", started)
    for name in ("credits", "debits", "balance"):
        start(bank, name, "bank_aligned", started)
    wait_for_balance(bank)
    begun = time.monotonic()
    sleep_until(begun + REPORT_AT)
    report = start(bank, "report", "bank", started)
    sleep_until(begun + REPORT_AGAIN_AT)
    report.check()
    start(bank, "report", "bank", started)
    sleep_until(begun + DEBITS_STOP_AT)
    stop_file(bank, "debits").touch()
    sleep_until(begun + END_AT)


def start(bank: Bank, name: str, example: str, started: Processes) -> DemoProcess:
    """Start a job that has a stop file of its own."""
    environ = bank.environ(keep=True) | PACE | {"BANK_STOP": str(stop_file(bank, name))}
    return started.start(name, bank.job(name, example), bank.folder, environ)


def stop_file(bank: Bank, name: str) -> Path:
    """The file that ends a job between two micro-batches."""
    return bank.folder / f"stop-{name}"


def wait_for_balance(bank: Bank) -> None:
    """Wait until the last table of the chain has a snapshot, and so all have."""
    deadline = time.monotonic() + START_SECONDS
    while not demo_lake.snapshots(bank)["balance"]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"lake.bank.balance has no snapshot after {START_SECONDS} s")
        time.sleep(1)


def sleep_until(moment: float) -> None:
    """Sleep until a moment of the monotonic clock."""
    time.sleep(max(0.0, moment - time.monotonic()))


def write_recording(bank: Bank) -> None:
    """Write what the collector stored, in the order in which it was received."""
    archive = bank.folder / "archive"
    command = ["archive", "--to", str(archive), "--before", "now", "--database-url", bank.database]
    subprocess.run([sys.executable, "-m", "strandline", *command], check=True)
    received = (
        pq.read_table(archive, columns=["received_at", "body"]).sort_by("received_at").to_pylist()
    )
    lines = [line_of(row, str(bank.folder)) for row in received]
    with gzip.GzipFile(RECORDING, "wb", 9, mtime=0) as file:
        file.write("".join(lines).encode())
    print(f"{RECORDING}: {len(lines)} events, {RECORDING.stat().st_size:,} bytes")


def line_of(row: dict[str, Any], folder: str) -> str:
    """A line of the recording."""
    moment = datetime.fromtimestamp(row["received_at"] / 1_000_000, UTC).isoformat()
    event = json.loads(row["body"].decode().replace(folder, FOLDER))
    return (
        json.dumps(
            {"receivedAt": moment.replace("+00:00", "Z"), "event": event}, separators=(",", ":")
        )
        + "\n"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="strandline-bank-") as folder:
        record(Path(folder))
