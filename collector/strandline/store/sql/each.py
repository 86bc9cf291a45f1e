"""Questions that are asked of one key after the other, where PostgreSQL would answer them for all keys there are first."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, TableClause, literal_column, select, true

from strandline.store.schema.run_tables import runs
from strandline.store.sql.id_lists import among_given


def for_each(
    dialect: str, key: ColumnElement[int], given: str | None, rows: Select[Any]
) -> Select[Any]:
    """The rows (ids of runs) that a query has for each of the given keys, or for all keys of its table."""
    outer = key.table
    keys = (true(),) if given is None else (among_given(key, given),)
    if dialect == "postgresql":
        of_one = rows.correlate(outer).lateral("of_one")
        return select(of_one.c.id).select_from(outer.join(of_one, true())).where(*keys)
    each = runs.alias("each")
    found = outer.join(each, each.c.id.in_(rows.correlate(outer)))
    return select(each.c.id).select_from(found).where(*keys)


def of_each(dialect: str, view: TableClause, run: ColumnElement[int]) -> FromClause:
    """A view on runs, to be joined by its `run_id`, of which PostgreSQL looks up the rows of the runs that are asked for.

    These views have more joins than it puts in an order of its own, so it would work out the whole view. The OFFSET keeps it
    from taking the query apart.
    """
    if dialect == "sqlite":
        return view
    of_one = select(view).where(view.c.run_id == run).offset(literal_column("0"))
    return of_one.lateral(f"{view.name}_of_each")
