"""The datasets that runs had written, read or failed to create by a past moment.

Of datasets, as lists show them then.

`job_relations` has the newest of each job alone, so here all relations of a dataset that had begun
are asked.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    exists,
    false,
    func,
    not_,
    or_,
    select,
)

from strandline.store.catalog.newest_writes import (
    Write,
    begun,
    heard_at,
    named,
    touched,
    writes_by,
)
from strandline.store.lineage.recent_runs import created_nothing
from strandline.store.lineage.run_state import past_runs
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import runs
from strandline.store.sql.id_lists import among

called = datasets.alias("called")


def was_named(moment: int) -> ColumnElement[bool]:
    """Return whether an event had named the dataset by then, by any of its names.

    An edge alone, that no later one repeats, is enough.
    """
    of_group = called.c.canonical_id == datasets.c.id
    mentioned = exists().where(
        of_group, job_relations.c.dataset_id == called.c.id, job_relations.c.at <= moment
    )
    return or_(
        _by(datasets.c.first_at, moment),
        exists().where(of_group, called.c.first_at <= moment),
        mentioned,
    )


def _by(at: ColumnElement[Any], moment: int) -> ColumnElement[bool]:
    return and_(at.is_not(None), at <= moment)


def past_writes(connection: Connection, ids: Collection[int], moment: int) -> dict[int, Write]:
    """The newest write by then of each of these canonical datasets that a run had written."""
    rows = connection.execute(writes_by(ids), {"moment": moment}).all()
    states = past_runs(connection, [row.run_id for row in rows], moment)
    return {
        row.dataset: Write(row.namespace, row.name, states[row.run_id].state)
        for row in rows
        if row.run_id in states and states[row.run_id].state.state != "NONE"
    }


def heard_by(connection: Connection, ids: Collection[int], moment: int) -> dict[int, int]:
    """Return when a run was last heard to read or write each of these datasets by then.

    One that was under way is at the moment.
    """
    query = select(named.c.canonical_id, func.max(heard_at())).select_from(touched())
    query = query.where(*begun(ids)).group_by(named.c.canonical_id)
    return dict(map(tuple, connection.execute(query, {"moment": moment})))


def not_made_by(connection: Connection, ids: Collection[int], moment: int) -> set[int]:
    """Return those of these datasets that only failed creations had mentioned by then."""
    undone = and_(created_nothing(), runs.c.ended_at <= moment)
    related = (named.c.canonical_id == datasets.c.id, relations.c.dataset_id == named.c.id)
    begun = (*related, runs.c.id == relations.c.run_id, relations.c.first_at <= moment)
    first_told = _of_names(func.min(called.c.first_at))
    last_told = _of_names(func.max(called.c.newest_at))
    first = exists().where(*begun, undone, relations.c.first_at <= first_told)
    last = or_(
        exists().where(*begun, undone, relations.c.newest_at >= last_told), last_told > moment
    )
    only_undone = case((exists().where(*begun, not_(undone)), false()), else_=and_(first, last))
    return set(
        connection.scalars(select(datasets.c.id).where(among(datasets.c.id, ids), only_undone))
    )


def _of_names(what: ColumnElement[Any]) -> Any:
    return (
        select(what)
        .where(called.c.canonical_id == datasets.c.id)
        .correlate(datasets)
        .scalar_subquery()
    )
