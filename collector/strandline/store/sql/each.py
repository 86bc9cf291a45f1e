"""Queries that PostgreSQL shall answer for one key after the other.

Left to itself, it would first answer them for all keys that there are.
"""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    TableClause,
    and_,
    literal_column,
    select,
    true,
)

from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.sql.id_lists import among_given


def for_each(
    dialect: str, key: ColumnElement[int], job: str | None, rows: Select[Any]
) -> Select[Any]:
    """Return the ids of runs that a query has for each key.

    The keys come with the parameter `given`; without it they are all keys of their table.
    """
    outer = key.table
    keys = (true(),) if job is None else (among_given(key, job),)
    if dialect == "postgresql":
        of_one = rows.correlate(outer).lateral("of_one")
        return select(of_one.c.id).select_from(outer.join(of_one, true())).where(*keys)
    each = runs.alias("each")
    joined = outer.join(each, each.c.id.in_(rows.correlate(outer)))
    return select(each.c.id).select_from(joined).where(*keys)


def snapshots_of_each(dialect: str, rows: Select[Any]) -> tuple[FromClause, FromClause]:
    """Return the snapshots that a query has for each dataset, and their join with the datasets.

    The query selects whole rows of `snapshots` by the id of `datasets`.
    """
    if dialect == "postgresql":
        of_one = rows.correlate(datasets).lateral("of_one")
        return of_one, datasets.join(of_one, true())
    each = snapshots.alias("each")
    ids = rows.with_only_columns(snapshots.c.snapshot_id).correlate(datasets)
    of_dataset = and_(each.c.dataset_id == datasets.c.id, each.c.snapshot_id.in_(ids))
    return each, datasets.join(each, of_dataset)


def of_each(dialect: str, view: TableClause, run: ColumnElement[int]) -> FromClause:
    """Return a view on runs, to be joined by `run_id`, whose rows PostgreSQL looks up by run.

    These views have more joins than PostgreSQL reorders, so it would work out the whole view. The
    OFFSET keeps it from taking the query apart.
    """
    if dialect == "sqlite":
        return view
    of_one = select(view).where(view.c.run_id == run).offset(literal_column("0"))
    return of_one.lateral(f"{view.name}_of_each")
