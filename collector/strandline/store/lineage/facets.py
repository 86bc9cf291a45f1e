"""The stored facets of an entity, as they came, and the tags that its events and people gave it.

An entity is a run, a job, a dataset under all its names, or a relation. Facets are handed on as
bytes inside the JSON of an answer; only what the answer is made of is decoded (`value_of`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec
import orjson
from sqlalchemy import Connection, Select, select

from strandline.core.changes.rows import QUARANTINED
from strandline.core.openlineage.facets import DATASET, JOB, MODELS
from strandline.core.openlineage.names import id_of
from strandline.core.wildcards import is_like
from strandline.store.lineage.lookup import names_of_datasets
from strandline.store.schema.annotation_tables import TAG_GIVEN, annotations
from strandline.store.sql.compression import expand, expander
from strandline.store.sql.facet_rows import any_value, facet_rows
from strandline.store.sql.id_lists import among, among_given

Answer = dict[str, Any]
Facets = dict[str, orjson.Fragment]


def newest_facet_rows(
    connection: Connection,
    kinds: tuple[int, ...],
    group_of: Mapping[int, int],
    keys: Collection[str] | None = None,
) -> dict[tuple[int, str], Any]:
    """Map entity and key to the newest facet of these kinds, of all keys or of some.

    `group_of` leads from each id to the entity that it is one of. A facet that the newest row calls
    deleted is gone under every id; a quarantined one counts where there is no other.
    """
    bound = {"ids": list(group_of), "keys": list(keys or ())}
    rows = connection.execute(_facet_rows(kinds, keys is not None), bound)
    newest = {
        (group_of[row.entity_id], row.key): row
        for row in sorted(rows, key=lambda row: (row.kind < QUARANTINED, row.at, row.hash))
    }
    return {place: row for place, row in newest.items() if not row.deleted}


@cache
def _facet_rows(kinds: tuple[int, ...], of_keys: bool) -> Select[Any]:
    keys = partial(among_given, name="keys") if of_keys else any_value
    held = facet_rows(partial(among_given, name="ids"), kinds, keys)
    return select(held).where(held.c.content.is_not(None))


def facets_of(connection: Connection, kind: int, ids: Iterable[int]) -> dict[int, Facets]:
    """The facets of each entity of one kind, by key."""
    return merged_facets_each(connection, kind, {id_: id_ for id_ in ids})


def merged_facets(connection: Connection, kind: int, ids: Iterable[int]) -> Facets:
    """The facets of one entity that has several ids (a dataset and its symlinks)."""
    return merged_facets_each(connection, kind, dict.fromkeys(ids, 0)).get(0, {})


def merged_facets_each(
    connection: Connection, kind: int, group_of: Mapping[int, int]
) -> dict[int, Facets]:
    """The same of many entities: `group_of` has the entity that each id is one of."""
    rows = newest_facet_rows(connection, (kind, kind + QUARANTINED), group_of)
    expanded = expander()
    facets: dict[int, Facets] = {}
    for (entity, key), row in rows.items():
        facets.setdefault(entity, {})[key] = orjson.Fragment(expanded(row.content))
    return facets


def value_of(connection: Connection, kind: int, ids: Iterable[int], key: str) -> Any:
    """Return the newest facet of this key, decoded by its model.

    None where none was or all are quarantined.
    """
    row = newest_facet_rows(connection, (kind,), dict.fromkeys(ids, 0), [key]).get((0, key))
    return None if row is None else msgspec.json.decode(expand(row.content), type=MODELS[kind, key])


def values_among(
    connection: Connection, kind: int, ids: Iterable[int], key: str
) -> Iterator[tuple[int, Any]]:
    """(entity, what its facet of this key says as plain JSON) of as many entities as there are.

    Not quarantined ones.
    """
    expanded = expander()
    rows = newest_facet_rows(connection, (kind,), {id_: id_ for id_ in ids}, [key])
    for (entity, _), row in rows.items():
        yield entity, orjson.loads(expanded(row.content))


def quarantined(connection: Connection, kind: int, ids: Iterable[int]) -> dict[str, str]:
    """The facets of which the newest was kept and not used, with the reason."""
    return _quarantined(connection, kind, dict.fromkeys(ids, 0)).get(0, {})


def quarantined_each(
    connection: Connection, kind: int, ids: Iterable[int]
) -> dict[int, dict[str, str]]:
    """The same of each entity of one kind that has such facets."""
    return _quarantined(connection, kind, {id_: id_ for id_ in ids})


def _quarantined(
    connection: Connection, kind: int, group_of: Mapping[int, int]
) -> dict[int, dict[str, str]]:
    rows = connection.execute(_problems(kind), {"ids": list(group_of)})
    newest = {(group_of[row.entity_id], row.key): row.problem for row in rows}
    problems: dict[int, dict[str, str]] = {}
    for (entity, key), problem in newest.items():
        if problem:
            problems.setdefault(entity, {})[key] = problem
    return problems


@cache
def _problems(kind: int) -> Select[Any]:
    held = facet_rows(partial(among_given, name="ids"), (kind, kind + QUARANTINED))
    return select(held.c.entity_id, held.c.key, held.c.problem).order_by(held.c.at, held.c.hash)


def tagged(
    connection: Connection, nodes: Sequence[Answer], patterns: Collection[str]
) -> list[Answer]:
    """Return the nodes with one of these tags: KEY, or KEY=VALUE; `*` stands for anything."""
    having = tags_of_nodes(connection, nodes)
    tagged_nodes = []
    for node in nodes:
        facets = having.get(node["id"], ())
        texts = {text for facet in facets for text in _tags(facet, node.get("column"))}
        if any(is_like(text, pattern) for text in texts for pattern in patterns):
            tagged_nodes.append(node)
    return tagged_nodes


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
    names = names_of_datasets(connection, of_nodes["dataset"])
    of_names = {name: of_nodes["dataset"][dataset] for name, dataset in names.items()}
    return {DATASET: of_names, JOB: of_nodes["job"]}
