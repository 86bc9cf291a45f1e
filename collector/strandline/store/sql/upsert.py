"""Applying rows: one statement a table, each stating its winner as core/changes.py declares it.

Applying the same rows twice, or in another order, leaves the same rows. Tables are written in one
order and rows sorted by key, so that several writers on PostgreSQL do not meet in a deadlock.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table

from strandline.core.changes.rows import FOLDS, Fold
from strandline.store.schema.tables import metadata
from strandline.store.sql.pg_arrays import packed, unnested


def apply(connection: Connection, rows: Mapping[type[Any], Sequence[tuple[Any, ...]]]) -> None:
    """Write the rows of every kind."""
    for kind in FOLDS:
        if kind in rows:
            upsert(connection, kind, rows[kind])


def upsert(connection: Connection, kind: Any, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows of one kind, at most one a key, folding each with what is stored."""
    statement, table = (
        upsert_statement(kind, connection.dialect.name),
        metadata.tables[FOLDS[kind].table],
    )
    connection.exec_driver_sql(statement, values_of(connection, table, kind._fields, rows))


@cache
def upsert_statement(kind: type[Any], dialect: str) -> str:
    """The statement that folds rows of a kind into its table."""
    fold = FOLDS[kind]
    columns: tuple[str, ...] = kind._fields
    table = metadata.tables[fold.table]
    values = insert_values(table, columns, dialect)
    action = (
        _update(fold, columns, dialect) if fold.rank or fold.least or fold.most else "DO NOTHING"
    )
    return f"INSERT INTO {fold.table} ({', '.join(columns)}) {values} ON CONFLICT ({', '.join(fold.key)}) {action}"


def insert_values(table: Table, columns: Sequence[str], dialect: str) -> str:
    """Where the values come from: on PostgreSQL one array a column, on SQLite one row at a time."""
    return (
        unnested(table, columns)
        if dialect == "postgresql"
        else f"VALUES ({', '.join('?' * len(columns))})"
    )


def values_of(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> Any:
    """The values that go with it."""
    return (
        packed(table, columns, rows)
        if connection.dialect.name == "postgresql"
        else [tuple(row) for row in rows]
    )


def _update(fold: Fold, columns: Sequence[str], dialect: str) -> str:
    newer = _newer(fold) if fold.rank else ""
    if not fold.least and not fold.most:
        others = [name for name in columns if name not in fold.key]
        return f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)} WHERE {newer}"
    sets = _assignments(fold, newer, dialect)
    wanted = [_beyond("<", fold.table, name) for name in fold.least] + [
        _beyond(">", fold.table, name) for name in fold.most
    ]
    return f"DO UPDATE SET {', '.join(sets)} WHERE {' OR '.join([*wanted, newer] if newer else wanted)}"


def _assignments(fold: Fold, newer: str, dialect: str) -> list[str]:
    sets = [f"{name} = {_extreme('least', fold.table, name, dialect)}" for name in fold.least]
    sets += [f"{name} = {_extreme('greatest', fold.table, name, dialect)}" for name in fold.most]
    sets += [
        f"{name} = CASE WHEN {newer} THEN excluded.{name} ELSE {fold.table}.{name} END"
        for name in fold.ranked
    ]
    return sets


def _newer(fold: Fold) -> str:
    new, old = (
        ", ".join(f"{row}.{name}" for name in fold.rank) for row in ("excluded", fold.table)
    )
    return f"({new}) > ({old})"


def _extreme(which: str, table: str, name: str, dialect: str) -> str:
    old, new = f"{table}.{name}", f"excluded.{name}"
    if dialect == "postgresql":
        return f"{which}({old}, {new})"  # ignores NULLs
    function = {"least": "min", "greatest": "max"}[which]
    return f"{function}(coalesce({old}, {new}), coalesce({new}, {old}))"


def _beyond(operator: str, table: str, name: str) -> str:
    return f"excluded.{name} {operator} {table}.{name} OR ({table}.{name} IS NULL AND excluded.{name} IS NOT NULL)"
