"""Queries that PostgreSQL shall answer for one key after the other.

Left to itself, it would first answer them for all keys that there are.
"""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, TableClause, literal_column, select, true

from strandline.store.schema.run_tables import runs
from strandline.store.sql.id_lists import among_given


def for_each(
    dialect: str, key: ColumnElement[int], given: str | None, rows: Select[Any]
) -> Select[Any]:
    """Return the ids of runs that a query has for each key.

    The keys come with the parameter `given`; without it they are all keys of their table.
    """
    outer = key.table
    keys = (true(),) if given is None else (among_given(key, given),)
    if dialect == "postgresql":
        of_one = rows.correlate(outer).lateral("of_one")
        return select(of_one.c.id).select_from(outer.join(of_one, true())).where(*keys)
    each = runs.alias("each")
    joined = outer.join(each, each.c.id.in_(rows.correlate(outer)))
    return select(each.c.id).select_from(joined).where(*keys)


def of_each(dialect: str, view: TableClause, run: ColumnElement[int]) -> FromClause:
    """Return a view on runs, to be joined by `run_id`, whose rows PostgreSQL looks up by run.

    These views have more joins than PostgreSQL reorders, so it would work out the whole view. The
    OFFSET keeps it from taking the query apart.
    """
    if dialect == "sqlite":
        return view
    of_one = select(view).where(view.c.run_id == run).offset(literal_column("0"))
    return of_one.lateral(f"{view.name}_of_each")
