"""Data.Rentgen from PyPI on the same broker, the same PostgreSQL and the same events, in an environment of its own.

It stores runs, operations, inputs, outputs and column lineage, and no raw events. Its package allows versions of
SQLAlchemy that it cannot work with, so that one is held back; its consumer imports what only its server asks for; one of its tables
needs an extension of PostgreSQL that the wheel lacks (properties of users, which its consumer never touches), so that
migration is passed over.
"""

import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text

from bench import _senders
from bench._machine import Server, cpu_micros, wait_for
from bench.events import events
from bench.report import record

PACKAGES = ("data-rentgen[consumer,server,postgres]==0.3.1", "sqlalchemy<2.1")
NEEDS_EXTENSION = "56f5a3f9442a"
TOPIC, PARTITIONS = "peer", 2
# It commits row by row, which takes long where the disk or the processor is waited for: after a
# first batch, in which every name comes once (and ANALYZE, as for a database that has been there
# for a while), it gets so much time.
EVENTS = 6000
INSTALL_SECONDS, WARM_SECONDS, RUN_SECONDS = 600, 420, 240
BATCH = re.compile(r"Got (\d+) messages|(Saved successfully)")


def run(folder: Path, bootstrap: str, server: Server, ours: float, ours_micros: float) -> None:
    """Record how fast it is, and how many times as fast we are; say so where it cannot be run here.

    `ours`: our events a second from a warm topic in this run, with the processor time of each.
    """
    try:
        python = installed(folder / "peer")
        rate, micros = _measured(python, folder, bootstrap, server)
    except (subprocess.SubprocessError, TimeoutError, OSError) as error:
        print(f"Data.Rentgen cannot be run here: {_reason(error)}", file=sys.stderr)
        return
    record(
        "ingest.peer.data_rentgen",
        rate,
        "events/s",
        note="same broker, same PostgreSQL, same events",
    )
    record("ingest.peer.data_rentgen.cpu", micros, "us/event")
    record("ingest.peer.gain", ours / rate, "x Data.Rentgen", ">= 5", ours / rate >= 5)
    note = "processor time an event, theirs by ours: other load on the machine changes it less"
    record(
        "ingest.peer.gain_cpu",
        micros / ours_micros,
        "x Data.Rentgen",
        ">= 5",
        micros / ours_micros >= 5,
        note,
    )


def installed(folder: Path) -> Path:
    """The interpreter of an environment with the peer."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    _call([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], os.environ, INSTALL_SECONDS)
    return python


@dataclass(frozen=True)
class Mark:
    """The number of stored events at a moment, and the processor time until then."""

    stored: int
    at: float
    cpu: float


@dataclass(frozen=True)
class Running:
    """Its consumer, at work.

    What it stored stands in its log, for its offsets are committed before.
    """

    process: subprocess.Popen[bytes]
    log: Path
    server: Server

    def next_batch(self, after: int, seconds: float) -> Mark:
        """The moment at which a batch was stored, and with it more events than `after`."""
        wait_for(lambda: self._stored() > after, seconds)
        return Mark(self._stored(), time.monotonic(), cpu_micros(self.process.pid, self.server.pid))

    def _stored(self) -> int:
        if self.process.poll() is not None:
            raise OSError("its consumer ended by itself")
        stored = batch = 0
        for size, saved in BATCH.findall(self.log.read_text(encoding="utf-8", errors="replace")):
            batch = int(size) if size else batch
            stored += batch if saved else 0
        return stored


def _measured(python: Path, folder: Path, bootstrap: str, server: Server) -> tuple[float, float]:
    """Events a second and processor time an event, from the end of a batch to the end of another one."""
    environ = _prepared(python, bootstrap, server)
    _senders.make_topic(bootstrap, TOPIC, PARTITIONS)
    _senders.send(bootstrap, TOPIC, events(EVENTS), PARTITIONS)
    with _consuming(python, environ, folder / "peer.log", server) as running:
        running.next_batch(0, WARM_SECONDS)
        _analyze(server)
        first = last = running.next_batch(0, WARM_SECONDS)
        until = time.monotonic() + RUN_SECONDS
        with suppress(TimeoutError):
            while last.stored < EVENTS:
                last = running.next_batch(last.stored, until - time.monotonic())
    measured = last.stored - first.stored
    if not measured:
        raise TimeoutError(f"it stored no batch in {RUN_SECONDS} s")
    return measured / (last.at - first.at), (last.cpu - first.cpu) / measured


def _analyze(server: Server) -> None:
    engine = create_engine(server.url("peer"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("ANALYZE"))
        lineage = connection.scalar(text("SELECT count(*) FROM column_lineage"))
    engine.dispose()
    if not lineage:
        raise OSError("it took events and stored no column lineage")


def _prepared(python: Path, bootstrap: str, server: Server) -> Mapping[str, str]:
    """Its database, migrated; gives the environment of its processes."""
    engine = create_engine(server.url("postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE peer"))
    engine.dispose()
    environ = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "DATA_RENTGEN__DATABASE__URL": f"postgresql+asyncpg://postgres@/peer?host={server.socket}",
        "DATA_RENTGEN__KAFKA__BOOTSTRAP_SERVERS": f'["{bootstrap}"]',
        "DATA_RENTGEN__CONSUMER__TOPICS_LIST": f'["{TOPIC}"]',
        "DATA_RENTGEN__CONSUMER__AUTO_OFFSET_RESET": "earliest",
        # as its manual shows: fewer, larger batches
        "DATA_RENTGEN__CONSUMER__MAX_PARTITION_FETCH_BYTES": "5MiB",
    }
    migrate = [str(python), "-m", "data_rentgen.db.migrations"]
    for step in (
        ("upgrade", f"{NEEDS_EXTENSION}-1"),
        ("stamp", NEEDS_EXTENSION),
        ("upgrade", "head"),
    ):
        _call([*migrate, *step], environ, RUN_SECONDS)
    partitions = ["--start", "2026-01-01", "--end", "2026-03-01"]
    _call(
        [str(python), "-m", "data_rentgen.db.scripts.create_partitions", *partitions],
        environ,
        RUN_SECONDS,
    )
    return environ


@contextmanager
def _consuming(
    python: Path, environ: Mapping[str, str], log: Path, server: Server
) -> Iterator[Running]:
    with log.open("wb") as output:
        command = [str(python), "-m", "data_rentgen.consumer"]
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=output)
    try:
        yield Running(process, log, server)
    finally:
        process.kill()
        process.wait(60)


def _call(command: list[str], environ: Mapping[str, str], seconds: float) -> None:
    subprocess.run(command, env=environ, timeout=seconds, check=True, capture_output=True)


def _reason(error: Exception) -> str:
    output = getattr(error, "stderr", None) or b""
    return output.decode(errors="replace").strip().rpartition("\n")[2] or str(error)
