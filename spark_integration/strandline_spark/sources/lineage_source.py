"""`strandline_lineage`: the collector's lineage tables as a data source of Spark SQL.

They are read when a query runs. `spark.read.format("strandline_lineage").option("table",
"sink_job_lineage").load()`. Options: `table`; `state`, which is running (what runs now) or history
(what ran, with valid_from and valid_to); `url`, the collector's address. The API key of the conf
goes to the conf's own address and to no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from strandline_spark.conf_keys import COLLECTOR_URL
from strandline_spark.consistency.collector import Collector, ConfigurationError
from strandline_spark.sources.lineage_columns import (
    STATES,
    Value,
    columns_of,
    table_called,
    values_of,
)


class LineageSource(DataSource):  # type: ignore[misc]  # pyspark has no types here
    """The data source.

    Of a session whose conf names the collector, `lineage_tables` registers one that knows it.
    """

    collector_url: str | None = None
    collector_token: str | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "strandline_lineage"

    def schema(self) -> str:
        """The table's columns; barrier_id, snapshot_id and version are BIGINT."""
        return columns_of(*_asked(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the table.

        Raises ValueError for a faulty option, ConfigurationError without an address.
        """
        return LineageReader(*_asked(self.options), self._collector())

    def _collector(self) -> Collector:
        url = self.options.get("url") or self.collector_url
        if not url:
            raise ConfigurationError(
                "strandline_lineage: which collector? Give the option url, or set "
                f"{COLLECTOR_URL} and call strandline_spark.lineage_tables(spark)"
            )
        own = self.collector_url is not None and url.rstrip("/") == self.collector_url.rstrip("/")
        return Collector(url, self.collector_token if own else None)


class LineageReader(DataSourceReader):  # type: ignore[misc]
    """Reads a table whole, in one task.

    Spark keeps a query's partitions, so nothing is asked before the task runs.
    """

    def __init__(self, table: str, state: str, collector: Collector) -> None:
        self._columns = columns_of(table, state)
        self._path = f"/api/v2/tables/{quote(table)}?state={state}"
        self._collector = collector

    def partitions(self) -> list[InputPartition]:
        """One."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Value, ...]]:
        """The rows as they are now.

        Raises ConsistencyError where the collector does not give them.
        """
        return (values_of(row, self._columns) for row in self._collector.rows(self._path))


def _asked(options: Mapping[str, str]) -> tuple[str, str]:
    name = options.get("table")
    if not name:
        raise ValueError(
            'strandline_lineage: which table? Give the option table, e.g. "sink_job_lineage"'
        )
    state = options.get("state", STATES[0]).lower()
    if state not in STATES:
        raise ValueError(f"state: {state!r} is neither 'running' nor 'history'")
    return table_called(name), state
