"""Sources of a streaming query that had nothing new.

In a micro-batch's plan, Spark puts empty rows in their place.

The rows have the ids of the source's columns, so the source is found by them. It is among those
that were read before, or in the query's own logical plan, which names all of its sources.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from strandline_spark.extraction.datasets_of_plan import Parts, Read
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import JAVA_FAILED
from strandline_spark.plans.tree import Node

_REMEMBERED = 256  # sources


class IdleSources:
    """The sources of an application's streaming queries, by the id of their first column."""

    def __init__(self) -> None:
        self._sources: OrderedDict[int, list[Read]] = OrderedDict()

    def remember(self, reads: Iterable[Read]) -> None:
        """Keep what each source is, without the objects that Spark has for it."""
        for key, together in _by_first_column(reads).items():
            self._sources[key] = [
                replace(
                    read,
                    mention=Mention(
                        columns=mention.columns, offsets=(None, None), slot=mention.slot
                    ),
                    news=False,
                )
                for read in together
                for mention in (read.mention,)
            ]
            self._sources.move_to_end(key)
        while len(self._sources) > _REMEMBERED:
            self._sources.popitem(last=False)

    def added_to(self, parts: Parts, planned: Callable[[], Iterable[Read]], ask: bool) -> Parts:
        """The parts with the sources that had no news.

        `ask`: Spark's own objects for them are needed, too.
        """
        idle = _idle(parts.root)
        remembered = [self._sources[key] for key in idle if key in self._sources] if not ask else []
        reads = [read for together in remembered for read in together]
        if len(remembered) < len(idle):
            reads = [replace(read, news=ask) for read in _among(idle, planned)] or reads
        return replace(parts, reads=(*parts.reads, *reads)) if reads else parts


def _by_first_column(reads: Iterable[Read]) -> dict[int, list[Read]]:
    """The sources by the id of their first column.

    Tables that are read as one stream have it in common.
    """
    reads_by_column: dict[int, list[Read]] = {}
    for read in reads:
        if read.streams and read.mention.columns:
            reads_by_column.setdefault(read.mention.columns[0][0], []).append(read)
    return reads_by_column


def _idle(root: Node) -> list[int]:
    """The ids of the first columns of the sources that had no news."""
    empty = (
        node
        for node in root.walk()
        if node.name == "LocalRelation" and node.fields.get("isStreaming") is True
    )
    outputs = (node.nodes("output") for node in empty)
    return list(dict.fromkeys(output[0].expr_id for output in outputs if output))


def _among(idle: Collection[int], planned: Callable[[], Iterable[Read]]) -> list[Read]:
    """The sources of the query's own plan that are idle.

    None where the query cannot be asked any more.
    """
    try:
        return [
            read
            for read in planned()
            if read.streams and any(key in idle for key, _ in read.mention.columns)
        ]
    except (*JAVA_FAILED, AttributeError):
        return []
