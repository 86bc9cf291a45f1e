"""The demo on real parts, as a user runs it: Spark, Iceberg, Kafka, the collector.

Then the same under kill -9.

Tables are looked up in Iceberg's own metadata through pyiceberg, never in what the demo says of
itself.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.cli.commands import demo
from strandline.demo import bank as demo_bank
from strandline.demo import lake as demo_lake
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoProcess, Processes, processes
from worlds.aligned_tables import faults_of, tables_in
from worlds.bank import (
    JOB_TABLES,
    SECONDS,
    Rows,
    contents,
    kill,
    metadata_of,
    rows_of,
    wait_for_bank,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 4
STREAMS = {
    ("bank_ingest.ingest", "transfers"),
    ("bank_credits.credits", "credits"),
    ("bank_debits.debits", "debits"),
    ("bank_balance.balance", "balance"),
}
ALIGNED = {
    ("bank_aligned.credits", "credits"),
    ("bank_aligned.debits", "debits"),
    ("bank_aligned.balance", "balance"),
    ("bank_aligned.naive_balance", "naive_balance"),
}
READS = {
    ("bank_credits.credits", "transfers"),
    ("bank_debits.debits", "transfers"),
    ("bank_balance.balance", "credits"),
    ("bank_balance.balance", "debits"),
}
ALIGNED_READS = {
    ("bank_aligned.credits", "transfers"),
    ("bank_aligned.debits", "transfers"),
    ("bank_aligned.balance", "credits"),
    ("bank_aligned.balance", "debits"),
    ("bank_aligned.naive_balance", "credits"),
    ("bank_aligned.naive_balance", "debits"),
}


@dataclass(frozen=True)
class FinishedDemo:
    """A demo that has run: what it said, what was seen live while it ran, its folder, and a collector on its data."""

    result: subprocess.CompletedProcess[str]
    seen_live: set[tuple[str, str]]
    folder: Path
    url: str

    def rows(self, table: str, state: str = "running") -> Rows:
        """The rows of one of the proposals' tables."""
        return rows_of(self.url, table, state)


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, iceberg_jars: str, kafka: str
) -> Iterator[FinishedDemo]:
    """`strandline demo`, run once for all tests that look at what it leaves."""
    folder = tmp_path_factory.mktemp("demo") / "bank"
    port = demo_bank.port_or_another(0)
    command = [
        sys.executable,
        "-m",
        "strandline",
        "demo",
        "--rounds",
        str(ROUNDS),
        "--dir",
        str(folder),
    ]
    running = subprocess.Popen(
        [*command, "--port", str(port)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = watch(running, f"http://127.0.0.1:{port}")
    output, errors = running.communicate(timeout=SECONDS)
    result = subprocess.CompletedProcess(command, running.returncode, output, errors)
    assert result.returncode == 0, errors
    bank = Bank(ROOT, folder, ROUNDS, port)
    with processes(folder / "logs") as started:
        demo.start_collector(bank, None, started)
        yield FinishedDemo(result, seen, folder, bank.url)


def watch(running: subprocess.Popen[str], url: str) -> set[tuple[str, str]]:
    """All (job, table) that were live at some moment of the demo."""
    seen: set[tuple[str, str]] = set()
    deadline = time.monotonic() + SECONDS
    while running.poll() is None and time.monotonic() < deadline:
        with suppress(OSError):  # not there yet, or gone already
            seen |= {(row["job"], row["table"]) for row in rows_of(url, "sink_job_lineage")}
        time.sleep(1)
    return seen


def test_demo_prints_its_report_and_leaves_nothing_running(finished: FinishedDemo) -> None:
    processes_left = [
        command
        for command in Path("/proc").glob("[0-9]*/cmdline")
        if str(finished.folder).encode() in read(command)
    ]

    assert "Lineage of lake.bank.balance" in finished.result.stdout
    assert "bank_balance.balance" in finished.result.stdout
    assert "Kafka listens on 127.0.0.1:" in finished.result.stderr
    assert [path for path in processes_left if b"serve" not in read(path)] == []


def read(path: Path) -> bytes:
    """A file of /proc, empty once its process is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_running_tables_listed_the_jobs_and_are_empty_afterwards(finished: FinishedDemo) -> None:
    assert finished.seen_live >= STREAMS | ALIGNED
    assert {table: finished.rows(table) for table in JOB_TABLES} == {
        table: [] for table in JOB_TABLES
    }


def test_history_contains_all_past_edges(finished: FinishedDemo) -> None:
    sinks = {(row["job"], row["table"]) for row in finished.rows("sink_job_lineage", "history")}
    sources = {(row["job"], row["table"]) for row in finished.rows("source_job_lineage", "history")}

    assert sinks == STREAMS | ALIGNED | {("bank_report.lake.bank.report", "report")}
    assert sources == READS | ALIGNED_READS | {("bank_report.lake.bank.report", "balance")}


def test_every_snapshot_of_every_stream_has_one_row_and_is_in_the_tables_metadata(
    finished: FinishedDemo,
) -> None:
    real = metadata_of(finished.folder)
    rows = [row for row in finished.rows("sink_snapshot_lineage") if row["table"] != "report"]
    keys = [(row["job"], row["table"], row["barrier_id"]) for row in rows]
    told = {table: {row["snapshot_id"] for row in rows if name_of(row) == table} for table in real}

    assert len(keys) == len(set(keys))
    assert told | {"bank.report": real["bank.report"]} == real
    counts = {table: len(real[f"bank.{table}"]) for table in ("credits", "debits", "balance")}
    # A stream that is asked to stop may take one more.
    assert set(counts.values()) <= {ROUNDS, ROUNDS + 1}
    assert len(real["bank.report"]) == 1


def test_lineage_rebuilt_from_table_metadata_matches_the_collector(finished: FinishedDemo) -> None:
    made = tables_in(finished.folder).snapshots
    sinks = {
        (name, str(one.barrier), one.snapshot) for name, points in made.items() for one in points
    }
    sources = {
        (name, str(one.barrier), source.removeprefix("lake."), snapshot)
        for name, points in made.items()
        for one in points
        for source, snapshot in one.inputs.items()
    }
    told = [row for row in finished.rows("sink_snapshot_lineage") if name_of(row) in made]
    writes = {row["job"]: name_of(row) for row in told}
    read = [row for row in finished.rows("source_snapshot_lineage") if row["job"] in writes]

    assert {(name_of(row), row["barrier_id"], row["snapshot_id"]) for row in told} == sinks
    assert len({name for name, *_ in sources}) == 3
    assert {
        (writes[row["job"]], row["barrier_id"], name_of(row), row["snapshot_id"])
        for row in read
        if writes[row["job"]].startswith("aligned.")
    } == sources


def name_of(row: dict[str, str]) -> str:
    """database.table of a row."""
    return f"{row['database']}.{row['table']}"


def test_every_snapshot_that_was_read_is_in_the_tables_metadata(finished: FinishedDemo) -> None:
    real = metadata_of(finished.folder)
    rows = finished.rows("source_snapshot_lineage")
    keys = [(row["job"], row["table"], row["barrier_id"]) for row in rows]

    assert len(keys) == len(set(keys))
    assert [row for row in rows if row["snapshot_id"] not in real[name_of(row)]] == []
    assert {(row["job"], row["table"]) for row in rows} >= READS | ALIGNED_READS


def test_a_micro_batch_reads_the_snapshot_of_its_own_round(finished: FinishedDemo) -> None:
    made = {
        (row["table"], row["barrier_id"]): row["snapshot_id"]
        for row in finished.rows("sink_snapshot_lineage")
        if row["database"] == "bank"
    }
    reads = {
        (row["job"], row["table"], row["barrier_id"]): row["snapshot_id"]
        for row in finished.rows("source_snapshot_lineage")
        if (row["job"], row["table"])
        in {("bank_credits.credits", "transfers"), ("bank_debits.debits", "transfers")}
    }

    assert reads == {(job, table, barrier): made[table, barrier] for job, table, barrier in reads}
    for job in ("bank_credits.credits", "bank_debits.debits"):
        barriers = sorted(int(barrier) for reader, _, barrier in reads if reader == job)
        assert barriers == list(range(1, len(barriers) + 1))
        assert len(barriers) >= ROUNDS  # a stream that is asked to stop may take one more


def test_strong_reads_and_aligned_tables_match_the_transfers(finished: FinishedDemo) -> None:
    reads = [
        line.split() for line in finished.result.stdout.splitlines() if re.match(r"  \| +\d", line)
    ]
    found = tables_in(finished.folder)

    assert len(reads) == ROUNDS
    assert [(credits, "0") for _, _, _, credits, *_ in reads] == [
        (debits, zero) for _, _, _, _, debits, zero, *_ in reads
    ]
    assert faults_of(found) == []
    assert {sum(balances.values()) for balances in found.sums["balance"].values()} == {0}


@dataclass
class DemoUnderKills:
    """An aligned bank that was read all the while.

    Its collector was killed in the middle, and then the debits job.
    """

    bank: Bank
    bootstrap: str
    started: Processes
    collector: DemoProcess
    reader: DemoProcess

    def start(self, name: str) -> DemoProcess:
        """Start one of the aligned jobs."""
        environ = self.bank.environ(keep=True)
        return self.started.start(
            name, self.bank.job(name, "bank_aligned"), self.bank.folder, environ
        )


@pytest.fixture(scope="module")
def under_kills(
    tmp_path_factory: pytest.TempPathFactory, iceberg_jars: str, kafka: str
) -> Iterator[DemoUnderKills]:
    """The aligned bank under kill -9: first the collector, then the driver of debits."""
    bank = Bank(ROOT, tmp_path_factory.mktemp("under_kills"), 100, demo_bank.port_or_another(0))
    demo_bank.empty_folder(bank.folder)
    with processes(bank.folder / "logs") as started:
        bootstrap = demo.start_broker(bank, started)
        assert bootstrap is not None
        collector = demo.start_collector(bank, bootstrap, started)
        demo_bank.write_conf(
            bank, iceberg_jars, demo_bank.kafka_transport(bootstrap), cores=1, lease_seconds=15
        )
        demo_lake.make_tables(bank)
        demo_lake.make_tables(bank, "bank_aligned")
        started.start("ingest", bank.job("ingest"), bank.folder, bank.environ(keep=True))
        parts = start_aligned(bank, started)
        wait_for_bank(lambda: shown(parts["reads"]) >= 2)
        kill(collector)
        before = made(bank)
        wait_for_bank(lambda: made(bank) >= before + 2)
        collector = demo.start_collector(bank, bootstrap, started)
        kill(parts["debits"])
        yield DemoUnderKills(bank, bootstrap, started, collector, parts["reads"])


def start_aligned(bank: Bank, started: Processes) -> dict[str, DemoProcess]:
    """Start the aligned jobs, each by itself, and a reader who goes on until all stop."""
    environ = bank.environ(keep=True) | {"BANK_READS": "1000000"}
    names = ("credits", "debits", "balance", "reads")
    return {
        name: started.start(name, bank.job(name, "bank_aligned"), bank.folder, environ)
        for name in names
    }


def made(bank: Bank, table: str = "balance") -> int:
    """Count the checkpoints that have reached a table."""
    return len(demo_lake.snapshots(bank, "aligned")[table])


def shown(reader: DemoProcess) -> int:
    """Count the reads of each kind."""
    return len(re.findall(r"^\| +\d", reader.log.read_text(), re.MULTILINE))


def test_killed_driver_is_lost_after_its_heartbeat_timeout(under_kills: DemoUnderKills) -> None:
    url = under_kills.bank.url

    others = {job for job, table in STREAMS if table != "debits"}
    wait_for_bank(lambda: {row["job"] for row in rows_of(url, "sink_job_lineage")} == others)

    lost = [
        row
        for row in rows_of(url, "sink_job_lineage", "history")
        if row["job"] == "bank_debits.debits"
    ]
    assert [(row["table"], row["state"]) for row in lost] == [("debits", "LOST")]


def test_kills_do_not_change_the_result(under_kills: DemoUnderKills) -> None:
    under_kills.start("debits")
    before, reads = made(under_kills.bank, "debits"), shown(under_kills.reader)
    wait_for_bank(
        lambda: made(under_kills.bank, "debits") >= before + 2 and shown(under_kills.reader) > reads
    )
    under_kills.bank.stop_file.touch()
    wait_for_bank(
        lambda: (
            not any(
                part.running
                for part in under_kills.started.parts
                if part.name not in ("collector", "kafka")
            )
        )
    )
    wait_for_bank(lambda: rows_of(under_kills.bank.url, "sink_job_lineage") == [])
    wait_for_bank(lambda: untold(under_kills.bank) == set())
    found = contents(under_kills.bank)
    under_kills.started.stop([under_kills.collector])
    fresh = Bank(ROOT, under_kills.bank.folder / "again", 100, demo_bank.port_or_another(0))
    fresh.folder.mkdir()

    demo.start_collector(fresh, under_kills.bootstrap, under_kills.started)

    assert under_kills.reader.process.returncode == 0, (
        under_kills.reader.last_lines()
    )  # 1 if a strong read was wrong
    assert faults_of(tables_in(under_kills.bank.folder), rejoined={"debits"}) == []
    wait_for_bank(lambda: contents(fresh) == found)


def untold(bank: Bank) -> set[str]:
    """The snapshots of all tables that the collector does not know."""
    known = {row["snapshot_id"] for row in rows_of(bank.url, "sink_snapshot_lineage")}
    real = (*demo_lake.snapshots(bank).values(), *demo_lake.snapshots(bank, "aligned").values())
    return {snapshot for snapshots in real for snapshot in snapshots} - known
