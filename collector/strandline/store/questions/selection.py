"""The nodes of a graph that are shown.

Those of some namespaces, of a kind, with a tag, with a value in a facet.

The walk itself knows nothing of it, so that what lies behind a hidden node is still found;
`core.narrowing` takes the others out and joins what remains.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection

from strandline.core.narrowing import narrowed
from strandline.core.wildcards import is_like
from strandline.store.lineage.facets import facets_of_nodes, tagged

Answer = dict[str, Any]


class FacetValue(NamedTuple):
    """A facet that has this text at a path of it; a list holds what any of its elements does."""

    key: str
    path: tuple[str, ...]
    text: str

    def holds(self, facet: Any) -> bool:
        """Return whether the facet has the value there."""
        return any(is_like(text, self.text) for text in _texts(facet, self.path))


def facet_value(text: str) -> FacetValue:
    """KEY.PATH=VALUE as a value; ValueError if it is none.

    >>> facet_value("jobType.processingType=STREAM*")
    FacetValue(key='jobType', path=('processingType',), text='STREAM*')
    """
    where, equals, value = text.partition("=")
    key, *path = where.split(".")
    if not equals or not key or not all(path):
        raise ValueError("is not KEY.FIELD=VALUE, such as jobType.processingType=STREAMING")
    return FacetValue(key, tuple(path), value)


def _texts(value: Any, path: Sequence[str]) -> Iterator[str]:
    if isinstance(value, list):
        for text in value:
            yield from _texts(text, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from _texts(value[path[0]], path[1:])
    elif isinstance(value, str):
        yield value
    elif not isinstance(value, Mapping):
        yield orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter of nodes by namespaces, kinds, tags and facet values.

    `*` in a namespace stands for anything; a tag is KEY or KEY=VALUE. All of the facet values
    have to match. An empty part filters nothing.
    """

    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    facets: tuple[FacetValue, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if everything is shown."""
        return not (self.namespaces or self.kinds or self.tags or self.facets)

    def of(self, connection: Connection, answer: Answer, ends: Collection[str] = ()) -> Answer:
        """Return the answer with the selected nodes, those that it starts from, and the `ends`."""
        if self.is_empty:
            return answer
        starts = {node["id"] for node in answer["nodes"] if node["distance"] == 0} | set(ends)
        nodes = [
            node for node in answer["nodes"] if node["id"] not in starts and self._is_named(node)
        ]
        nodes_kept = starts | {node["id"] for node in self._with_facets(connection, nodes)}
        return narrowed(answer, lambda node: node["id"] in nodes_kept)

    def items(self, connection: Connection, items: list[Answer]) -> list[Answer]:
        """Those of a list that are selected."""
        return (
            items
            if self.is_empty
            else self._with_facets(connection, [item for item in items if self._is_named(item)])
        )

    def _is_named(self, node: Answer) -> bool:
        of_kind = not self.kinds or node["type"] in self.kinds
        named = not self.namespaces or any(
            is_like(node["namespace"], namespace) for namespace in self.namespaces
        )
        return of_kind and named

    def _with_facets(self, connection: Connection, nodes: list[Answer]) -> list[Answer]:
        """Those of the nodes that have one of the tags and all of the values."""
        selected = nodes
        for wanted in self.facets:
            having = facets_of_nodes(connection, selected, wanted.key)
            selected = [node for node in selected if any(map(wanted.holds, having[node["id"]]))]
        if self.tags and selected:
            selected = tagged(connection, selected, self.tags)
        return selected
