"""Files of the store, which belong to one user and, while it runs, to one server."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.errors import RefusedError

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]


def make_private(file: Path) -> None:
    """Create a file that only its user can read, and its folder likewise.

    An existing file or folder stays as it is.
    """
    if not file.parent.exists():
        file.parent.mkdir(parents=True, mode=0o700)
        file.parent.chmod(0o700)
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:  # it exists, or the database will say better why it cannot be created
        return


@contextmanager
def held_by_one_server(file: Path | None) -> Iterator[None]:
    """Hold an SQLite file for this server, or raise RefusedError while another has it.

    The lock ends with the process.
    """
    if file is None or fcntl is None:
        yield
        return
    beside = _lock_of(file)
    make_private(beside)
    with beside.open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RefusedError(
                f"another strandline serve has {file} open; one SQLite file is for one server:"
                " stop it, or give this one another --database-url"
                " (several servers need PostgreSQL)",
                code="in_use",
            ) from None
        yield


def has_server(file: Path) -> bool:
    """Return whether a server has an SQLite file open."""
    if fcntl is None or not _lock_of(file).exists():
        return False
    with _lock_of(file).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _lock_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.server")
