"""The stored facets of an entity, as they came, and the tags that its events and people gave it.

An entity is a run, a job, a dataset under all its names, or a relation. Facets are handed on as
bytes inside the JSON of an answer; only what the answer is made of is decoded (`value_of`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec
import orjson
from sqlalchemy import Connection, Select, select

from strandline.core.changes.rows import QUARANTINED
from strandline.core.openlineage.facets import DATASET, JOB, MODELS
from strandline.core.openlineage.names import id_of
from strandline.core.wildcards import is_like
from strandline.store.schema.annotation_tables import TAG_GIVEN, annotations
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.compression import expand, expander
from strandline.store.sql.facet_rows import facet_rows, newest_rows, one_of
from strandline.store.sql.id_lists import among, among_given

Facets = dict[str, orjson.Fragment]


def facets_of(connection: Connection, kind: int, ids: Sequence[int]) -> dict[int, Facets]:
    """The facets of each entity of one kind, by key."""
    rows: dict[int, list[Any]] = {}
    for row in connection.execute(_current(kind), {"ids": list(ids)}):
        rows.setdefault(row.entity_id, []).append(row)
    return {entity_id: _shown(own) for entity_id, own in rows.items()}


def merged_facets(connection: Connection, kind: int, ids: Sequence[int]) -> Facets:
    """The facets of one entity that has several ids (a dataset and its symlinks).

    The newest of each key.
    """
    return _shown(connection.execute(_current(kind), {"ids": list(ids)}))


def merged_facets_each(
    connection: Connection, kind: int, group_of: Mapping[int, int]
) -> dict[int, Facets]:
    """The same of many entities: `group_of` has the entity that each id is one of."""
    rows: dict[int, list[Any]] = {}
    for row in connection.execute(_current(kind), {"ids": list(group_of)}):
        rows.setdefault(group_of[row.entity_id], []).append(row)
    return {entity_id: _shown(own) for entity_id, own in rows.items()}


def value_of(connection: Connection, kind: int, ids: Sequence[int], key: str) -> Any:
    """Return the newest facet of this key, decoded by its model.

    None where none was or all are quarantined.
    """
    held = facet_rows(one_of(ids), (kind,), one_of([key]))
    row = _newest(connection.execute(select(held).where(held.c.content.is_not(None)))).get(key)
    return None if row is None else msgspec.json.decode(expand(row.content), type=MODELS[kind, key])


def values_among(
    connection: Connection, kind: int, ids: Iterable[int], key: str
) -> Iterator[tuple[int, Any]]:
    """(entity, what its facet of this key says as plain JSON) of as many entities as there are.

    Not quarantined ones.
    """
    expanded = expander()
    for row in newest_rows(
        connection.execute(select(facet_rows(one_of(ids), (kind,), one_of([key]))))
    ):
        if not row.deleted and row.content is not None:
            yield row.entity_id, orjson.loads(expanded(row.content))


def _shown(rows: Iterable[Any]) -> Facets:
    expanded = expander()
    return {key: orjson.Fragment(expanded(row.content)) for key, row in _newest(rows).items()}


def _newest(rows: Iterable[Any]) -> dict[str, Any]:
    """By key; what the newest one says is deleted is gone under every name.

    A quarantined one is shown where no other is.
    """
    newest = {
        row.key: row
        for row in sorted(rows, key=lambda row: (row.kind < QUARANTINED, row.at, row.hash))
    }
    return {key: row for key, row in newest.items() if not row.deleted}


def quarantined(connection: Connection, kind: int, ids: Sequence[int]) -> dict[str, str]:
    """The facets of which the newest was kept and not used, with the reason."""
    return {key: problem for _, key, problem in _quarantined(connection, kind, ids, lambda _: 0)}


def quarantined_each(
    connection: Connection, kind: int, ids: Sequence[int]
) -> dict[int, dict[str, str]]:
    """The same of each entity of one kind that has such facets."""
    facets_of: dict[int, dict[str, str]] = {}
    for entity_id, key, problem in _quarantined(connection, kind, ids, lambda id_: id_):
        facets_of.setdefault(entity_id, {})[key] = problem
    return facets_of


def _quarantined(
    connection: Connection, kind: int, ids: Sequence[int], entity: Callable[[int], int]
) -> list[tuple[int, str, str]]:
    rows = connection.execute(_problems(kind), {"ids": list(ids)})
    newest = {(entity(row.entity_id), row.key): row.problem for row in rows}
    return [(*place, problem) for place, problem in newest.items() if problem]


@cache
def _problems(kind: int) -> Select[Any]:
    held = facet_rows(partial(among_given, name="ids"), (kind, kind + QUARANTINED))
    return select(held.c.entity_id, held.c.key, held.c.problem).order_by(held.c.at, held.c.hash)


@cache
def _current(kind: int) -> Select[Any]:
    held = facet_rows(partial(among_given, name="ids"), (kind, kind + QUARANTINED))
    return select(held).where(held.c.content.is_not(None))


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
