"""The datasets behind table names.

They are named as the emitter names them in its events, so that the collector knows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline_spark.consistency.collector import UnknownTableError
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.client import Jvm
from strandline_spark.model.statement import VERSIONED, Dataset


@dataclass(frozen=True, slots=True)
class Identity:
    """A table as Spark names it and as events name it."""

    table: str  # as the user wrote it
    full_name: str  # catalog.database.table
    namespace: str
    name: str

    @property
    def pair(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def catalog(self) -> str:
        """The name of the table's catalog."""
        return self.full_name.partition(".")[0]


class Identities:
    """Looks tables up by analysing a read of them; nothing is executed."""

    def __init__(self, spark: SparkSession) -> None:
        self._session: Any = spark._jsparkSession
        self._reader = PlanReader(spark)
        self._jvm = Jvm(spark._jvm, self._session)

    def behind(self, table: str) -> tuple[Dataset, ...]:
        """Return the datasets behind a name: one, or for a view all tables below it.

        Raises UnknownTableError.
        """
        try:
            execution = self._session.table(table).queryExecution()
        except (Py4JError, PySparkException) as error:
            raise UnknownTableError(f"{table}: {str(error).strip().splitlines()[0]}") from error
        inputs = self._reader.at_start(execution).inputs
        return tuple(dataset for dataset in inputs if not dataset.is_view)

    def of(self, table: str) -> Identity:
        """The identity of a table with snapshots.

        Raises UnknownTableError for a view, and for what has none.
        """
        identity = self.behind(table)
        if len(identity) != 1 or identity[0].table is None or identity[0].format not in VERSIONED:
            kinds = (
                ", ".join(sorted({dataset.format for dataset in identity}))
                or "nothing that is stored"
            )
            raise UnknownTableError(
                f"{table} is not a table with snapshots ({kinds} behind it): "
                "name the tables themselves"
            )
        if not self.is_direct(table, identity[0]):
            raise UnknownTableError(
                f"{table} is a view of {identity[0].table}: name the table itself"
            )
        return Identity(table, str(identity[0].table), identity[0].namespace, identity[0].name)

    def is_direct(self, table: str, dataset: Dataset) -> bool:
        """Return true if the name is the table's own, and not that of a view or a part of it."""
        last = table.replace("`", "").rpartition(".")[2]
        return str(dataset.table).rpartition(".")[2].lower() == last.lower()

    def at(self, location: str) -> tuple[str, str]:
        """Namespace and name of the Iceberg table that lies at a location."""
        return self._jvm.path(location)
