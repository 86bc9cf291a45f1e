"""Move events out of the store into a table partitioned by the day of their receipt.

The table is Parquet, Delta or Iceberg.

Each batch reaches the target once, whenever the archiver is killed. A Parquet file bears the
batch's name; a commit to Delta or Iceberg bears its id and is not made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from sqlalchemy import Connection, Engine

from strandline.errors import SettingsError
from strandline.store.ingest.archived import Batch, LeavingEvent, end_batch, events_in, open_batch
from strandline.store.ingest.bodies import drop_unneeded

if TYPE_CHECKING:
    import pyarrow as pa

Write = Callable[[Batch, "pa.Table"], None]
Properties = Mapping[str, Mapping[str, str]]

ROWS_A_PAGE = 64
MOST = 20_000  # events a batch: some 300 MB of JSON at most, 20 MB as a file
APPLICATION = "strandline-archive-"
SNAPSHOT_PROPERTY = "strandline.archive.batch"
_INSTALL = "pip install 'strandline[archive]'"


class Moved(NamedTuple):
    """The events that an archiver has moved."""

    events: int
    batches: int


def archive(
    engine: Engine, target: str, before: datetime, properties: Properties, most: int = MOST
) -> Moved:
    """Move all events received before a moment to the target (`target_of`)."""
    write = target_of(target, properties)
    moved = Moved(0, 0)
    limit = int(before.timestamp() * 1_000_000)
    while True:
        with engine.begin() as connection:
            batch = open_batch(connection, target, limit, most)
        if batch is None:
            with engine.begin() as connection:
                drop_unneeded(connection)
            return moved
        with engine.begin() as connection:
            write(batch, _table(connection, batch))
        with engine.begin() as connection:
            end_batch(connection, batch)
        moved = Moved(moved.events + len(batch.keys), moved.batches + 1)


def target_of(target: str, properties: Properties) -> Write:
    """Return the writer for a target.

    A folder for Parquet files, `delta:FOLDER`, or `iceberg:CATALOG.DATABASE.TABLE`.

    A folder may be an address that Arrow knows (s3://, gs://, hdfs://). Raises SettingsError with
    what is missing.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise SettingsError([f"archive: pyarrow is not installed: {_INSTALL}"]) from None
    kind, _, place = target.partition(":")
    if kind == "delta":
        return _delta(place)
    if kind == "iceberg":
        return _iceberg(place, properties)
    return _parquet(target)


def _table(connection: Connection, batch: Batch) -> pa.Table:
    import pyarrow as pa

    columns = list(zip(*events_in(connection, batch), strict=True)) or [()] * len(
        LeavingEvent._fields
    )
    types = (pa.binary(), pa.int64(), pa.int64(), pa.binary())
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    day = pa.array([_day(batch.day)] * len(arrays[0]), pa.date32())
    return pa.Table.from_arrays([*arrays, day], [*LeavingEvent._fields, "day"])


def _day(number: int) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=number)).date()


def _parquet(target: str) -> Write:
    from pyarrow import fs, parquet

    if "://" in target:
        filesystem, root = fs.FileSystem.from_uri(target)
    else:
        filesystem, root = fs.LocalFileSystem(), str(Path(target).absolute())

    def write(batch: Batch, table: pa.Table) -> None:
        folder = f"{root}/day={_day(batch.day)}"
        filesystem.create_dir(folder, recursive=True)
        # Spark and Arrow pass over names with a dot in front, so nobody reads a file that is half
        # there.
        partial = f"{folder}/.{batch.id}.{uuid4().hex}"
        # Arrow looks at the size of a page after so many rows, and whoever reads a page has all of
        # it in memory.
        parquet.write_table(
            table.drop_columns(["day"]),
            partial,
            filesystem=filesystem,
            compression="zstd",
            write_batch_size=ROWS_A_PAGE,
        )
        filesystem.move(partial, f"{folder}/{batch.id}.parquet")

    return write


def _delta(place: str) -> Write:
    try:
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
    except ImportError:
        raise SettingsError([f"archive: deltalake is not installed: {_INSTALL}"]) from None

    def write(batch: Batch, table: pa.Table) -> None:
        application = APPLICATION + batch.id
        if (
            DeltaTable.is_deltatable(place)
            and DeltaTable(place).transaction_version(application) is not None
        ):
            return
        properties = CommitProperties(app_transactions=[Transaction(application, 1)])
        write_deltalake(
            place, table, mode="append", partition_by=["day"], commit_properties=properties
        )

    return write


def _iceberg(place: str, properties: Properties) -> Write:
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError
    except ImportError:
        raise SettingsError([f"archive: pyiceberg is not installed: {_INSTALL}"]) from None
    name, _, identifier = place.partition(".")
    if not identifier:
        raise SettingsError([f"archive: iceberg:{place} is not iceberg:CATALOG.DATABASE.TABLE"])
    catalog: Any = load_catalog(name, **properties.get(name, {}))

    def write(batch: Batch, table: pa.Table) -> None:
        try:
            held = catalog.load_table(identifier)
        except NoSuchTableError:
            held = _made_iceberg(catalog, identifier, table)
        if any(
            (snapshot.summary and snapshot.summary.get(SNAPSHOT_PROPERTY)) == batch.id
            for snapshot in held.snapshots()
        ):
            return
        held.append(table, snapshot_properties={SNAPSHOT_PROPERTY: batch.id})

    return write


def _made_iceberg(catalog: Any, identifier: str, table: pa.Table) -> Any:
    from pyiceberg.transforms import IdentityTransform

    catalog.create_namespace_if_not_exists(identifier.rpartition(".")[0])
    created = catalog.create_table(identifier, schema=table.schema)
    with created.update_spec() as spec:
        spec.add_field("day", IdentityTransform(), "day")
    return catalog.load_table(identifier)
