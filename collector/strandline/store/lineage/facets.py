"""The stored facets of an entity, as they came.

Of a run, a job, a dataset under all its names, a relation.

They are handed on as bytes inside the JSON of an answer; only what the answer is made of is decoded
(`value_of`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec
import orjson
from sqlalchemy import Connection, Select, select

from strandline.core.changes.rows import QUARANTINED
from strandline.core.openlineage.facets import MODELS
from strandline.store.sql.compression import expand, expander
from strandline.store.sql.facet_rows import facet_rows, newest_rows, one_of
from strandline.store.sql.id_lists import among_given

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
