"""Writing rows: one statement a table, which states its winner as core/changes/rows.py does.

Applying the same rows twice, or in another order, leaves the same rows. Tables are written in one
order and rows sorted by key, so that several writers on PostgreSQL do not meet in a deadlock.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table

from strandline.core.changes.rows import FOLDS, Fold
from strandline.store.schema.tables import metadata


def apply(connection: Connection, rows: Mapping[type[Any], Sequence[tuple[Any, ...]]]) -> None:
    """Write the rows of every kind."""
    for kind in FOLDS:
        if kind in rows:
            upsert(connection, kind, rows[kind])


def upsert(connection: Connection, kind: Any, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows of one kind, at most one a key, folding each with the stored row."""
    table = metadata.tables[FOLDS[kind].table]
    statement = upsert_statement(kind, connection.dialect.name)
    connection.exec_driver_sql(statement, values_of(connection, table, kind._fields, rows))


@cache
def upsert_statement(kind: type[Any], dialect: str) -> str:
    """Return the statement that folds rows of a kind into its table."""
    fold = FOLDS[kind]
    columns: tuple[str, ...] = kind._fields
    values = insert_values(metadata.tables[fold.table], columns, dialect)
    has_winner = fold.rank or fold.least or fold.most
    action = _update(fold, columns, dialect) if has_winner else "DO NOTHING"
    return (
        f"INSERT INTO {fold.table} ({', '.join(columns)}) {values}"
        f" ON CONFLICT ({', '.join(fold.key)}) {action}"
    )


def insert_values(table: Table, columns: Sequence[str], dialect: str) -> str:
    """Return the source of an INSERT's rows.

    On PostgreSQL one array a column, the fastest way to write thousands of rows; on SQLite one row
    at a time.
    """
    if dialect == "postgresql":
        return unnested(table, columns)
    return f"VALUES ({', '.join('?' * len(columns))})"


def values_of(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> Any:
    """Return the parameters for `insert_values`."""
    if connection.dialect.name == "postgresql":
        return arrays_of(rows)
    return [tuple(row) for row in rows]


def unnested(table: Table, columns: Sequence[str]) -> str:
    """Return the query for the rows of arrays, one a column."""
    arrays = (f"%b::{type_}[]" for type_ in _types_of(table, tuple(columns)))
    return f"SELECT * FROM unnest({', '.join(arrays)})"


def arrays_of(rows: Iterable[Sequence[Any]]) -> tuple[list[Any], ...]:
    """Return the arrays of such a query."""
    return tuple(list(values) for values in zip(*rows, strict=True))


@cache
def _types_of(table: Table, columns: tuple[str, ...]) -> list[str]:
    """Return PostgreSQL's names of the columns' types."""
    from sqlalchemy.dialects import postgresql  # with SQLite nobody needs it

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return [table.c[name].type.compile(dialect=dialect) for name in columns]


def _update(fold: Fold, columns: Sequence[str], dialect: str) -> str:
    newer = _newer(fold) if fold.rank else ""
    if not fold.least and not fold.most:
        sets = [f"{name} = excluded.{name}" for name in columns if name not in fold.key]
        return f"DO UPDATE SET {', '.join(sets)} WHERE {newer}"
    sets = [f"{name} = {_extreme('least', fold.table, name, dialect)}" for name in fold.least]
    sets += [f"{name} = {_extreme('greatest', fold.table, name, dialect)}" for name in fold.most]
    sets += [
        f"{name} = CASE WHEN {newer} THEN excluded.{name} ELSE {fold.table}.{name} END"
        for name in fold.ranked
    ]
    changed = [_is_beyond("<", fold.table, name) for name in fold.least]
    changed += [_is_beyond(">", fold.table, name) for name in fold.most]
    changed += [newer] if newer else []
    return f"DO UPDATE SET {', '.join(sets)} WHERE {' OR '.join(changed)}"


def _newer(fold: Fold) -> str:
    new = ", ".join(f"excluded.{name}" for name in fold.rank)
    old = ", ".join(f"{fold.table}.{name}" for name in fold.rank)
    return f"({new}) > ({old})"


def _extreme(function: str, table: str, name: str, dialect: str) -> str:
    old, new = f"{table}.{name}", f"excluded.{name}"
    if dialect == "postgresql":
        return f"{function}({old}, {new})"  # ignores NULLs
    of_sqlite = {"least": "min", "greatest": "max"}[function]
    return f"{of_sqlite}(coalesce({old}, {new}), coalesce({new}, {old}))"


def _is_beyond(operator: str, table: str, name: str) -> str:
    old, new = f"{table}.{name}", f"excluded.{name}"
    return f"{new} {operator} {old} OR ({old} IS NULL AND {new} IS NOT NULL)"
