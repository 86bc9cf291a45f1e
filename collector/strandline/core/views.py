"""The views that a run read, and what their queries read.

A view is a dataset between its tables and what was made by reading it. What it shows is a matter of
the run that read it: a view that is replaced later shows other tables to later runs only.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
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

        A source that was only read through a view is the view's, a view that was only read through
        another one that one's.
        """
        found: dict[int, set[int]] = {}
        for source in sources:
            for above in self._around(source):
                if above not in self.above or above in self.above[above]:
                    found.setdefault(above, set()).add(source)
        return found

    def links_below(self, starts: Iterable[int]) -> Iterator[Link]:
        """Yield the links below some datasets, those of a view after those below it."""
        waiting, opened, done = list(starts), set[int](), set[int]()
        while waiting:
            node = waiting[-1]
            if node not in opened:
                opened.add(node)
                waiting += [one for one in self.below.get(node, ()) if one not in opened]
                continue
            waiting.pop()
            if node not in done:
                done.add(node)
                yield from ((source, node) for source in sorted(self.below.get(node, ())))

    def links_above(self, starts: Iterable[int], ends: Collection[int]) -> Iterator[Link]:
        """Yield the links from some datasets up to those of `ends` that the run read directly."""
        for start in starts:
            around = self._around(start)
            reached = [one for one in around if any(up in ends for up in self._around(one))]
            for source in reached:
                yield from (
                    (source, view)
                    for view in sorted(self.above.get(source, ()))
                    if view in reached and view != source
                )

    def _around(self, source: int) -> list[int]:
        """Return a dataset and all views above it, the nearest first."""
        around = [source]
        for one in around:
            around += [view for view in sorted(self.above.get(one, ())) if view not in around]
        return around
