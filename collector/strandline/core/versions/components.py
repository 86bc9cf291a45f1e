"""Components: tables whose barriers count together, with the strong version kept up at a constant cost per commit.

One count per barrier in flight: when all tables of a component have it, the version moves there. Components merge when
their versions are equal, and only then. That is the rule of admission: a common barrier b >= every version lies in each
component's own intersection, so b <= each version too, hence b is each of them.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from strandline.core.versions.completions import Completions, greatest_common
from strandline.core.versions.facts import Job, Table


@dataclass(slots=True, eq=False)
class Component:
    """Tables joined by admitted jobs; `joining`.

    Jobs that touch one of them and are not admitted with all theirs.
    """

    tables: set[Table]
    version: int | None = None
    joining: set[Job] = field(default_factory=set)
    counts: dict[int, int] = field(default_factory=dict)
    flying: list[int] = field(default_factory=list)

    def count(self, barrier: int) -> bool:
        """One more table completed `barrier`; True when the version moved."""
        if self.version is not None and barrier <= self.version:
            return False
        seen = self.counts.get(barrier, 0) + 1
        self.counts[barrier] = seen
        if seen == 1:
            heapq.heappush(self.flying, barrier)
        if seen < len(self.tables):
            return False
        self.version = barrier
        self._land()
        return True

    def uncount(self, barrier: int) -> bool:
        """One table has `barrier` no more.

        True when it was the version, so that all has to be counted anew.
        """
        if barrier in self.counts:
            self.counts[barrier] -= 1
        return barrier == self.version

    def take(self, other: "Component") -> None:
        """Join `other`, whose version is the same.

        Only barriers after it are still counted, so the sums hold.
        """
        for barrier, seen in other.counts.items():
            if barrier not in self.counts:
                heapq.heappush(self.flying, barrier)
            self.counts[barrier] = self.counts.get(barrier, 0) + seen
        self.tables |= other.tables
        self.joining |= other.joining

    def take_table(self, table: Table, done: Completions, joining: set[Job]) -> None:
        """Join a single table that completed this component's version, or nothing has a version yet."""
        for barrier in done.after(self.version):
            if barrier not in self.counts:
                heapq.heappush(self.flying, barrier)
            self.counts[barrier] = self.counts.get(barrier, 0) + 1
        self.tables.add(table)
        self.joining |= joining

    def _land(self) -> None:
        while self.flying and self.version is not None and self.flying[0] <= self.version:
            self.counts.pop(heapq.heappop(self.flying), None)


def counted(tables: Iterable[Table], done: dict[Table, Completions]) -> Component:
    """The component of `tables`, counted from nothing: after a split, an arrival or a rollback."""
    found = Component(set(tables))
    found.version = greatest_common([done[table] for table in found.tables])
    for table in found.tables:
        for barrier in done[table].after(found.version):
            found.counts[barrier] = found.counts.get(barrier, 0) + 1
    found.flying = sorted(found.counts)
    return found


def parts(tables: Iterable[Table], links: Iterable[Iterable[Table]]) -> list[set[Table]]:
    """The connected parts of `tables`, where each link (the tables of one job) holds its tables together."""
    part_of = {table: {table} for table in tables}
    for link in links:
        linked = [table for table in link if table in part_of]
        for table in linked[1:]:
            _unite(part_of, linked[0], table)
    return list({id(part): part for part in part_of.values()}.values())


def _unite(part_of: dict[Table, set[Table]], one: Table, other: Table) -> None:
    large, small = sorted((part_of[one], part_of[other]), key=len, reverse=True)
    if large is small:
        return
    large |= small
    for table in small:
        part_of[table] = large
