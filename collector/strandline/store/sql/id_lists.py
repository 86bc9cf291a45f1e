"""`column in ids` for thousands of ids as one parameter: an array, or a JSON text on SQLite.

A list of as many parameters takes longer to write than the database takes to answer, each length is
another statement, and PostgreSQL takes 65,535 parameters at most.
"""

import json
from collections.abc import Iterable
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    ColumnElement,
    Dialect,
    Text,
    TypeDecorator,
    bindparam,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine, UserDefinedType

One = TypeVar("One", int, str)


class _Array(UserDefinedType[Any]):
    """An array on PostgreSQL, made by psycopg of a Python list."""

    cache_ok = True
    render_bind_cast = True

    def __init__(self, element: str) -> None:
        self.element = element

    def get_col_spec(self, **_: Any) -> str:
        return f"{self.element}[]"


class _List(TypeDecorator[Any]):
    """A list of numbers or texts as one parameter."""

    impl = Text
    cache_ok = True

    def __init__(self, element: type[TypeEngine[Any]] = Text) -> None:
        super().__init__()
        self.element = element

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(Text())
        element = "TEXT" if issubclass(self.element, Text) else "BIGINT"
        return dialect.type_descriptor(_Array(element))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return list(value) if dialect.name == "postgresql" else json.dumps(value)


class _AmongPairs(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> "_AmongPairs":
        return self


class _Among(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> "_Among":
        return self  # not `(...) = 1`, which SQLite could use no index for


def among(column: ColumnElement[One], values: Iterable[One]) -> ColumnElement[bool]:
    """Return the condition that the column's value, a number or a text, is one of these."""
    return _Among(column, bindparam(None, list(values), type_=_list_type(column), unique=True))


def among_given(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Return the same for a list that is the statement's parameter of this name.

    So the statement can be built once.
    """
    return _Among(column, bindparam(name, type_=_list_type(column)))


def pairs_given(
    first: ColumnElement[Any], other: ColumnElement[Any], name: str
) -> ColumnElement[bool]:
    """Return the condition that two numbers are one of the pairs in a parameter, a JSON text.

    SQLite reads a whole table for `(one, other) IN (VALUES ...)`; for a subquery it uses an index.
    """
    return _AmongPairs(first, other, bindparam(name, type_=Text))


def among_text(dialect: str, column: str, name: str) -> str:
    """Return `among_given` for a statement that is written as text."""
    if dialect == "postgresql":
        return f"{column} = ANY (:{name})"
    return f"{column} IN (SELECT value FROM json_each(:{name}))"


def given(name: str, kind: type[TypeEngine[Any]]) -> BindParameter[Any]:
    """Return the parameter of such a statement: a list of numbers (BigInteger) or texts."""
    return bindparam(name, type_=_List(kind))


def _list_type(column: ColumnElement[Any]) -> _List:
    return _List(Text if isinstance(column.type, Text) else BigInteger)


@compiles(_Among, "postgresql")
def _on_postgresql(element: _Among, compiler: SQLCompiler, **how: Any) -> str:
    column, ids = (compiler.process(clause, **how) for clause in element.clauses)
    return f"{column} = ANY ({ids})"


@compiles(_Among, "sqlite")
def _on_sqlite(element: _Among, compiler: SQLCompiler, **how: Any) -> str:
    column, ids = (compiler.process(clause, **how) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({ids}))"


@compiles(_AmongPairs, "postgresql")
def _pairs_on_postgresql(element: _AmongPairs, compiler: SQLCompiler, **how: Any) -> str:
    left, other, pairs = (compiler.process(clause, **how) for clause in element.clauses)
    rows = (
        "SELECT (pair->>0)::bigint, (pair->>1)::bigint"
        f" FROM json_array_elements(({pairs})::json) AS pair"
    )
    return f"({left}, {other}) IN ({rows})"


@compiles(_AmongPairs, "sqlite")
def _pairs_on_sqlite(element: _AmongPairs, compiler: SQLCompiler, **how: Any) -> str:
    left, other, pairs = (compiler.process(clause, **how) for clause in element.clauses)
    first, second = "json_extract(value, '$[0]')", "json_extract(value, '$[1]')"
    rows = f"SELECT {first}, {second} FROM json_each({pairs})"
    return f"({left}, {other}) IN ({rows})"
