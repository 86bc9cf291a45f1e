"""The demo on real parts, as a user runs it: Spark, Iceberg, Kafka, the collector; then the same under kill -9.

Tables are looked up in Iceberg's own metadata through pyiceberg, never in what the demo says of itself.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bank import JOB_TABLES, SECONDS, Rows, contents, kill, metadata_of, rows_of, until
from strandline.cli import demo, demo_bank, demo_lake
from strandline.cli.demo_bank import Bank
from strandline.cli.demo_processes import Part, Processes, processes

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 4
STREAMS = {
    ("bank_ingest.ingest", "transfers"),
    ("bank_credits.credits", "credits"),
    ("bank_debits.debits", "debits"),
    ("bank_balance.balance", "balance"),
}
READS = {
    ("bank_credits.credits", "transfers"),
    ("bank_debits.debits", "transfers"),
    ("bank_balance.balance", "credits"),
    ("bank_balance.balance", "debits"),
}


@dataclass(frozen=True)
class Ended:
    """A demo that has run: what it said, what was seen live while it ran, its folder, and a collector on its data."""

    told: subprocess.CompletedProcess[str]
    seen_live: set[tuple[str, str]]
    folder: Path
    url: str

    def rows(self, table: str, state: str = "live") -> Rows:
        """The rows of one of the proposals' tables."""
        return rows_of(self.url, table, state)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, iceberg_jars: str, kafka: str) -> Iterator[Ended]:
    """`strandline demo`, run once for all tests that look at what it leaves."""
    folder = tmp_path_factory.mktemp("demo") / "bank"
    port = demo_bank.port_or_another(0)
    command = [sys.executable, "-m", "strandline", "demo", "--rounds", str(ROUNDS), "--dir", str(folder)]
    running = subprocess.Popen(
        [*command, "--port", str(port)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    seen = watch(running, f"http://127.0.0.1:{port}")
    output, errors = running.communicate(timeout=SECONDS)
    told = subprocess.CompletedProcess(command, running.returncode, output, errors)
    assert told.returncode == 0, errors
    bank = Bank(ROOT, folder, ROUNDS, port)
    with processes(folder / "logs") as started:
        demo.start_collector(bank, None, started)
        yield Ended(told, seen, folder, bank.url)


def watch(running: subprocess.Popen[str], url: str) -> set[tuple[str, str]]:
    """All (job, table) that were live at some moment of the demo."""
    seen: set[tuple[str, str]] = set()
    deadline = time.monotonic() + SECONDS
    while running.poll() is None and time.monotonic() < deadline:
        if demo.answers(f"{url}/healthz"):
            seen |= {(row["job"], row["table"]) for row in rows_of(url, "sink_job_lineage")}
        time.sleep(1)
    return seen


def test_the_demo_says_what_it_saw_and_leaves_nothing_running(ended: Ended) -> None:
    processes_left = [
        command for command in Path("/proc").glob("[0-9]*/cmdline") if str(ended.folder).encode() in read(command)
    ]

    assert "Lineage of lake.bank.balance" in ended.told.stdout
    assert "bank_balance.balance" in ended.told.stdout
    assert "Kafka listens on 127.0.0.1:" in ended.told.stderr
    assert [path for path in processes_left if b"serve" not in read(path)] == []


def read(path: Path) -> bytes:
    """A file of /proc, empty once its process is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_live_tables_held_the_running_jobs_and_are_empty_after(ended: Ended) -> None:
    assert ended.seen_live >= STREAMS
    assert {table: ended.rows(table) for table in JOB_TABLES} == {table: [] for table in JOB_TABLES}


def test_history_has_what_was_live(ended: Ended) -> None:
    sinks = {(row["job"], row["table"]) for row in ended.rows("sink_job_lineage", "history")}
    sources = {(row["job"], row["table"]) for row in ended.rows("source_job_lineage", "history")}

    assert sinks == STREAMS | {("bank_report.bank.report", "report")}
    assert sources == READS | {("bank_report.bank.report", "balance")}


def test_every_snapshot_of_every_stream_has_one_row_and_is_in_the_tables_metadata(ended: Ended) -> None:
    real = metadata_of(ended.folder)
    rows = [row for row in ended.rows("sink_snapshot_lineage") if row["table"] != "report"]
    keys = [(row["job"], row["table"], row["barrier_id"]) for row in rows]

    assert len(keys) == len(set(keys)) == 4 * ROUNDS
    for table in ("transfers", "credits", "debits", "balance"):
        assert {row["snapshot_id"] for row in rows if row["table"] == table} == real[table]
    assert len(real["report"]) == 1


def test_every_snapshot_that_was_read_is_in_the_tables_metadata(ended: Ended) -> None:
    real = metadata_of(ended.folder)
    rows = ended.rows("source_snapshot_lineage")
    keys = [(row["job"], row["table"], row["barrier_id"]) for row in rows]

    assert len(keys) == len(set(keys))
    assert [row for row in rows if row["snapshot_id"] not in real[row["table"]]] == []
    assert {(row["job"], row["table"]) for row in rows} >= READS


def test_a_micro_batch_reads_the_snapshot_of_its_own_round(ended: Ended) -> None:
    made = {(row["table"], row["barrier_id"]): row["snapshot_id"] for row in ended.rows("sink_snapshot_lineage")}
    reads = {
        (row["job"], row["table"], row["barrier_id"]): row["snapshot_id"]
        for row in ended.rows("source_snapshot_lineage")
        if (row["job"], row["table"]) in {("bank_credits.credits", "transfers"), ("bank_debits.debits", "transfers")}
    }

    assert reads == {(job, table, barrier): made[table, barrier] for job, table, barrier in reads}
    assert len(reads) == 2 * ROUNDS


@dataclass
class Struck:
    """A bank whose collector was killed in the middle, and whose debits driver was killed before the end."""

    bank: Bank
    bootstrap: str
    started: Processes
    collector: Part


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory, iceberg_jars: str, kafka: str) -> Iterator[Struck]:
    """The bank under kill -9: first the collector, then the driver of debits."""
    bank = Bank(ROOT, tmp_path_factory.mktemp("struck"), 100, demo_bank.port_or_another(0))
    demo_bank.empty_folder(bank.folder)
    with processes(bank.folder / "logs") as started:
        bootstrap = demo.start_broker(bank, started)
        assert bootstrap is not None
        collector = demo.start_collector(bank, bootstrap, started)
        demo_bank.write_conf(bank, iceberg_jars, demo_bank.kafka_transport(bootstrap), cores=1, lease_seconds=6)
        demo_lake.make_tables(bank)
        streams = demo.start_streams(bank, False, False, started)
        until(lambda: len(rows_of(bank.url, "sink_snapshot_lineage")) >= 4)
        kill(collector)
        before = len(demo_lake.snapshots(bank)["balance"])
        until(lambda: len(demo_lake.snapshots(bank)["balance"]) >= before + 2)
        collector = demo.start_collector(bank, bootstrap, started)
        kill(next(part for part in streams if part.name == "debits"))
        yield Struck(bank, bootstrap, started, collector)


def test_a_killed_driver_is_lost_by_its_lease(struck: Struck) -> None:
    url = struck.bank.url

    others = {job for job, table in STREAMS if table != "debits"}
    until(lambda: {row["job"] for row in rows_of(url, "sink_job_lineage")} == others, 60)

    lost = [row for row in rows_of(url, "sink_job_lineage", "history") if row["job"] == "bank_debits.debits"]
    assert [(row["table"], row["state"]) for row in lost] == [("debits", "LOST")]


def test_a_killed_collector_changes_nothing_in_the_end(struck: Struck) -> None:
    struck.bank.stop_file.touch()
    demo.let_end([part for part in struck.started.parts if part.name in demo_bank.STREAMS])
    until(lambda: rows_of(struck.bank.url, "sink_job_lineage") == [], 60)
    found = contents(struck.bank)
    known = {row["snapshot_id"] for row in rows_of(struck.bank.url, "sink_snapshot_lineage")}
    real = demo_lake.snapshots(struck.bank)
    struck.started.stop([struck.collector])
    fresh = Bank(ROOT, struck.bank.folder / "again", 100, demo_bank.port_or_another(0))
    fresh.folder.mkdir()

    demo.start_collector(fresh, struck.bootstrap, struck.started)

    until(lambda: contents(fresh) == found, 60)
    assert known >= {snapshot for table in ("transfers", "credits", "balance") for snapshot in real[table]}
