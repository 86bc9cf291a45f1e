"""The demo's output: progress on stderr while it works, its results on stdout at the end."""

import shutil
import sqlite3
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from strandline.demo import lake as demo_lake
from strandline.demo.bank import TABLES, Bank, is_checkout
from strandline.demo.processes import DemoProcess
from strandline.errors import DemoError

Row = dict[str, str | int]


def say(text: str) -> None:
    """One line of progress."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


class Progress:
    """The number of snapshots of each table, and how many of them the collector knows.

    One line that grows on a terminal, else a line every few seconds.
    """

    _PAUSE = 5.0

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._begun = time.monotonic()
        self._last_line, self._said_at = "", float("-inf")
        self._live = sys.stderr.isatty()

    def rounds(self) -> int:
        """Return how many rounds have reached the last table."""
        return len(demo_lake.snapshots(self._bank).get("balance", []))

    def show(self, at_once: bool = False) -> None:
        """Say how far things are, if that has changed."""
        if not (self._live or at_once) and self.seconds() < self._said_at + self._PAUSE:
            return
        snapshots = demo_lake.snapshots(self._bank)
        counts = "  ".join(
            f"{table} {len(snapshots.get(table, [])):2}" for table in TABLES.values()
        )
        now = (
            f"snapshots: {counts}  known to the collector: "
            f"{len(rows(self._bank, 'sink_snapshot_lineage')):3}"
        )
        if now != self._last_line:
            begin, end = ("\r", "") if self._live else ("", "\n")
            print(
                f"{begin}demo: {self.seconds():4.0f} s  {now}", end=end, file=sys.stderr, flush=True
            )
            self._last_line, self._said_at = now, self.seconds()

    def end(self) -> None:
        """Leave the line."""
        self.show(at_once=True)
        if self._live:
            print(file=sys.stderr)

    def seconds(self) -> float:
        """Time since the streams were started."""
        return time.monotonic() - self._begun


def rows(bank: Bank, table: str) -> list[Row]:
    """Return the rows of one of the proposals' tables in the collector's database.

    None while the table does not exist.
    """
    try:
        with closing(
            sqlite3.connect(f"file:{bank.folder / 'strandline.db'}?mode=ro", uri=True, timeout=10)
        ) as store:
            store.row_factory = sqlite3.Row
            return [dict(row) for row in store.execute(f"SELECT * FROM {table}")]
    except sqlite3.OperationalError:
        return []


def wait_until_collected(bank: Bank, ended: Sequence[DemoProcess], seconds: float) -> None:
    """Wait until the collector knows every snapshot, and the end of all ended jobs.

    Raise DemoError when it does not.
    """
    deadline = time.monotonic() + seconds
    expected = made_by_streams(bank)  # of now: streams that stay up go on making more
    while waits_for := missing(bank, expected, bool(ended)):
        if time.monotonic() > deadline:
            raise DemoError(
                f"after {seconds:.0f} s the collector does not know {waits_for}; "
                f"see {bank.folder / 'logs'}"
            )
        time.sleep(0.2)


def made_by_streams(bank: Bank) -> dict[str, list[str]]:
    """The snapshots of all tables that streams write, in both acts."""
    plain, aligned = demo_lake.snapshots(bank), demo_lake.snapshots(bank, "aligned")
    return {f"bank.{name}": plain[name] for name in TABLES.values()} | {
        f"aligned.{name}": tables for name, tables in aligned.items()
    }


def missing(bank: Bank, expected: Mapping[str, Sequence[str]], all_ended: bool) -> str:
    """Describe the snapshots that the collector does not know yet; empty if there are none."""
    collected = {str(row["snapshot_id"]) for row in rows(bank, "sink_snapshot_lineage")}
    counts = {table: len(set(snapshots) - collected) for table, snapshots in expected.items()}
    unknown = [f"{count} of {table}" for table, count in counts.items() if count]
    parts = [f"snapshots ({', '.join(unknown)})"] if unknown else []
    if all_ended:
        running = {str(row["job"]) for row in rows(bank, "sink_job_lineage")}
        parts += [f"the end of {job}" for job in sorted(running)]
    return " and ".join(parts)


def tell(bank: Bank) -> None:
    """Print job and snapshot lineage of bank.balance."""
    sources, sinks = rows(bank, "source_snapshot_lineage"), rows(bank, "sink_snapshot_lineage")
    print("\nLineage of lake.bank.balance, by job:")
    for line in job_lines("bank.balance", sources, sinks):
        print(f"  {line}")
    print("\nLineage of its newest snapshot, down to the transfers:")
    of_table = (row for row in sinks if (row["database"], row["table"]) == ("bank", "balance"))
    newest = max(of_table, key=lambda row: int(row["barrier_id"]))
    for line in snapshot_lines(newest, sources, sinks, 0):
        print(f"  {line}")
    sys.stdout.flush()


def job_lines(table: str, sources: Sequence[Row], sinks: Sequence[Row]) -> list[str]:
    """`job: inputs -> outputs` for each job above a table, downstream first."""
    lines: dict[str, None] = {}
    waiting = [table]
    while waiting:
        written = waiting.pop(0)
        for job in dict.fromkeys(str(row["job"]) for row in sinks if name_of(row) == written):
            read = tables_of(job, sources)
            lines[f"{job}: {', '.join(read) or '(outside)'} -> {written}"] = None
            waiting += read
    return list(lines)


def tables_of(job: str, rows: Sequence[Row]) -> list[str]:
    """The tables of a job, in the order of their names."""
    return sorted({name_of(row) for row in rows if row["job"] == job})


def name_of(row: Row) -> str:
    """database.table of a row."""
    return f"{row['database']}.{row['table']}"


def snapshot_lines(
    snapshot: Row, sources: Sequence[Row], sinks: Sequence[Row], depth: int
) -> list[str]:
    """A snapshot, and below it the snapshots that it was made from."""
    job, barrier = snapshot["job"], snapshot["barrier_id"]
    lines = [
        (
            f"{'   ' * depth}{name_of(snapshot)} @ {snapshot['snapshot_id']}  by {job} "
            f"at barrier {barrier}"
        )
    ]
    for read in sources:
        if (read["job"], read["barrier_id"]) == (job, barrier):
            maker = [
                row
                for row in sinks
                if (name_of(row), row["snapshot_id"]) == (name_of(read), read["snapshot_id"])
            ]
            lines += snapshot_lines(maker[0], sources, sinks, depth + 1) if maker else []
    return lines


def tell_page(bank: Bank, stays: bool = True) -> None:
    """Print where the page is."""
    if stays:
        print(
            f"\nOpen {bank.url}/group?name=bank  (the bank's barriers; "
            f"{bank.url}/graph draws its lineage)",
            flush=True,
        )


def tell_recorded(bank: Bank) -> None:
    """Print what can be asked of the recorded bank while it is served."""
    print(
        "This is a recorded demo: the bank's jobs do not run on this machine, and its moments are "
        "moved to now.\n"
        f"Ask in another shell, until Ctrl-C here:\n{questions(bank, 'lake.bank')}",
        flush=True,
    )


def tell_next(bank: Bank) -> None:
    """Print where the data is and what to try next, after everything has stopped."""
    print(f"""
