"""Facets and tags of the nodes of an answer."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from strandline.core.openlineage.facets import DATASET, JOB
from strandline.core.openlineage.names import id_of
from strandline.core.wildcards import is_like
from strandline.store.lineage.facets import values_among
from strandline.store.schema.annotation_tables import TAG_GIVEN, annotations
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.id_lists import among

Answer = dict[str, Any]


def tagged(
    connection: Connection, nodes: Sequence[Answer], patterns: Collection[str]
) -> list[Answer]:
    """Return the nodes with one of these tags: KEY, or KEY=VALUE; `*` stands for anything."""
    having = tags_of_nodes(connection, nodes)
    return [node for node in nodes if _is_tagged(node, having.get(node["id"], ()), patterns)]


def _is_tagged(node: Answer, facets: Iterable[Any], patterns: Collection[str]) -> bool:
    texts = {text for facet in facets for text in _tags(facet, node.get("column"))}
    return any(is_like(text, pattern) for text in texts for pattern in patterns)


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
    tags = select(annotations.c.entity_id, annotations.c.field, annotations.c.name)
    for of_entity in _entities(connection, nodes).values():
        of_people = tags.where(
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
