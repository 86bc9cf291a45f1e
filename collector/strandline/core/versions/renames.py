"""The names that tables have now, for facts under an earlier name.

Only a rename that is certain is followed: no other table had the new name before. A fact that says
when it happened keeps the former name from the rename on. Any other fact keeps it once the log
tells that the name was used again (`NameReused`). A rename that turns out to be uncertain is none.
"""

from collections.abc import Iterable
from math import inf
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from strandline.core.versions import facts as f
from strandline.core.versions.facts import (
    Fact,
    NameReused,
    Table,
    TableRenamed,
    Used,
    WrittenSnapshot,
)

AnyFact = TypeVar("AnyFact", bound=Fact)
Snapshot = TypeVar("Snapshot", Used, WrittenSnapshot)
NameFact: TypeAlias = TableRenamed | NameReused


class Renames:
    """The certain renames, by the name before, and the names that several tables had."""

    def __init__(self, known: Iterable[tuple[int, NameFact]] = ()) -> None:
        self._of: dict[Table, TableRenamed] = {}
        self._uncertain: set[Table] = set()
        self._reused_at: dict[Table, float] = {}
        self._over: dict[Table, int] = {}
        for seq, fact in known:
            self.add(seq, fact)

    def add(self, seq: int, fact: NameFact) -> None:
        """Add what the log tells at `seq`; a second time changes nothing."""
        if self.has(fact):
            return
        if isinstance(fact, TableRenamed) and fact.certain:
            self._of[fact.before] = fact
        elif isinstance(fact, TableRenamed):
            self._uncertain.add(fact.before)
        else:
            self._reused_at[fact.table] = fact.at
            self._over.setdefault(fact.table, seq)

    def has(self, fact: NameFact) -> bool:
        """Return whether this is known."""
        if isinstance(fact, TableRenamed):
            return fact.before in (self._of if fact.certain else self._uncertain)
        return self._reused_at.get(fact.table, -inf) >= fact.at

    def moves(self, fact: NameFact) -> Table | None:
        """Return the name whose table gets another one by this, as far as is known; else None."""
        if not isinstance(fact, TableRenamed) or self.has(fact):
            return None
        if fact.certain:
            return None if fact.before in self._uncertain else fact.before
        return self._of[fact.before].table if fact.before in self._of else None

    def name(self, table: Table, seq: float, at: float = -inf) -> Table:
        """Return the present name of a table that a fact of the log names, as of a moment."""
        for _ in range(len(self._of)):
            move = self._of.get(table)
            if move is None or table in self._uncertain or at >= move.at:
                break
            if at == -inf and seq > self._over.get(table, inf):
                break
            table = move.table
        return table

    def renamed(self, fact: Fact, seq: float = inf) -> Fact:
        """Return the fact under the names that its tables have now.

        `seq`: its number in the log.
        """
        if not self._of:
            return fact
        match fact:
            case f.RunStarted():
                return _with(
                    fact,
                    reads=self._all(fact.reads, seq, fact.at),
                    writes=self._all(fact.writes, seq, fact.at),
                )
            case f.BarrierCommitted():
                return _with(
                    fact,
                    written=self._snapshots(fact.written, seq, fact.started),
                    used=self._inputs(fact.used, seq, fact.started),
                    aside=self._all(fact.aside, seq, fact.started),
                )
            case f.RootsCut():
                return _with(fact, snapshots=self._snapshots(fact.snapshots, seq))
            case f.GroupDeclared():
                return _with(fact, roots=self._all(fact.roots, seq))
            case f.JobRegistered():
                return _with(
                    fact, reads=self._all(fact.reads, seq), writes=self._all(fact.writes, seq)
                )
            case f.JobPlaced():
                placed = [(self.name(table, seq), snapshot) for table, snapshot in fact.snapshots]
                return _with(fact, snapshots=tuple(placed))
            case f.RolledBack():
                return _with(fact, tables=self._all(fact.tables, seq))
            case f.TableFound():
                return _with(fact, table=self.name(fact.table, seq))
        return fact

    def _all(self, tables: tuple[Table, ...], seq: float, at: float = -inf) -> tuple[Table, ...]:
        return tuple([self.name(table, seq, at) for table in tables])

    def _inputs(self, inputs: tuple[Used, ...], seq: float, at: float) -> tuple[Used, ...]:
        return tuple(
            [
                replace(used, behind=self._all(used.behind, seq, at)) if used.behind else used
                for used in self._snapshots(inputs, seq, at)
            ]
        )

    def _snapshots(
        self, snapshots: tuple[Snapshot, ...], seq: float, at: float = -inf
    ) -> tuple[Snapshot, ...]:
        names = [self.name(snapshot.table, seq, at) for snapshot in snapshots]
        return tuple(
            [
                snapshot if snapshot.table == name else replace(snapshot, table=name)
                for snapshot, name in zip(snapshots, names, strict=True)
            ]
        )


def _with(fact: AnyFact, **tables: Any) -> AnyFact:
    """Return the fact with these tables; itself where they are its own."""
    same = all(getattr(fact, name) == value for name, value in tables.items())
    return fact if same else replace(fact, **tables)
