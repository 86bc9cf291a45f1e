"""Data.Rentgen from PyPI on the same broker, the same PostgreSQL and the same events, in an environment of its own.

It stores runs, operations, inputs, outputs and column lineage, and no raw events. Its package allows versions of
SQLAlchemy that it cannot work with, so that one is held back; one of its tables needs an extension of PostgreSQL that the
wheel lacks (properties of users, which its consumer never touches), so that migration is passed over.
"""

import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from sqlalchemy import create_engine, text

from bench import _senders
from bench._machine import Server, cpu_micros, wait_for
from bench.events import events
from bench.report import record

PACKAGES = ("data-rentgen[consumer,postgres]==0.3.1", "sqlalchemy<2.1")
NEEDS_EXTENSION = "56f5a3f9442a"
TOPIC, PARTITIONS = "peer", 2
EVENTS, WARM = 450, 0  # it commits row by row: a few events a second on a disk that is waited for
INSTALL_SECONDS, RUN_SECONDS = 600, 400


def run(folder: Path, bootstrap: str, server: Server, ours: float) -> None:
    """Record how fast it is, and how many times as fast we are; say so where it cannot be run here."""
    try:
        python = installed(folder / "peer")
        rate, micros = _measured(python, folder, bootstrap, server)
    except (subprocess.SubprocessError, TimeoutError, OSError) as error:
        print(f"Data.Rentgen cannot be run here: {_reason(error)}", file=sys.stderr)
        return
    record("ingest.peer.data_rentgen", rate, "events/s", note="same broker, same PostgreSQL, same events")
    record("ingest.peer.data_rentgen.cpu", micros, "us/event")
    record("ingest.peer.gain", ours / rate, "x Data.Rentgen", ">= 5", ours / rate >= 5)


def installed(folder: Path) -> Path:
    """The interpreter of an environment with the peer."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    _call([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], os.environ, INSTALL_SECONDS)
    return python


def _measured(python: Path, folder: Path, bootstrap: str, server: Server) -> tuple[float, float]:
    environ = _prepared(python, bootstrap, server)
    _senders.make_topic(bootstrap, TOPIC, PARTITIONS)
    _senders.send(bootstrap, TOPIC, events(EVENTS), PARTITIONS)
    engine = create_engine(server.url("peer"))
    try:
        with _consuming(python, environ, folder / "peer.log") as pid:
            wait_for(lambda: _taken(bootstrap) > WARM, RUN_SECONDS)
            first, began, cpu = _taken(bootstrap), time.monotonic(), cpu_micros(pid, server.pid)
            wait_for(lambda: _taken(bootstrap) >= EVENTS, RUN_SECONDS)
            seconds, micros = time.monotonic() - began, cpu_micros(pid, server.pid) - cpu
        with engine.connect() as connection:
            if not connection.scalar(text("SELECT count(*) FROM column_lineage")):
                raise OSError("it took every event and stored none")
    finally:
        engine.dispose()
    return (EVENTS - first) / seconds, micros / (EVENTS - first)


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
    }
    migrate = [str(python), "-m", "data_rentgen.db.migrations"]
    for step in (("upgrade", f"{NEEDS_EXTENSION}-1"), ("stamp", NEEDS_EXTENSION), ("upgrade", "head")):
        _call([*migrate, *step], environ, RUN_SECONDS)
    partitions = ["--start", "2026-01-01", "--end", "2026-03-01"]
    _call([str(python), "-m", "data_rentgen.db.scripts.create_partitions", *partitions], environ, RUN_SECONDS)
    return environ


@contextmanager
def _consuming(python: Path, environ: Mapping[str, str], log: Path) -> Iterator[int]:
    with log.open("wb") as output:
        running = subprocess.Popen(
            [str(python), "-m", "data_rentgen.consumer"], env=environ, stdout=output, stderr=output
        )
    try:
        yield running.pid
    finally:
        running.kill()
        running.wait(60)


def _taken(bootstrap: str) -> int:
    """How many records its group has committed."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        found: Mapping[Any, Any] = admin.list_group_offsets({"data-rentgen": None})["data-rentgen"]
    except KafkaError:  # the group is not known yet
        return 0
    finally:
        admin.close()
    return sum(max(0, offset.offset) for offset in found.values())


def _call(command: list[str], environ: Mapping[str, str], seconds: float) -> None:
    subprocess.run(command, env=environ, timeout=seconds, check=True, capture_output=True)


def _reason(error: Exception) -> str:
    output = getattr(error, "stderr", None) or b""
    return output.decode(errors="replace").strip().rpartition("\n")[2] or str(error)
