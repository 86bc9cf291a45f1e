"""The databases of all worlds, one after the other.

A file that is emptied for each seed, while engines keep what they compiled.

What migrates a file and compiles statements costs more than what runs them, and says nothing about
faults; so worlds share it, and nothing else.
"""

import shutil
import sqlite3
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from strandline.store.sql.engine import make_engine, migrate
from worlds.simulation.injector import Injector

Rows = tuple[tuple[str, tuple[str, ...]], ...]


class Observer:
    """A reader of a file past the program and its faults, which knows when nothing was committed since it read."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._version: Any = None
        self._tables = [
            name
            for (name,) in self.rows(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]

    def has_changed(self) -> bool:
        """Return true if a transaction was committed since the last call."""
        before, self._version = self._version, self.rows("PRAGMA data_version")
        return bool(before != self._version)

    def rows(self, query: str) -> list[Any]:
        """The rows of a query."""
        return self._connection.execute(query).fetchall()

    def rows_but_of(self, tables: AbstractSet[str]) -> Rows:
        """Every row of every table but these, in an order of their own."""
        names = (name for name in self._tables if name not in tables)
        return tuple(
            (name, tuple(sorted(map(repr, self.rows(f'SELECT * FROM "{name}"'))))) for name in names
        )

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()


class StoreReset:
    """A file and the migrated empty one that it is reset to.

    Added rows go, changed or deleted ones come back.
    """

    def __init__(self, file: Path, template: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("ATTACH ? AS template", (str(template),))
        found = self._connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")
        self._tables = [name for (name,) in found.fetchall()]
        self._used = {one: self._question(one) for one in ("main", "template")}
        self._filled = self._with_rows("template")

    def reset_store(self) -> None:
        """Empty the file, in one transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        for name in self._with_rows("main"):
            self._connection.execute(f'DELETE FROM main."{name}"')
        for name in self._filled:
            self._connection.execute(f'INSERT INTO main."{name}" SELECT * FROM template."{name}"')
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let both files go."""
        self._connection.close()

    def _question(self, database: str) -> str:
        return "SELECT " + ", ".join(
            f'EXISTS (SELECT 1 FROM {database}."{name}")' for name in self._tables
        )

    def _with_rows(self, database: str) -> list[str]:
        answers = self._connection.execute(self._used[database]).fetchone()
        return [name for name, is_used in zip(self._tables, answers, strict=True) if is_used]


class Databases:
    """`engine` is the program's, with faults; `checker` has the same file without them.

    `observer` reads it too.

    `reference` is a store that faults never reach.
    """

    def __init__(self, folder: Path) -> None:
        template, file, reference = (
            folder / f"{name}.db" for name in ("template", "world", "reference")
        )
        engine = make_engine(f"sqlite:///{template}")
        migrate(engine)
        engine.dispose()
        for other in (file, reference):
            shutil.copy(template, other)
        self.reference = quick_engine(reference)
        self.engine, self.checker, self.observer = (
            quick_engine(file),
            quick_engine(file),
            Observer(file),
        )
        # what the first connection of an engine asks is no part of any story
        self.engine.connect().close()
        self.injector = Injector(self.engine)
        self._reset = StoreReset(file, template)

    def begin(self) -> None:
        """An empty store, and no fault yet."""
        self._reset.reset_store()
        self.injector.reset()

    def close(self) -> None:
        """Leave nothing open."""
        for one in (self.observer, self._reset):
            one.close()
        for engine in (self.reference, self.engine, self.checker):
            engine.dispose()


def quick_engine(file: Path) -> Engine:
    """An engine that waits for no disk: for stores that nobody ends."""
    engine = make_engine(f"sqlite:///{file}")
    event.listen(
        engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF")
    )
    return engine