The collector's data is {bank.database},
the tables are in {bank.folder / "lake"}. To look further:
  {command()} serve --database-url {bank.database}
      and then open {bank.url}/group?name=bank, or in another shell:
{questions(bank)}
  {again(bank)}        the same, and the streams go on while you ask
""")


def tell_while_up(bank: Bank) -> None:
    """Print what can be asked while everything runs."""
    print(
        f"""
The streams go on until Ctrl-C. Open {bank.url}/group?name=bank, or ask the collector:
{questions(bank)}
  curl '{bank.url}/api/v2/tables/sink_job_lineage'        what runs now
  curl '{bank.url}/api/v2/tables/sink_snapshot_lineage'   every snapshot, its job and barrier
  {bank.url}/docs                                         everything that can be asked
Kill what you like (`kill -9`): the collector comes back; a driver's edges go when its heartbeat
timeout is over, as LOST.
""",
        flush=True,
    )


def again(bank: Bank) -> str:
    """Return the command that runs the demo and keeps it running."""
    return "make demo KEEP=1" if is_checkout(bank.root) else f"{command()} demo --keep"


def command() -> str:
    """Return how this installation's `strandline` is called from here."""
    if shutil.which("strandline"):
        return "strandline"
    installed = Path(sys.executable).with_name("strandline")
    return str(
        installed.relative_to(Path.cwd()) if installed.is_relative_to(Path.cwd()) else installed
    )


def questions(bank: Bank, database: str = "lake.aligned") -> str:
    """Return commands to try on the running collector, about the aligned tables of a database."""
    tables = " ".join(f"{database}.{name}" for name in ("credits", "debits", "balance"))
    return "\n".join(
        (
            f"  export STRANDLINE_URL={bank.url}",
            f"  {command()} lineage {database}.balance",
            f"  {command()} versions {tables}",
        )
    )
