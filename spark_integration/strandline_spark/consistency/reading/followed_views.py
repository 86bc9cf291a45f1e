"""The text behind a view, so that what it reads can be read at a version.

Temporary views, the session's, Iceberg's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline_spark.consistency.reading.sql_text import quoted
from strandline_spark.formats.catalog_tables import SESSION_CATALOG
from strandline_spark.jvm.class_names import VIEW_CATALOG
from strandline_spark.model.inlined_views import alias_of


@dataclass(frozen=True, slots=True)
class View:
    """A view's query, where its names are looked up, and what its columns are called.

    They are looked up in a catalog and namespace. `sql` is None where the view was made of a
    DataFrame: there is no text to follow. `name` is the view's catalog, namespace and name; a
    temporary view has none.
    """

    sql: str | None
    home: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    name: tuple[str, ...] = ()

    def around(self, sql: str) -> str:
        r"""The view's columns out of a query.

        >>> View("...", (), ("a", "b"), ("x", "b")).around("SELECT a, b FROM t")
        '(SELECT `a` AS `x`, `b` AS `b` FROM (\nSELECT a, b FROM t\n))'
        """
        alias = f" AS {quoted([alias_of(self.name)])}" if self.name else ""
        if len(set(self.selected)) < len(self.selected) or len(self.selected) != len(self.columns):
            columns = ", ".join(quoted([column]) for column in self.columns)
            return f"(SELECT * FROM (\n{sql}\n){alias or ' AS v'}({columns}))"
        chosen = (
            f"{quoted([old])} AS {quoted([new])}"
            for old, new in zip(self.selected, self.columns, strict=True)
        )
        return f"(SELECT {', '.join(chosen)} FROM (\n{sql}\n){alias})"


def view_of(spark: SparkSession, parts: Sequence[str]) -> View | None:
    """The view of this name, or None where it is none.

    Raises what Spark raises for an unknown name.
    """
    session: Any = spark._jsparkSession
    plan = session.table(quoted(parts)).queryExecution().analyzed()
    while str(plan.getClass().getSimpleName()) == "SubqueryAlias":
        plan = plan.child()
    if str(plan.getClass().getSimpleName()) == "View":
        return _of_description(plan.desc(), temporary=bool(plan.isTempView()))
    if plan.children().size() == 0 and plan.getClass().getSimpleName() != "LogicalRDD":
        return None
    return _of_catalog(spark, parts) or View(None)


def _of_description(description: Any, *, temporary: bool) -> View:
    if not description.viewText().isDefined():
        return View(None)
    columns = _texts(description.schema().fieldNames())
    conf = _pairs(description.viewSQLConfigs())
    home = tuple(_sequence(description.viewCatalogAndNamespace()))
    selected = tuple(_sequence(description.viewQueryColumnNames())) or columns
    name: tuple[str, ...] = ()
    if not temporary:
        identifier = description.identifier()
        name = SESSION_CATALOG, str(identifier.database().get()), str(identifier.table())
    return View(str(description.viewText().get()), home, selected, columns, conf, name)


def _of_catalog(spark: SparkSession, parts: Sequence[str]) -> View | None:
    """A view of a catalog that has views of its own."""
    session: Any = spark._jsparkSession
    jvm: Any = spark._jvm
    manager, lang = session.sessionState().catalogManager(), jvm.java.lang
    named = len(parts) > 1 and manager.isCatalogRegistered(parts[0])
    catalog = manager.catalog(parts[0]) if named else manager.currentCatalog()
    names = list(parts[1:]) if named else list(parts)
    space = names[:-1] or ([] if named else _texts(manager.currentNamespace()))
    try:
        kind = lang.Class.forName(
            VIEW_CATALOG, True, lang.Thread.currentThread().getContextClassLoader()
        )
        if not kind.isInstance(catalog):
            return None
        view = catalog.loadView(_identifier(spark, space, names[-1]))
    except (Py4JError, PySparkException):
        return None
    columns = _texts(view.schema().fieldNames())
    home = (str(view.currentCatalog() or catalog.name()), *_texts(view.currentNamespace()))
    name = (str(catalog.name()), *space, names[-1])
    selected = _texts(view.queryColumnNames())
    return View(str(view.query()), home, selected, columns, name=name)


def _identifier(spark: SparkSession, space: Sequence[str], name: str) -> Any:
    gateway: Any = spark.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.java.lang.String, len(space))
    for place, part in enumerate(space):
        array[place] = part
    return gateway.jvm.org.apache.spark.sql.connector.catalog.Identifier.of(array, name)


def _texts(java_array: Any) -> tuple[str, ...]:
    return tuple(map(str, java_array))


def _sequence(scala_seq: Any) -> list[str]:
    return [str(scala_seq.apply(number)) for number in range(scala_seq.size())]


def _pairs(scala_map: Any) -> dict[str, str]:
    entries = scala_map.toSeq()
    return {str(entries.apply(n)._1()): str(entries.apply(n)._2()) for n in range(entries.size())}
