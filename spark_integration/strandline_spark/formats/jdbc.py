"""Tables behind JDBC addresses, read or written by option, by table of the session catalog, or by a JDBC catalog.

A query in place of a table is parsed by Spark's own parser for the tables it names. No snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence

from py4j.protocol import Py4JError

from strandline_spark.dataset_names import of_jdbc
from strandline_spark.formats import Format
from strandline_spark.formats.catalog_tables import provider_of, session_catalog, table_name
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm import JavaObject, Jvm, class_name
from strandline_spark.plans.tree import is_tree, parsed, tree_of
from strandline_spark.statement import Dataset

_PACKAGE = "org.apache.spark.sql.execution.datasources."


class Jdbc(Format):
    """JDBCRelation, JDBCTable, and writes through JdbcRelationProvider."""

    name = "jdbc"
    rank = 30

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        found = self._address(mention, jvm)
        tables = _tables(found[1], jvm) if found is not None else []
        return self._dataset(mention, found[0], tables[0], jvm) if found is not None and tables else None

    def others_of(self, mention: Mention, jvm: Jvm) -> Sequence[Dataset]:
        found = self._address(mention, jvm)
        if found is None:
            return ()
        return [Dataset(*of_jdbc(found[0], table), self.name) for table in _tables(found[1], jvm)[1:]]

    def _dataset(self, mention: Mention, url: str, table: str, jvm: Jvm) -> Dataset:
        namespace, name = of_jdbc(url, table)
        if mention.catalog_table is None:
            return Dataset(namespace, name, self.name, mention.schema)
        known_as = table_name(mention.catalog_table)
        return Dataset(namespace, name, self.name, mention.schema, session_catalog(jvm), known_as)

    def _address(self, mention: Mention, jvm: Jvm) -> tuple[str, str] | None:
        if mention.relation is not None and _is(mention.relation, "jdbc.JDBCRelation"):
            return _of_options(mention.relation.jdbcOptions())
        if mention.table is not None and _is(mention.table, "v2.jdbc.JDBCTable"):
            return _of_options(mention.table.jdbcOptions())
        by_table = mention.catalog_table is not None and provider_of(mention.catalog_table) == "jdbc"
        if by_table or mention.provider in {"JdbcRelationProvider", "jdbc"}:
            url, table = mention.options.get("url"), mention.options.get("dbtable") or mention.options.get("query")
            return (url, table) if url and table else None
        return None


def _is(instance: JavaObject, name: str) -> bool:
    return class_name(instance) == _PACKAGE + name


def _of_options(options: JavaObject) -> tuple[str, str]:
    return str(options.url()), str(options.tableOrQuery())


def _tables(table_or_query: str, jvm: Jvm) -> list[str]:
    """The tables that a query in place of a table names; the name itself if it is one."""
    text = table_or_query.strip()
    if not (text.startswith("(") or text[:7].lower() == "select "):
        return [text]
    query = text[1 : text.rindex(")")] if text.startswith("(") else text
    try:
        plan = parsed(jvm.session.sessionState().sqlParser().parsePlan(query).toJSON())
    except Py4JError:
        return []
    names = [str(n.fields["multipartIdentifier"]) for n in plan.walk() if n.name == "UnresolvedRelation"]
    for node in plan.walk():
        for tree in (value for value in node.fields.values() if is_tree(value)):
            names += [
                str(n.fields["multipartIdentifier"]) for n in tree_of(tree).walk() if n.name == "UnresolvedRelation"
            ]
    return list(dict.fromkeys(name.strip("[]").replace(", ", ".") for name in names))


FORMAT = Jdbc()
