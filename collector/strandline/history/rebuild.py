"""Rebuilding the lineage tables from an archive of events on Spark: equal to what the live collector has, row by row.

Spark reads the archive, workers turn events into rows and fold them (`parts`), a shuffle brings rows of one key together,
and the driver writes one row a key, a page at a time, from a scratch folder. So its memory holds a page, and a job with half of all events is
folded by as many workers as there are. What hangs on all rows together (groups of names, the owners of micro-batches) is
computed in the store at the end by the functions that the live collector uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Engine, select

from strandline.errors import RefusedError
from strandline.history.parts import REFUSED, ArchivedEvent, Part, folded, kind_of, parts_of, unpacked
from strandline.history.places import frame_at, place_of
from strandline.store.ingest.labels import lock, relabel
from strandline.store.ingest.name_patterns import aliases_by_hand, apply_alias, apply_patterns
from strandline.store.ingest.raw_events import claim
from strandline.store.lineage.owner_relations import relate_owners
from strandline.store.schema.tables import event_keys, runs
from strandline.store.search.upkeep import begin_anew, fill_index
from strandline.store.sql.shared_settings import agree, agreed, strip_patterns
from strandline.store.sql.upsert import upsert

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

PAGE = 5_000
# Events are large: Spark reads 4,096 rows at once and hands 10,000 to Python if nobody says otherwise, and its heap is gone.
EVENTS_AT_ONCE = 200
BATCHES = ("spark.sql.parquet.columnarReaderBatchSize", "spark.sql.execution.arrow.maxRecordsPerBatch")
EVENTS = "hash binary, received_at bigint, body binary"
PARTS = "table string, key binary, row binary"
MARK = "rebuilt_from"


class NameRules(NamedTuple):
    """What no event says of names: patterns that are cut out of paths, and names that were joined by hand."""

    patterns: Sequence[str] = ()
    joined: Sequence[tuple[tuple[str, str], tuple[str, str]]] = ()


NO_NAMES = NameRules()


class Rebuilt(NamedTuple):
    """What a rebuild wrote: events with distinct content, rows by table, and why events were refused (hash, reason)."""

    events: int
    rows: dict[str, int]
    refused: list[tuple[str, str]]


def names_of(connection: Connection) -> NameRules:
    """The names of a live store, for a rebuild that shall equal it."""
    return NameRules(strip_patterns(connection), list(aliases_by_hand(connection)))


def rebuild(
    spark: SparkSession, source: str, target: Engine, names: NameRules = NO_NAMES, scratch: str = ""
) -> Rebuilt:
    """Read the archive at `source` and write the tables of a store that is empty, or that an earlier attempt has begun.

    `scratch` is a folder that Spark's workers and this process share; on one machine the default will do. Raises RefusedError for a store with events of its own, or one that was begun from another archive.
    """
    with target.begin() as connection:
        _begin(connection, source)
        apply_patterns(connection, names.patterns)
        begin_anew(connection)
    archived = read_archive(spark, source)
    with TemporaryDirectory(prefix="strandline-rebuild-", dir=scratch or None) as folder:
        with _small_batches(spark):
            events = first_received(archived, folder)
            folded_parts(events, names.patterns).write.parquet(f"{folder}/parts")
        rows, refused = _load(target, f"{folder}/parts")
        count = _load_keys(target, f"{folder}/keys")
    with target.begin() as connection:
        lock(connection)
        relabel(connection)
        for one, other in names.joined:
            apply_alias(connection, one, other)
        apply_patterns(connection, names.patterns)
    _relate_all_owners(target)
    fill_index(target)
    return Rebuilt(count, rows, refused)


@contextmanager
def _small_batches(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in BATCHES}
    try:
        for name in BATCHES:
            spark.conf.set(name, EVENTS_AT_ONCE)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def read_archive(spark: SparkSession, source: str) -> DataFrame:
    """The events of an archive: a folder of Parquet files, `delta:FOLDER`, or `iceberg:CATALOG.DATABASE.TABLE`.

    Raises RefusedError where Spark finds no archive there.
    """
    from pyspark.errors import AnalysisException

    try:
        read = frame_at(spark, place_of(source), **{"batch-size": str(EVENTS_AT_ONCE)})  # Iceberg's name for it
        return read.select("hash", "received_at", "body")
    except AnalysisException as error:
        raise RefusedError(f"{source}: no archive can be read there: {str(error).splitlines()[0]}") from None


def first_received(events: DataFrame, folder: str) -> DataFrame:
    """Each content as it was received first, which is what the live collector counts; leaves hashes and first moments in `keys`.

    Contents that came again are written down first, so that Spark knows how few they are: then it sends them to where the bodies
    are, instead of shuffling all bodies. Received twice in the same microsecond, a content stays twice, and folds to the same rows.
    """
    from pyspark.sql import functions as f

    received = events.groupBy("hash").agg(f.min("received_at").alias("received_at"), f.count("*").alias("times"))
    received.write.parquet(f"{folder}/keys")
    read = events.sparkSession.read
    again = read.parquet(f"{folder}/keys").where("times > 1").selectExpr("hash AS again", "received_at AS first")
    again.write.parquet(f"{folder}/again")
    marked = events.join(read.parquet(f"{folder}/again"), f.expr("hash = again"), "left")
    return marked.where("again IS NULL OR received_at = first").select("hash", "received_at", "body")


def folded_parts(events: DataFrame, patterns: Sequence[str]) -> DataFrame:
    """One row a table and key, packed (`parts.Part`), sorted within each partition."""
    parts = events.mapInArrow(partial(_make, tuple(patterns)), PARTS)
    together = parts.repartition("table", "key").sortWithinPartitions("table", "key")
    return together.mapInArrow(_fold, PARTS)


def _make(patterns: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    events = (
        ArchivedEvent(*values)
        for batch in batches
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    yield from _batched(parts_of(events, patterns))


def _fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = (
        Part(*values)
        for batch in batches
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    yield from _batched(folded(parts))


def _batched(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = pa.schema([("table", pa.string()), ("key", pa.binary()), ("row", pa.binary())])
    remaining = iter(parts)
    while page := list(islice(remaining, PAGE)):
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(zip(*page, strict=True), schema, strict=True)],
            schema=schema,
        )


def _begin(connection: Connection, source: str) -> None:
    mark = agreed(connection).get(MARK)
    if mark not in (None, source):
        raise RefusedError(f"the store was begun from {mark}: name an empty one to rebuild from {source}")
    if mark is None and connection.execute(select(event_keys.c.hash).limit(1)).first():
        raise RefusedError("the store holds events of its own: name an empty one, and switch over when it is equal")
    agree(connection, MARK, source)


def _load(target: Engine, folder: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    counts: dict[str, int] = {}
    refused: list[tuple[str, str]] = []
    for page in _pages(folder, list(Part._fields)):
        with target.begin() as connection:
            for table, same in groupby(page, key=itemgetter(0)):
                if table == REFUSED:
                    refused += [(key.hex(), row.decode()) for _, key, row in same]
                    continue
                kind = kind_of(table)
                rows = [unpacked(kind, row) for _, _, row in same]
                upsert(connection, kind, rows)
                counts[table] = counts.get(table, 0) + len(rows)
    return counts, refused


def _load_keys(target: Engine, folder: str) -> int:
    """Note which events are known, so that whoever takes them from the topic again stores nothing."""
    count = 0
    for page in _pages(folder, ["hash", "received_at"]):
        with target.begin() as connection:
            claim(connection, page)
        count += len(page)
    return count


def _pages(folder: str, columns: list[str]) -> Iterator[list[Any]]:
    """The rows of Parquet files, a page at a time."""
    from pyarrow import dataset

    bounds = {"batch_size": PAGE, "batch_readahead": 1, "fragment_readahead": 1}
    for batch in dataset.dataset(folder).to_batches(columns, **bounds):
        if batch.num_rows:
            yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _relate_all_owners(target: Engine) -> None:
    after: Any = -(2**63)
    while True:
        with target.begin() as connection:
            query = select(runs.c.id).where(runs.c.id > after).order_by(runs.c.id).limit(PAGE)
            page = list(connection.scalars(query))
            relate_owners(connection, page)
        if not page:
            return
        after = page[-1]
