"""The greatest consistent cut without barriers, from data lineage alone.

A cut takes one snapshot of each table. It is consistent when each derived table shows exactly what
the cut shows of its inputs. Consistent cuts are closed under the componentwise maximum, so the
greatest one is unique; moving back whoever offends finds it. It may not exist.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from strandline.core.versions.facts import Table

UNKNOWN = 2**62  # farther than any line: nothing fits it


@dataclass(slots=True)
class Line:
    """The main ancestry of a table, oldest first; `read[i]`.

    Per source the snapshot up to which snapshot i read it.

    A snapshot whose source was read at none of the source's line fits no cut.
    """

    table: Table
    snapshots: list[str]
    read: list[Mapping[Table, str]] = field(default_factory=list)


@dataclass(slots=True)
class _CutPlace:
    snapshots: list[str]
    read: list[dict[Table, int]]
    at: int


def greatest_cut(lines: Iterable[Line]) -> dict[Table, str] | None:
    """The snapshot of each table in the greatest consistent cut, or None when there is no consistent cut.

    `lines` must hold the wanted tables with everything upstream of them: what is not there constrains nothing.
    """
    places = _places(list(lines))
    readers = _readers(places)
    waiting = deque(places)
    while waiting:
        table = waiting.popleft()
        moved = _move_back(places, table)
        if any(places[one].at < 0 for one in moved):
            return None
        waiting.extend(other for one in moved for other in (one, *readers.get(one, ())))
    return {table: place.snapshots[place.at] for table, place in places.items()}


def _readers(places: Mapping[Table, _CutPlace]) -> dict[Table, list[Table]]:
    """The tables that were made from each table."""
    readers: dict[Table, list[Table]] = {}
    for table, place in places.items():
        for source in {source for read in place.read for source in read}:
            readers.setdefault(source, []).append(table)
    return readers


def _move_back(places: Mapping[Table, _CutPlace], table: Table) -> set[Table]:
    """Move `table`, or what it read, back where they do not fit; the tables that moved."""
    place = places[table]
    moved: set[Table] = set()
    if place.at < 0:
        return moved
    for source, seen in place.read[place.at].items():
        if seen > places[source].at:
            place.at = _last_within(place, source, places[source].at)
            return moved | {table}
        if seen < places[source].at:
            places[source].at = seen
            moved.add(source)
    return moved


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
    """Per snapshot how far each source was read.

    What read nothing new stands where its parent stood.
    """
    sources = {
        source for read in line.read for source in read if source in index and source != line.table
    }
    farthest = dict.fromkeys(sources, -1)
    at = dict(farthest)
    found = []
    for read in line.read:
        for source in sources.intersection(read):
            place = index[source].get(read[source])
            if place is None:
                at[source] = UNKNOWN
            else:
                at[source] = farthest[source] = max(farthest[source], place)
        found.append(dict(at))
    return found
