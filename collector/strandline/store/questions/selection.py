"""The nodes of a graph that are shown.

Those of some namespaces, of a kind, with a tag, with a value in a facet.

The walk itself knows nothing of it, so that what lies behind a hidden node is still found;
`core.narrowing` takes the others out and joins what remains.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, select

from strandline.core.narrowing import narrowed
from strandline.core.openlineage.facets import DATASET, JOB
from strandline.core.openlineage.names import id_of
from strandline.core.wildcards import is_like
from strandline.store.lineage.facets import values_among
from strandline.store.schema.annotation_tables import TAG_GIVEN, annotations
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.id_lists import among

Answer = dict[str, Any]


class FacetValue(NamedTuple):
    """A facet that has this text at a path of it; a list holds what any of its elements does."""

    key: str
    path: tuple[str, ...]
    text: str

    def holds(self, facet: Any) -> bool:
        """Return whether the facet has the value there."""
        return any(is_like(found, self.text) for found in _texts(facet, self.path))


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
        for one in value:
            yield from _texts(one, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from _texts(value[path[0]], path[1:])
    elif isinstance(value, str):
        yield value
    elif not isinstance(value, Mapping):
        yield orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter of nodes by namespaces (`*` stands for anything), kinds, tags (KEY, or KEY=VALUE)
    and all of the facet values. An empty part filters nothing.
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
        """The answer with the nodes that are selected, those that it starts from, and the `ends`."""
        if self.is_empty:
            return answer
        starts = {node["id"] for node in answer["nodes"] if node["distance"] == 0} | set(ends)
        nodes = [
            node for node in answer["nodes"] if node["id"] not in starts and self._is_named(node)
        ]
        kept = starts | {node["id"] for node in self._with_facets(connection, nodes)}
        return narrowed(answer, lambda node: node["id"] in kept)

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
            having = tags_of_nodes(connection, selected)
            selected = [node for node in selected if self._is_tagged(node, having[node["id"]])]
        return selected

    def _is_tagged(self, node: Answer, facets: Iterable[Any]) -> bool:
        texts = {text for facet in facets for text in _tags(facet, node.get("column"))}
        return any(is_like(text, tag) for text in texts for tag in self.tags)


def _tags(facet: Any, column: str | None) -> Iterator[str]:
    """KEY and KEY=VALUE of each tag of a node.

    Of a dataset all, of a column its own and those of the whole dataset.
    """
    tags = facet.get("tags") if isinstance(facet, Mapping) else None
    for tag in tags if isinstance(tags, list) else ():
        if isinstance(tag, Mapping) and (column is None or tag.get("field") in (None, "", column)):
            yield str(tag.get("key"))
            yield f"{tag.get('key')}={tag.get('value')}"


def facets_of_nodes(
    connection: Connection, nodes: Iterable[Answer], key: str
) -> dict[str, list[Any]]:
    """The facets of a key that the nodes of an answer have.

    Of a dataset those under any of its names.
    """
    facets_of: dict[str, list[Any]] = defaultdict(list)
    for kind, of_entity in _entities(connection, nodes).items():
        for id_, facet in values_among(connection, kind, of_entity, key):
            for node_id in of_entity[id_]:
                facets_of[node_id].append(facet)
    return facets_of


def tags_of_nodes(connection: Connection, nodes: Sequence[Answer]) -> dict[str, list[Any]]:
    """The tags of nodes as facets: those of events, and those that people gave."""
    facets_of = facets_of_nodes(connection, nodes, "tags")
    given = select(annotations.c.entity_id, annotations.c.field, annotations.c.name)
    for of_entity in _entities(connection, nodes).values():
        of_people = given.where(
            annotations.c.kind == TAG_GIVEN, among(annotations.c.entity_id, of_entity)
        )
        for row in connection.execute(of_people):
            for node_id in of_entity[row.entity_id]:
                facets_of[node_id].append(
                    {"tags": [{"key": row.name, "value": "true", "field": row.field or None}]}
                )
    return facets_of


def _entities(connection: Connection, nodes: Iterable[Answer]) -> dict[int, dict[int, list[str]]]:
    """By kind of entity the ids of nodes that an entity stands for.

    Of a dataset each of its names does.
    """
    of_nodes: dict[str, dict[int, list[str]]] = {
        "dataset": defaultdict(list),
        "job": defaultdict(list),
    }
    for node in nodes:
        kind = "job" if node["type"] == "job" else "dataset"
        of_nodes[kind][id_of(kind, node["namespace"], node["name"])].append(node["id"])
    named = select(datasets.c.id, datasets.c.canonical_id).where(
        among(datasets.c.canonical_id, of_nodes["dataset"])
    )
    of_names = {row.id: of_nodes["dataset"][row.canonical_id] for row in connection.execute(named)}
    return {DATASET: of_names, JOB: of_nodes["job"]}
