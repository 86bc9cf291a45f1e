"""Tables behind JDBC addresses.

They are read or written by option, by table of the session catalog, or by a JDBC catalog. A query
or a FROM clause in place of a table is parsed by Spark's own parser for the tables it names. They
have no snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from strandline_spark.columns.expression import Ref, Value, column
from strandline_spark.formats.catalog_tables import provider_of, session_catalog, table_name
from strandline_spark.formats.contract import Format
from strandline_spark.formats.jdbc.query import JdbcQuery, query_of
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.class_names import SOURCES
from strandline_spark.jvm.client import JavaObject, Jvm, class_name
from strandline_spark.model.names import of_jdbc
from strandline_spark.model.statement import Dataset

_NAME = r"""(?:[\w$#]+|"[^"]+"|`[^`]+`|\[[^\]]+\])"""
_TABLE = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_QUERY = re.compile(r"(?:select|with)\b", re.IGNORECASE)


class Jdbc(Format):
    """JDBCRelation, JDBCTable, and writes through JdbcRelationProvider."""

    name = "jdbc"
    rank = 30

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table, or the first table of a query."""
        address = self._address(mention, jvm)
        tables = _tables(*address, jvm) if address is not None else []
        return (
            self._dataset(mention, *address, tables[0], jvm)
            if address is not None and tables
            else None
        )

    def named(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table that a JDBC catalog is about to create."""
        if mention.catalog is None or not _is(mention.catalog, "v2.jdbc.JDBCTableCatalog"):
            return None
        url = jvm.conf(f"spark.sql.catalog.{mention.catalog.name()}.url")
        table = ".".join([*mention.identifier.namespace(), str(mention.identifier.name())])
        return Dataset(*of_jdbc(url, table), self.name, mention.schema) if url else None

    def others_of(self, mention: Mention, jvm: Jvm) -> Sequence[Dataset]:
        """The other tables of a query."""
        address = self._address(mention, jvm)
        if address is None:
            return ()
        return [
            Dataset(*of_jdbc(address[0], table), self.name) for table in _tables(*address, jvm)[1:]
        ]

    def queried(self, mention: Mention, jvm: Jvm) -> Mapping[int, Value] | None:
        """Return the sources of the query's columns, by attribute."""
        address = self._address(mention, jvm)
        query = _query(*address, jvm) if address is not None else None
        if address is None or query is None:
            return None
        names = [name for _, name in mention.columns]

        def column_of(table: str, name: str) -> Value:
            return column(Ref(of_jdbc(address[0], table), name, table))

        values = query.columns(names, column_of)
        return {expr_id: value for (expr_id, _), value in zip(mention.columns, values, strict=True)}

    def _dataset(self, mention: Mention, url: str, text: str, table: str, jvm: Jvm) -> Dataset:
        namespace, name = of_jdbc(url, table)
        if mention.catalog_table is None:
            return Dataset(
                namespace, name, self.name, mention.schema if table == text.strip() else ()
            )
        known_as = table_name(mention.catalog_table)
        return Dataset(namespace, name, self.name, mention.schema, session_catalog(jvm), known_as)

    def _address(self, mention: Mention, jvm: Jvm) -> tuple[str, str] | None:
        if mention.relation is not None and _is(mention.relation, "jdbc.JDBCRelation"):
            return _of_options(mention.relation.jdbcOptions())
        if mention.table is not None and _is(mention.table, "v2.jdbc.JDBCTable"):
            return _of_options(mention.table.jdbcOptions())
        by_table = (
            mention.catalog_table is not None and provider_of(mention.catalog_table) == "jdbc"
        )
        return (
            _of_mention(mention)
            if by_table or mention.provider in {"JdbcRelationProvider", "jdbc"}
            else None
        )


def _is(instance: JavaObject, name: str) -> bool:
    return class_name(instance) == SOURCES + name


def _of_mention(mention: Mention) -> tuple[str, str] | None:
    url, table = (
        mention.options.get("url"),
        mention.options.get("dbtable") or mention.options.get("query"),
    )
    return (url, table) if url and table else None


def _of_options(options: JavaObject) -> tuple[str, str]:
    text, prepared = str(options.tableOrQuery()), str(options.prepareQuery()).strip()
    return str(options.url()), f"({prepared} {_unwrapped(text)})" if prepared else text


def _query(url: str, table_or_query: str, jvm: Jvm) -> JdbcQuery | None:
    """Return the query in place of a table; None if it is a table, or cannot be read."""
    text = table_or_query.strip()
    if is_table(text):
        return None
    if _QUERY.match(text):
        return query_of(url, text, jvm)
    inside = query_of(url, _unwrapped(text), jvm) if text.startswith("(") else None
    return inside or query_of(url, f"SELECT * FROM {text}", jvm)


def is_table(text: str) -> bool:
    """Return whether a text is a table's name, and no query or FROM clause.

    >>> is_table("main.orders"), is_table('"Two words".orders'), is_table("orders o")
    (True, True, False)
    """
    return _TABLE.fullmatch(text.strip()) is not None


def _unwrapped(query: str) -> str:
    text = query.strip()
    return text[1 : text.rindex(")")] if text.startswith("(") else text


def _tables(url: str, table_or_query: str, jvm: Jvm) -> list[str]:
    """Return the tables that a query or FROM clause names, or the one name that it is.

    Raises:
        LookupError: it is written in the database's own dialect.
    """
    if is_table(table_or_query):
        return [table_or_query.strip()]
    query = _query(url, table_or_query, jvm)
    if query is None:
        raise LookupError("a JDBC query in the database's own dialect names tables nobody knows")
    return query.tables


FORMAT = Jdbc()
