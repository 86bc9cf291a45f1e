"""`column in ids` for thousands of ids as one parameter: an array on PostgreSQL, a JSON text on SQLite.

An IN list of as many parameters takes longer to write than the database takes to answer, and each length is a statement
of its own.
"""

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Boolean, ColumnElement, Dialect, Text, TypeDecorator, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine


class _Ids(TypeDecorator[Any]):
    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(ARRAY(BigInteger()) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return value if dialect.name == "postgresql" else json.dumps(value)


class _Among(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> "_Among":
        return self  # not `(...) = 1`, which SQLite could use no index for


def among(column: ColumnElement[int], ids: Iterable[int]) -> ColumnElement[bool]:
    """Whether the column's value is one of the ids."""
    return _Among(column, bindparam(None, list(ids), type_=_Ids(), unique=True))


@compiles(_Among, "postgresql")
def _on_postgresql(element: _Among, compiler: SQLCompiler, **how: Any) -> str:
    column, ids = element.clauses
    return f"{compiler.process(column, **how)} = ANY ({compiler.process(ids, **how)})"


@compiles(_Among, "sqlite")
def _on_sqlite(element: _Among, compiler: SQLCompiler, **how: Any) -> str:
    column, ids = element.clauses
    return f"{compiler.process(column, **how)} IN (SELECT value FROM json_each({compiler.process(ids, **how)}))"
