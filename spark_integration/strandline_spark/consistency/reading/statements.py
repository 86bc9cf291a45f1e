"""A statement of Spark SQL whose reads are put at one version.

Views are followed to their tables. A table that the statement changes is read as it is: at an older
version it would write old rows back. The analysed statement is compared with the versions that were
asked for, so that no other table is read at its latest. A statement that hides one is refused
before anything has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline_spark.consistency.collector import UnknownTableError, UnreadableStatementError
from strandline_spark.consistency.reading.analysed_reads import (
    AnalysedStatement,
    TableRead,
    analyse_statement,
)
from strandline_spark.consistency.reading.followed_views import View, view_of
from strandline_spark.consistency.reading.sql_text import Mentioned, Text, quoted, text_of
from strandline_spark.consistency.table_identity import Identities
from strandline_spark.jvm.unlogged import unlogged
from strandline_spark.model.statement import VERSIONED

_MEANING = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive")
InCatalog = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Followed:
    """A text with the tables to ask about, by the mentions of them.

    `views` lead to further ones. `home` is the catalog and namespace of a view's text;
    the statement's own text has none.
    """

    text: Text
    home: tuple[str, ...] = ()
    names: Mapping[Mentioned, tuple[str, ...]] = field(default_factory=dict)
    asked: Mapping[Mentioned, str] = field(default_factory=dict)
    views: Mapping[Mentioned, tuple[View, Followed]] = field(default_factory=dict)

    def tables(self) -> Iterator[str]:
        """Yield the names to ask about, as SQL writes them."""
        yield from self.asked.values()
        for _, inner in self.views.values():
            yield from inner.tables()

    def at(self, snapshots: Mapping[str, str]) -> str:
        """Return the text with a version behind each table that `snapshots` names."""
        return self.text.at(lambda table: self._source(table, snapshots))

    def _source(self, table: Mentioned, snapshots: Mapping[str, str]) -> str | None:
        if table in self.views:
            view, inner = self.views[table]
            return view.around(inner.at(snapshots))
        snapshot = snapshots.get(self.asked.get(table, ""))
        if snapshot is not None:
            return f"{quoted(self.names[table])} VERSION AS OF {snapshot}"
        return quoted(self.names[table]) if self.home else None


class StatementReading:
    """A statement, and the tables that it reads in the catalogs that matter."""

    def __init__(self, spark: SparkSession, text: Text, args: Any, in_catalog: InCatalog) -> None:
        self._spark = spark
        self._args = args
        self._in_catalog = in_catalog
        self._identities = Identities(spark)
        self._changed = frozenset[tuple[str, str]]()
        self._as_it_is = set[str]()
        self.text = text

    def follow(self) -> Followed:
        """Look up the tables that the statement reads and does not change.

        Raises UnreadableStatementError for a script, and for text run as SQL.
        """
        if self.text.kind == "script":
            raise UnreadableStatementError(
                "a SQL script is not read at one version: run its statements one by one, "
                "or set the consistency to latest"
            )
        if "EXECUTE IMMEDIATE" in self.text.hides:
            raise UnreadableStatementError(
                "EXECUTE IMMEDIATE hides what it reads: run its text by spark.sql, "
                "or set the consistency to latest"
            )
        if self.text.kind == "command":
            with unlogged():
                self._changed = frozenset(self._identities_of_changed())
        return self._followed(self.text, ())

    def _identities_of_changed(self) -> Iterator[tuple[str, str]]:
        """Yield namespace and name of each table that the statement changes and that exists."""
        for table in self._analyse(self.text.sql).changes:
            with suppress(UnknownTableError):
                for dataset in self._identities.behind(quoted(table.split("."))):
                    yield dataset.namespace, dataset.name

    def _analyse(self, sql: str) -> AnalysedStatement:
        try:
            return analyse_statement(self._spark, sql, self._args)
        except PySparkException as error:
            reason = str(error).strip().partition("\n")[0]
            raise UnreadableStatementError(
                f"the statement cannot be read at a version: {reason}"
            ) from error

    def _followed(self, text: Text, home: tuple[str, ...]) -> Followed:
        names, options, views = {}, {}, {}
        for table in text.tables:
            parts = names[table] = self._resolved(table.parts, home)
            view = view_of(self._spark, parts)
            if view is None:
                if self._is_asked(quoted(parts)):
                    options[table] = quoted(parts)
            elif view.sql is not None:
                inner = self._followed(text_of(self._spark, view.sql), view.home)
                if any(inner.tables()):
                    self._check_conf(parts, view)
                    views[table] = (view, inner)
        return Followed(text, home, names, options, views)

    def _resolved(self, parts: tuple[str, ...], home: tuple[str, ...]) -> tuple[str, ...]:
        """Return the full name behind a name in a view's text."""
        state: Any = self._spark._jsparkSession.sessionState()
        temporary = (
            parts[:-1] in ((), ("global_temp",))
            and state.catalog().getTempView(parts[-1]).isDefined()
        )
        if not home or temporary or parts[0] == "global_temp":
            return parts
        if len(parts) == 1:
            return (*home, *parts)
        return parts if state.catalogManager().isCatalogRegistered(parts[0]) else (home[0], *parts)

    def _is_asked(self, name: str) -> bool:
        """Return whether the name is of a table to put at a version.

        A table of another catalog is not, nor one that the statement changes, nor a part of a table
        (`t.tag_a`, `t.files`).
        """
        behind = self._identities.behind(name)
        if len(behind) != 1 or behind[0].table is None:
            return False
        dataset, table = behind[0], behind[0].table
        if (dataset.namespace, dataset.name) in self._changed:
            self._as_it_is.add(table)
            return False
        if not self._in_catalog(table.partition(".")[0]):
            return False
        return dataset.format not in VERSIONED or self._identities.is_direct(name, dataset)

    def _check_conf(self, parts: tuple[str, ...], view: View) -> None:
        for key in _MEANING:
            if key in view.conf and view.conf[key] != self._spark.conf.get(key):
                raise UnreadableStatementError(
                    f"view {'.'.join(parts)} was made under {key}={view.conf[key]}, "
                    "and the session has another"
                )

    def check(self, sql: str, at_latest: frozenset[str]) -> None:
        """Raise unless Spark reads every table of the text at a version.

        Those `at_latest` are exempt.
        """
        expected = at_latest | self._as_it_is
        reads = self._analyse(sql).reads
        left = sorted({read.table for read in reads if self._is_latest(read)} - expected)
        if left:
            how = (
                " and ".join(self.text.hides)
                or "a view made of a DataFrame, a function or a table's changes"
            )
            raise UnreadableStatementError(
                f"{', '.join(left)}: read through {how}, where no version can be put; "
                "name the table itself"
            )

    def _is_latest(self, read: TableRead) -> bool:
        return read.at_version is False and self._in_catalog(read.catalog)
