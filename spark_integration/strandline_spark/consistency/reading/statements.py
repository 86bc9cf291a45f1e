"""A statement of Spark SQL whose reads are put at one version, whatever it writes, and however it names what it reads.

Views are followed to their tables. What Spark then says that the statement reads is compared with what was asked for,
so that nothing is read at its latest unseen: a statement that hides a table is refused, and nothing has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline_spark.consistency.collector import UnreadableStatementError
from strandline_spark.consistency.reading.analysed_reads import TableRead, reads_of
from strandline_spark.consistency.reading.followed_views import View, view_of
from strandline_spark.consistency.reading.sql_text import Mentioned, Text, quoted, text_of
from strandline_spark.consistency.table_identity import Identities
from strandline_spark.model.statement import VERSIONED

_MEANING = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive")
InCatalog = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Followed:
    """A text with the tables to ask about, by the mentions of them, and the views that lead to further ones.

    `home` is the catalog and namespace of a view's text; the statement's own text has none.
    """

    text: Text
    home: tuple[str, ...] = ()
    names: Mapping[Mentioned, tuple[str, ...]] = field(default_factory=dict)
    asked: Mapping[Mentioned, str] = field(default_factory=dict)
    views: Mapping[Mentioned, tuple[View, Followed]] = field(default_factory=dict)

    def tables(self) -> Iterator[str]:
        """The names to ask about, as SQL writes them."""
        yield from self.asked.values()
        for _, inner in self.views.values():
            yield from inner.tables()

    def at(self, snapshots: Mapping[str, str]) -> str:
        """The text with a version behind each table that `snapshots` knows."""
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
    """A statement, and what of it is read in the catalogs that matter."""

    def __init__(self, spark: SparkSession, text: Text, args: Any, in_catalog: InCatalog) -> None:
        self._spark = spark
        self._args = args
        self._in_catalog = in_catalog
        self._identities = Identities(spark)
        self.text = text

    def follow(self) -> Followed:
        """Look up what the statement reads.

        Raises UnreadableStatementError for a script, and for text run as SQL.
        """
        if self.text.kind == "script":
            raise UnreadableStatementError(
                "a SQL script is not read at one version: run its statements one by one, or set the consistency to latest"
            )
        if "EXECUTE IMMEDIATE" in self.text.hides:
            raise UnreadableStatementError(
                "EXECUTE IMMEDIATE hides what it reads: run its text by spark.sql, or set the consistency to latest"
            )
        return self._followed(self.text, ())

    def _followed(self, text: Text, home: tuple[str, ...]) -> Followed:
        names, asked, views = {}, {}, {}
        for table in text.tables:
            parts = names[table] = self._resolved(table.parts, home)
            view = view_of(self._spark, parts)
            if view is None:
                if self._is_asked(quoted(parts)):
                    asked[table] = quoted(parts)
            elif view.sql is not None:
                inner = self._followed(text_of(self._spark, view.sql), view.home)
                if any(inner.tables()):
                    self._check_conf(parts, view)
                    views[table] = (view, inner)
        return Followed(text, home, names, asked, views)

    def _resolved(self, parts: tuple[str, ...], home: tuple[str, ...]) -> tuple[str, ...]:
        """The full name of what a view's text calls so."""
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
        """Whether it is a table of a catalog that matters.

        What is named of a table (`t.tag_a`, `t.files`) is not.
        """
        behind = self._identities.behind(name)
        if (
            len(behind) != 1
            or behind[0].table is None
            or not self._in_catalog(behind[0].table.partition(".")[0])
        ):
            return False
        return behind[0].format not in VERSIONED or self._identities.is_direct(name, behind[0])

    def _check_conf(self, parts: tuple[str, ...], view: View) -> None:
        for key in _MEANING:
            if key in view.conf and view.conf[key] != self._spark.conf.get(key):
                raise UnreadableStatementError(
                    f"view {'.'.join(parts)} was made under {key}={view.conf[key]}, and the session has another"
                )

    def check(self, sql: str, at_latest: frozenset[str]) -> None:
        """Raise unless Spark reads every table of the text at a version, but for those `at_latest`."""
        try:
            reads = reads_of(self._spark, sql, self._args)
        except PySparkException as error:
            reason = str(error).strip().partition("\n")[0]
            raise UnreadableStatementError(
                f"the statement cannot be read at a version: {reason}"
            ) from error
        left = sorted(
            {one.table for one in reads if self._is_latest(one) and one.table not in at_latest}
        )
        if left:
            how = (
                " and ".join(self.text.hides)
                or "a view made of a DataFrame, a function or a table's changes"
            )
            raise UnreadableStatementError(
                f"{', '.join(left)}: read through {how}, where no version can be put; name the table itself"
            )

    def _is_latest(self, read: TableRead) -> bool:
        return read.at_version is False and self._in_catalog(read.catalog)
