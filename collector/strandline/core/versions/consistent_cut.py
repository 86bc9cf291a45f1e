"""The newest consistent cut without barriers, from data lineage alone.

A cut takes one snapshot of each table. It is consistent when each derived table shows exactly what
the cut shows of its inputs. Moving back whoever offends, from the latest snapshots, finds the
greatest one where each snapshot read its inputs further than the one before. Where runs that
replaced a table overlapped, several greatest ones may exist, and one may be missed.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from strandline.core.versions.facts import Table

UNKNOWN = 2**62  # farther than any line: nothing fits it


@dataclass(slots=True)
class Line:
    """The main ancestry of a table, oldest first.

    `read[i]`: per source the snapshot up to which snapshot i read it; one that is not in the
    source's line fits no cut. `whole`: the snapshots that show nothing but what their own runs
    read; every other one also shows what its ancestors read. `restored`: the earlier snapshot that
    each restore shows, None where that is not known.
    """

    table: Table
    snapshots: list[str]
    read: list[Mapping[Table, str]] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    restored: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Excluded:
    """Two tables of which no snapshots fit each other, as far as moving back finds them."""

    table: Table
    source: Table


@dataclass(slots=True)
class _CutPlace:
    snapshots: list[str]
    read: list[dict[Table, int]]
    at: int


def greatest_cut(lines: Iterable[Line]) -> dict[Table, str] | Excluded:
    """Return the snapshot of each table in a consistent cut, or two tables that exclude each other.

    `lines` must hold the wanted tables with everything upstream of them: what is not there
    constrains nothing.
    """
    places = _places(list(lines))
    readers = _readers(places)
    waiting = deque(places)
    while waiting:
        table = waiting.popleft()
        source = _offending_source(places, table)
        if source is None:
            continue
        moved = _move_back(places, table, source)
        if places[moved].at < 0:
            return Excluded(table, source)
        waiting.extend((table, moved, *readers.get(moved, ())))
    return {table: place.snapshots[place.at] for table, place in places.items()}


def _readers(places: Mapping[Table, _CutPlace]) -> dict[Table, list[Table]]:
    """The tables that were made from each table."""
    readers: dict[Table, list[Table]] = {}
    for table, place in places.items():
        for source in {source for read in place.read for source in read}:
            readers.setdefault(source, []).append(table)
    return readers


def _offending_source(places: Mapping[Table, _CutPlace], table: Table) -> Table | None:
    place = places[table]
    read = place.read[place.at].items()
    return next((source for source, snapshot in read if snapshot != places[source].at), None)


def _move_back(places: Mapping[Table, _CutPlace], table: Table, source: Table) -> Table:
    """Move the table, or the source that it read, back to where they may fit; return which."""
    place = places[table]
    snapshot = place.read[place.at][source]
    if snapshot < places[source].at:
        places[source].at = snapshot
        return source
    place.at = _last_within(place, source, places[source].at)
    return table


def _last_within(place: _CutPlace, source: Table, limit: int) -> int:
    """The newest earlier snapshot that read `source` up to `limit` at most."""
    at = place.at - 1
    while at >= 0 and place.read[at].get(source, -1) > limit:
        at -= 1
    return at


def _places(lines: Sequence[Line]) -> dict[Table, _CutPlace]:
    index = {
        line.table: {snapshot: i for i, snapshot in enumerate(line.snapshots)} for line in lines
    }
    return {
        line.table: _CutPlace(line.snapshots, _positions(line, index), len(line.snapshots) - 1)
        for line in lines
    }


def _positions(line: Line, index: Mapping[Table, Mapping[str, int]]) -> list[dict[Table, int]]:
    """Return per snapshot the place in each source's line where it stands.

    What read nothing new stands where its parent stood, a whole replacement where its run read, and
    a restore where the snapshot stood that it shows.
    """
    sources = {
        source for read in line.read for source in read if source in index and source != line.table
    }
    nowhere = dict.fromkeys(sources, UNKNOWN)
    farthest = dict.fromkeys(sources, -1)
    at = dict(farthest)
    stood: dict[str | None, dict[Table, int]] = {}
    for snapshot, read in zip(line.snapshots, line.read, strict=True):
        if snapshot in line.restored:
            at = dict(stood.get(line.restored[snapshot], nowhere))
            farthest = {source: place for source, place in at.items() if place != UNKNOWN}
        elif snapshot in line.whole:
            farthest, at = {}, {}
        for source in sources.intersection(read):
            place = index[source].get(read[source])
            if place is None:
                at[source] = UNKNOWN
            else:
                at[source] = farthest[source] = max(farthest.get(source, -1), place)
        stood[snapshot] = dict(at)
    return list(stood.values())
