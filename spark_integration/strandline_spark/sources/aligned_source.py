"""`strandline_aligned`: a stream over several Iceberg tables.

Each of its micro-batches ends at one barrier of all tables.
`spark.readStream.format("strandline_aligned").option("tables",
"lake.bank.credits,lake.bank.debits").load()`. A row has its table's columns, `strandline_table` and
`strandline_barrier`. Options:

- `tables`: the tables to read.
- `rows`: changes (what came since the barrier before) or state (all rows at the barrier).
- `start`: earliest or latest.
- `maxBehind`: how many barriers the stream may be behind before it takes the newest (5).
- `timeout`: for how many seconds it waits for a table that is late before the query fails (unset:
  it waits, and warns).
- `catalog.NAME.KEY`: a catalog's properties as pyiceberg has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from strandline_spark.consistency.aligned.decisions import FEW, common_of, decide
from strandline_spark.consistency.table_history import TableAtError
from strandline_spark.jvm.iceberg_snapshot import BARRIER
from strandline_spark.sources.aligned_columns import merged_schema, widened
from strandline_spark.sources.lake_tables import LakeTable
from strandline_spark.sources.late_tables import LateTables

if TYPE_CHECKING:
    import pyarrow as pa

_CATALOG = "catalog."
_PARTS = 16  # tasks a table at most
Offset = dict[str, Any]


@dataclass(frozen=True)
class AlignedOptions:
    """The options of a stream over several tables."""

    tables: tuple[str, ...]
    rows: str
    start: str
    max_behind: int
    timeout: float | None
    catalogs: Mapping[str, Mapping[str, str]]


def options_of(
    options: Mapping[str, str], catalogs: Mapping[str, Mapping[str, str]]
) -> AlignedOptions:
    """The options with their defaults; those of a catalog go before what is known of it.

    Raises ValueError.

    >>> options_of({"tables": "lake.a.b, lake.a.c", "maxbehind": "1"}, {}).tables
    ('lake.a.b', 'lake.a.c')
    """
    tables = tuple(table.strip() for table in options.get("tables", "").split(",") if table.strip())
    if not tables:
        raise ValueError(
            "strandline_aligned: which tables? Give the option tables, "
            'e.g. "lake.bank.credits,lake.bank.debits"'
        )
    if len(set(tables)) < len(tables):
        raise ValueError(f"tables: one of {', '.join(tables)} stands there twice")
    rows, start = options.get("rows", "changes").lower(), options.get("start", "earliest").lower()
    if rows not in ("changes", "state"):
        raise ValueError(f"rows: {rows!r} is neither 'changes' nor 'state'")
    if start not in ("earliest", "latest"):
        raise ValueError(f"start: {start!r} is neither 'earliest' nor 'latest'")
    behind = options.get("maxBehind", options.get("maxbehind", str(FEW)))
    if not behind.isdigit() or int(behind) < 1:
        raise ValueError(f"maxBehind: {behind!r} is no number above 0")
    timeout = _seconds_of(options.get("timeout"))
    every = {name: dict(properties) for name, properties in catalogs.items()}
    for key, value in options.items():
        name, _, property_ = key.removeprefix(_CATALOG).partition(".")
        if key.startswith(_CATALOG) and property_:
            every.setdefault(name, {})[property_] = value
    return AlignedOptions(tables, rows, start, int(behind), timeout, every)


def _seconds_of(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < inf:
        raise ValueError(f"timeout: {text!r} is no number of seconds above 0")
    return seconds


class AlignedSource(DataSource):  # type: ignore[misc]  # pyspark has no types here
    """The data source.

    `aligned_source` registers one that knows the catalogs of the session's conf.
    """

    catalogs: Mapping[str, Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "strandline_aligned"

    def schema(self) -> StructType:
        """The columns of all tables by name, `strandline_table`, `strandline_barrier`."""
        options = self._asked()
        return merged_schema(
            {name: LakeTable(name, options.catalogs).arrow_schema() for name in options.tables}
        )

    def reader(self, schema: StructType) -> Any:
        """Raises ValueError: it is a source of streams."""
        raise ValueError(
            "strandline_aligned is read as a stream (spark.readStream); for one read of several "
            "tables at one barrier there is strandline_spark.read_consistent(spark, tables)"
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - pyspark's name
        """Return the reader of the tables."""
        return AlignedReader(self._asked(), schema)

    def _asked(self) -> AlignedOptions:
        return options_of(self.options, self.catalogs)


@dataclass
class AlignedPart(InputPartition):  # type: ignore[misc]
    """Some files of one table."""

    table: str
    barrier: int
    tasks: tuple[Any, ...]


class AlignedReader(DataSourceStreamReader):  # type: ignore[misc]
    """The stream.

    An offset is `{"barrier": 4, "snapshots": {table: snapshot}}`; barrier 0 is before the first.
    """

    def __init__(self, aligned_options: AlignedOptions, schema: StructType) -> None:
        self._asked = aligned_options
        self._schema = schema
        self._position: Offset | None = None
        self._wait = LateTables(aligned_options.timeout)

    def initialOffset(self) -> Offset:  # noqa: N802 - pyspark's name
        """Before the first barrier; with start=latest the newest that all tables have."""
        if self._asked.start == "latest":
            tables = self._tables()
            common = common_of([table.done for table in tables])
            if common:
                return _offset(
                    max(common), {table.name: table.done[max(common)] for table in tables}
                )
        return _offset(0, {})

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802 - pyspark's name
        """The barrier after the one where the stream is, once all tables have completed it.

        Else where it is.

        Raises TableAtError where the tables' barriers cannot be compared, or one was rolled back
        under the stream, and InputsLateError once a table has been late for longer than `timeout`.
        """
        position = start or self._position or self.initialOffset()
        tables = self._tables()
        _check_comparable(tables)
        _check_history(tables, position)
        decision = decide(
            {table.name: table.done for table in tables},
            position["barrier"],
            self._asked.max_behind,
        )
        if decision.barrier is not None:
            position = _offset(decision.barrier, decision.snapshots)
            self._wait.end()
        else:
            self._wait.check({table.name: table.done for table in tables}, position["barrier"])
        self._position = position
        return position

    def partitions(self, start: Offset, end: Offset) -> list[AlignedPart]:
        """The files between two offsets.

        With two equal ones Spark only says where a stream that starts again is.
        """
        self._position = end
        if start == end:
            return []
        return [
            AlignedPart(table.name, end["barrier"], tuple(tasks[first::_PARTS]))
            for table in self._tables()
            for tasks in [
                self._files(table, start["snapshots"].get(table.name), end["snapshots"][table.name])
            ]
            for first in range(min(_PARTS, len(tasks)))
        ]

    def _files(self, table: LakeTable, after: str | None, until: str) -> list[Any]:
        return (
            table.files_at(until)
            if self._asked.rows == "state"
            else table.files_since(after, until)
        )

    def read(self, partition: AlignedPart) -> Iterator[pa.RecordBatch]:
        """The rows of some files."""
        table = LakeTable(partition.table, self._asked.catalogs)
        return widened(
            table.batches(partition.tasks), self._schema, partition.table, partition.barrier
        )

    def _tables(self) -> list[LakeTable]:
        return [LakeTable(name, self._asked.catalogs) for name in self._asked.tables]


def _offset(barrier: int, snapshots: Mapping[str, str]) -> Offset:
    return {"barrier": barrier, "snapshots": dict(snapshots)}


def _check_comparable(tables: list[LakeTable]) -> None:
    """Raise unless the barriers are of one group.

    At most one table's may be the numbers of its own micro-batches.
    """
    carriers = {
        table.name: carrier for table in tables if (carrier := table.last_carrier()) is not None
    }
    groups = {
        name: carrier.group for name, carrier in carriers.items() if carrier.group is not None
    }
    if len(set(groups.values())) > 1:
        listed = ", ".join(f"{name}: {group}" for name, group in groups.items())
        raise TableAtError(f"barriers of two groups are never compared ({listed})")
    counted = [name for name, carrier in carriers.items() if not carrier.stated]
    if counted and len(tables) > 1:
        raise TableAtError(
            f"{', '.join(counted)}: the snapshots state no barrier ({BARRIER}), and the number of "
            "a micro-batch means nothing beside another table's barriers: "
            "aligned_stream asks the collector for them"
        )


def _check_history(tables: list[LakeTable], position: Offset) -> None:
    for table in tables:
        snapshot = position["snapshots"].get(table.name)
        if snapshot is not None and table.left_behind(snapshot):
            raise TableAtError(
                f"{table.name}: was rolled back behind snapshot {snapshot} (barrier "
                f"{position['barrier']}), which this stream has read: "
                "begin anew with an empty checkpoint folder"
            )
