"""The names that tables have now, for facts that were told under earlier ones.

A rename moves a name and keeps the table. A fact that says when it happened means the table that
had the name then; any other one means the table that has the name where it stands in the log. So
the model does not depend on when a rename became known, and what is called so later is another
table.
"""

from collections import defaultdict
from collections.abc import Iterable
from math import inf
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from strandline.core.versions import facts as f
from strandline.core.versions.facts import Fact, Table, TableRenamed, Used, WrittenSnapshot

AnyFact = TypeVar("AnyFact", bound=Fact)
Snapshot = TypeVar("Snapshot", Used, WrittenSnapshot)


class Rename(NamedTuple):
    """The move of a name at a moment, and the number in the log of the fact that tells of it."""

    at: float
    seq: int
    table: Table


class Renames:
    """The renames that are known, by the name before."""

    def __init__(self, known: Iterable[tuple[int, TableRenamed]] = ()) -> None:
        self._of: dict[Table, list[Rename]] = defaultdict(list)
        for seq, fact in known:
            self.add(seq, fact)

    def add(self, seq: int, fact: TableRenamed) -> None:
        """Add a rename that the log tells of; a second time changes nothing."""
        if not self.has(fact):
            self._of[fact.before].append(Rename(fact.at, seq, fact.table))
            self._of[fact.before].sort()

    def has(self, fact: TableRenamed) -> bool:
        """Return whether a rename is known."""
        moves = self._of.get(fact.before, ())
        return any((move.at, move.table) == (fact.at, fact.table) for move in moves)

    def of_time(self, table: Table, at: float) -> Table:
        """Return the present name of the table that had this name at a moment."""
        while (
            move := next((one for one in self._of.get(table, ()) if one.at > at), None)
        ) is not None:
            table, at = move.table, move.at
        return table

    def of_log(self, table: Table, seq: float) -> Table:
        """Return the present name of the table that had this name at a place in the log."""
        moves = [one for one in self._of.get(table, ()) if one.seq > seq]
        return self.of_time(moves[0].table, moves[0].at) if moves else table

    def renamed(self, fact: Fact, seq: float = inf) -> Fact:
        """Return the fact under the names that its tables have now. `seq`: its number in the log."""
        if not self._of:
            return fact
        match fact:
            case f.RunStarted():
                return _with(
                    fact, reads=self._at(fact.reads, fact.at), writes=self._at(fact.writes, fact.at)
                )
            case f.BarrierCommitted():
                return _with(
                    fact,
                    written=tuple(
                        [_of(one, self.of_time(one.table, fact.started)) for one in fact.written]
                    ),
                    used=tuple(
                        [_of(one, self.of_time(one.table, fact.started)) for one in fact.used]
                    ),
                    aside=self._at(fact.aside, fact.started),
                )
            case f.RootsCut():
                cut = [_of(one, self.of_log(one.table, seq)) for one in fact.snapshots]
                return _with(fact, snapshots=tuple(cut))
            case f.DomainDeclared():
                return _with(fact, roots=self._here(fact.roots, seq))
            case f.JobRegistered():
                return _with(
                    fact, reads=self._here(fact.reads, seq), writes=self._here(fact.writes, seq)
                )
            case f.JobPlaced():
                placed = [(self.of_log(table, seq), snapshot) for table, snapshot in fact.snapshots]
                return _with(fact, snapshots=tuple(placed))
            case f.RolledBack():
                return _with(fact, tables=self._here(fact.tables, seq))
            case f.TableFound():
                return _with(fact, table=self.of_log(fact.table, seq))
        return fact

    def _at(self, tables: tuple[Table, ...], at: float) -> tuple[Table, ...]:
        return tuple([self.of_time(table, at) for table in tables])

    def _here(self, tables: tuple[Table, ...], seq: float) -> tuple[Table, ...]:
        return tuple([self.of_log(table, seq) for table in tables])


def _of(one: Snapshot, table: Table) -> Snapshot:
    """Return a snapshot of a table under another name of the table."""
    return one if one.table == table else replace(one, table=table)


def _with(fact: AnyFact, **tables: tuple[Any, ...]) -> AnyFact:
    """Return the fact with these tables; itself where they are its own."""
    return (
        fact
        if all(getattr(fact, name) == of for name, of in tables.items())
        else replace(fact, **tables)
    )
