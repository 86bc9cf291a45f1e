"""The databases of all worlds, one after the other: a file that begins anew with each seed, while engines keep the SQL they compiled.

What compiles statements costs more than what runs them, and says nothing about faults; so worlds share it, and nothing else.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from fault_world.injector import Injector
from strandline.store.sql.engine import make_engine, migrate


class Eyes:
    """Looks at a file past the program and its faults, and knows when nothing was committed since it looked."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._version: Any = None

    def has_changed(self) -> bool:
        """Whether anybody has committed anything since this was asked before."""
        before, self._version = self._version, self.rows("PRAGMA data_version")
        return bool(before != self._version)

    def rows(self, query: str) -> list[Any]:
        """The rows of a query."""
        return self._connection.execute(query).fetchall()

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()


class Databases:
    """`engine` is the program's, with faults; `judge` has the same file without them; `reference` is a store that faults never reach."""

    def __init__(self, folder: Path) -> None:
        self._template, self._file = folder / "template.db", folder / "world.db"
        self._migrate()
        shutil.copy(self._template, folder / "reference.db")
        self.reference = _engine(folder / "reference.db")
        self.engine, self.judge = _engine(self._file), _engine(self._file)
        self.injector = Injector(self.engine)

    def _migrate(self) -> None:
        engine = make_engine(f"sqlite:///{self._template}")
        migrate(engine)
        engine.dispose()

    @contextmanager
    def fresh(self) -> Iterator[Eyes]:
        """An empty store, and no fault yet."""
        shutil.copy(self._template, self._file)
        self.injector.reset()
        self.engine.connect().close()  # what the first connection of an engine asks is no part of any story
        eyes = Eyes(self._file)
        try:
            yield eyes
        finally:
            eyes.close()
            self.engine.dispose()
            self.judge.dispose()
            for file in self._file.parent.glob(f"{self._file.name}*"):
                file.unlink()

    def close(self) -> None:
        """Leave nothing open."""
        self.reference.dispose()


def _engine(file: Path) -> Engine:
    engine = make_engine(f"sqlite:///{file}")
    event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
    return engine
