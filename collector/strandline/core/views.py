"""The views that a run read, and what their queries read.

A view is a dataset between its tables and what was made by reading it. What it shows is a matter of
the run that read it: a view that is replaced later shows other tables to later runs only.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

Link = tuple[int, int]  # from a dataset to the view that shows it


@dataclass(frozen=True, slots=True)
class ViewsRead:
    """The views that a run read.

    `above` maps each dataset that was read through views to these views, and to itself if the run
    also read it directly. `below` maps each view to what its query read.
    """

    above: Mapping[int, AbstractSet[int]]
    below: Mapping[int, AbstractSet[int]] = field(init=False)

    def __post_init__(self) -> None:
        below: dict[int, set[int]] = {}
        for source, views in self.above.items():
            for view in views - {source}:
                below.setdefault(view, set()).add(source)
        object.__setattr__(self, "below", below)

    def direct(self, sources: Iterable[int]) -> dict[int, set[int]]:
        """Map what the run read directly to those of the sources that it stands for.

        A view that the run read directly stands for all that was read through it. Of views that
        read each other, where none is read directly, each counts as read so.
        """
        stands_for: dict[int, set[int]] = {}
        for source in sources:
            around = self.around(source)
            read = [node for node in around if node not in self.above or node in self.above[node]]
            for node in read or [view for view in around if view in self.below]:
                stands_for.setdefault(node, set()).add(source)
        return stands_for

    def links_below(self, starts: Iterable[int]) -> Iterator[Link]:
        """Yield the links below some datasets, those of a view after those below it."""
        waiting, opened, done = list(starts), set[int](), set[int]()
        while waiting:
            node = waiting[-1]
            if node not in opened:
                opened.add(node)
                waiting += [source for source in self.below.get(node, ()) if source not in opened]
                continue
            waiting.pop()
            if node not in done:
                done.add(node)
                yield from ((source, node) for source in sorted(self.below.get(node, ())))

    def links_above(self, starts: Iterable[int], ends: Iterable[int]) -> Iterator[Link]:
        """Yield the links from some datasets up to any of `ends`, the nearest first."""
        leads_up, waiting = set(ends), list(ends)
        for view in waiting:
            waiting += self.below.get(view, set()) - leads_up
            leads_up |= self.below.get(view, set())
        reached = [start for start in starts if start in leads_up]
        opened = set(reached)
        for source in reached:
            for view in sorted(self.above.get(source, set()) & leads_up - {source}):
                yield source, view
                if view not in opened:
                    opened.add(view)
                    reached.append(view)

    def around(self, source: int) -> list[int]:
        """Return a dataset and all views above it, the nearest first."""
        around, known = [source], {source}
        for node in around:
            views = sorted(self.above.get(node, set()) - known)
            around += views
            known.update(views)
        return around
