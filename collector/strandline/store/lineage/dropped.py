"""The dropped datasets, with times.

By the newest `lifecycleStateChange` under any of their names.

Claimed only where nothing contradicts it. A DROP that failed or is under way claims nothing. Nor
does one of a dataset that another run wrote at that time or later, with or without such a facet.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, Select, select

from strandline.core.changes.extraction import SINK
from strandline.core.changes.rows import QUARANTINED
from strandline.core.openlineage.facets import DATASET
from strandline.core.openlineage.run_states import COMPLETE
from strandline.store.lineage.run_state import iso
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.sql.compression import expand
from strandline.store.sql.facet_rows import facet_rows, one_of
from strandline.store.sql.id_lists import among


def dropped_at(connection: Connection, ids: Iterable[int], moment: int) -> dict[int, int]:
    """Return the moment of the drop, in microseconds, of each of these datasets.

    Only of those that were dropped by a moment.
    """
    return _claimed(connection, _newest_changes(connection, ids), moment, None)


def drops_then(
    connection: Connection, ids: Iterable[int], moment: int
) -> dict[int, dict[str, Any]]:
    """The same as lists of a past moment show it: `droppedAt`, null of what was not dropped.

    What was written since contradicts nothing. But a later facet hides the one before it: where
    there is one, nothing is told.
    """
    listed = list(ids)
    newest = _newest_changes(connection, listed)
    dropped = _claimed(connection, newest, moment, moment)
    return {
        id_: {}
        if id_ in newest and newest[id_].at > moment
        else {"droppedAt": iso(dropped.get(id_))}
        for id_ in listed
    }


def drop_answers(
    connection: Connection, ids: Iterable[int], moment: int, *, past: bool = False
) -> dict[int, dict[str, Any]]:
    """The same as answers show it: `droppedAt` of what was dropped, nothing of the others."""
    listed = list(ids)
    dropped = _claimed(
        connection, _newest_changes(connection, listed), moment, moment if past else None
    )
    return {id_: {"droppedAt": iso(dropped[id_])} if id_ in dropped else {} for id_ in listed}


def _newest_changes(connection: Connection, ids: Iterable[int]) -> dict[int, Any]:
    """The newest facet of each dataset that has one: the last in the order of the query."""
    return {row.dataset: row for row in connection.execute(_changes(ids))}


def _claimed(
    connection: Connection, newest: Mapping[int, Any], moment: int, by: int | None
) -> dict[int, int]:
    """Return when datasets were dropped that no run wrote then or later, or `by` a past moment."""
    claimed = {id_: row.at for id_, row in newest.items() if row.at <= moment and _drops(row)}
    dropped = _kept(connection, claimed, by) if claimed else ()
    return {id_: at for id_, at in claimed.items() if id_ not in dropped}


def _changes(ids: Iterable[int]) -> Select[Any]:
    names = select(datasets.c.id).where(among(datasets.c.canonical_id, ids))
    held = facet_rows(
        lambda entity: entity.in_(names),
        (DATASET, DATASET + QUARANTINED),
        one_of(["lifecycleStateChange"]),
    )
    return (
        select(datasets.c.canonical_id.label("dataset"), held.c.at, held.c.deleted, held.c.content)
        .join(held, held.c.entity_id == datasets.c.id)
        .order_by(held.c.at, held.c.hash)
    )


def _drops(row: Any) -> bool:
    if row.deleted or row.content is None:
        return False
    facet = orjson.loads(expand(row.content))
    return isinstance(facet, dict) and str(facet.get("lifecycleStateChange")).upper() == "DROP"


def _kept(connection: Connection, claimed: dict[int, int], moment: int | None) -> Collection[int]:
    """Those that a run wrote then or later that is not the one, completed, that dropped them.

    At a past moment, those that had done so by then.
    """
    by_then = [] if moment is None else [relations.c.first_at <= moment]
    query = (
        select(
            datasets.c.canonical_id,
            relations.c.run_id,
            relations.c.newest_at,
            runs.c.state,
            runs.c.ended_at,
        )
        .join(relations, relations.c.dataset_id == datasets.c.id)
        .join(runs, runs.c.id == relations.c.run_id)
        .where(among(datasets.c.canonical_id, claimed), relations.c.direction == SINK)
        .where(runs.c.design == 0)
        .where(relations.c.newest_at >= min(claimed.values()), *by_then)
    )
    dropped_by: dict[int, int] = {}
    dropped: set[int] = set()
    for dataset, run, newest_at, state, ended_at in connection.execute(query):
        is_done = state == COMPLETE and (moment is None or ended_at <= moment)
        if newest_at >= claimed[dataset] and (
            not is_done or dropped_by.setdefault(dataset, run) != run
        ):
            dropped.add(dataset)
    return dropped
