"""Faults between the program and its database.

At the n-th statement or commit from now, by wrapping SQLAlchemy's dialect.
"""

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine

CRASHES = ("crash", "crash at commit", "crash after commit")
ERRORS = ("locked", "full", "io", "io at commit", "lost commit")
MESSAGES = {"locked": "database is locked", "full": "database or disk is full"}
TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+(\w+)")  # the first one that a statement names


class Crash(BaseException):
    """The process is killed here: whoever catches this throws its objects away."""


@dataclass
class Fault:
    """A fault, and the number of statements or commits before it."""

    kind: str
    after: int

    @property
    def at_commit(self) -> bool:
        """True if commits are counted, not statements."""
        return "commit" in self.kind


class Injector:
    """Wraps one engine's dialect; without a fault armed and without poison it changes nothing."""

    def __init__(self, engine: Engine) -> None:
        self.reset()
        dialect: Any = engine.dialect
        for name in ("do_execute", "do_executemany"):
            setattr(dialect, name, self._wrapped(getattr(dialect, name)))
        self._commit = dialect.do_commit
        dialect.do_commit = self._do_commit

    def reset(self) -> None:
        """Another world begins: nothing is armed, and nothing has struck."""
        self.fault: Fault | None = None
        self.poison: set[bytes] = set()
        self.struck: dict[str, int] = {}
        self.points: set[str] = set()  # where something has struck: "locked: INSERT INTO runs"

    def _wrapped(self, execute: Callable[..., None]) -> Callable[..., None]:
        def do(cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
            if self.poison and "FROM event_keys" in statement and self.poison & set(parameters):
                self._note("poison", statement)
                raise Crash
            if self._is_due(at_commit=False):
                self._strike(statement)
            execute(cursor, statement, parameters, context)

        return do

    def _do_commit(self, connection: Any) -> None:
        if not self._is_due(at_commit=True):
            self._commit(connection)
            return
        assert self.fault is not None
        if self.fault.kind in ("crash after commit", "lost commit"):
            self._commit(connection)
        self._strike("COMMIT")

    def _is_due(self, *, at_commit: bool) -> bool:
        if self.fault is None or self.fault.at_commit is not at_commit:
            return False
        self.fault.after -= 1
        return self.fault.after < 0

    def _strike(self, statement: str) -> None:
        assert self.fault is not None
        kind, self.fault = self.fault.kind, None
        self._note(kind, statement)
        if kind in CRASHES:
            raise Crash
        raise sqlite3.OperationalError(MESSAGES.get(kind, "disk I/O error"))

    def _note(self, kind: str, statement: str) -> None:
        self.struck[kind] = self.struck.get(kind, 0) + 1
        table = TABLE.search(statement)
        self.points.add(
            f"{kind}: {statement.split(maxsplit=1)[0]}{f' {table[1]}' if table else ''}"
        )
