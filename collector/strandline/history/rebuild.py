"""Rebuilding the lineage tables from an archive of events on Spark.

Equal to what the live collector has, row by row.

Spark reads the archive, and its workers turn events into rows and fold them (`parts`). Spark sorts
the rows by table and key, and workers fold those of one key. The driver writes them in this order,
one partition after another. A partition has rows of few keys, so its memory holds little, and a job
with half of all events is folded by as many workers as there are. What hangs on all rows together
(groups of names, the owners of micro-batches) is computed in the store at the end by the functions
that the live collector uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import zstandard
from sqlalchemy import Connection, Engine, exists, select

from strandline.core.changes.memory import NameBefore
from strandline.core.changes.rows import FOLDS
from strandline.core.identity import RENAMED
from strandline.core.openlineage.names import Naming, naming_of
from strandline.errors import RefusedError
from strandline.history.parts import (
    KNOWN,
    REFUSED,
    ArchivedEvent,
    kind_of,
    pages_of,
    parts_of,
    rows_in,
)
from strandline.history.places import frame_at, place_of
from strandline.history.staged_rows import STAGED_KINDS, begin_staging, move_into_templates, stage
from strandline.store.ingest.former_names import note_names_before
from strandline.store.ingest.labels import lock, relabel
from strandline.store.ingest.name_patterns import aliases_by_hand, apply_alias, apply_patterns
from strandline.store.ingest.raw_events import claim
from strandline.store.ingest.shared_runs import note_shared_runs
from strandline.store.ingest.take import no_search_for_cycles
from strandline.store.lineage.joined_names import names_before
from strandline.store.lineage.owner_relations import relate_owners
from strandline.store.schema.dataset_tables import dataset_aliases
from strandline.store.schema.received_tables import event_keys
from strandline.store.schema.relation_tables import RUN_VIEWS, TEMPLATES
from strandline.store.schema.run_tables import runs, shared_runs
from strandline.store.search.upkeep import begin_anew, fill_index
from strandline.store.sql.indexes import without_indexes
from strandline.store.sql.shared_settings import (
    agree,
    agree_on_families,
    agreed,
    agreed_naming,
    strip_patterns,
)
from strandline.store.sql.upsert import upsert

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

PAGE = 5_000
WRITTEN = 25  # pages of workers that are written in one transaction
# Events are large: Spark reads 4,096 rows at once and hands 10,000 to Python if nobody says
# otherwise, and its heap is gone.
EVENTS_AT_ONCE = 200
BATCHES = (
    "spark.sql.parquet.columnarReaderBatchSize",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
)
EVENTS_A_PARTITION, MOST_PARTITIONS = 50_000, 1_000
ROWS, ROW_NAMES = "table string, key binary, row binary", ["table", "key", "row"]
PAGES, PAGE_NAMES = "table string, page binary", ["table", "page"]
MARK = "rebuilt_from"
TABLES = sorted(
    {fold.table for fold in FOLDS.values()} - RUN_VIEWS.keys() | {table.name for table in TEMPLATES}
)


class NameRules(NamedTuple):
    """The rules about names that no single event states.

    Patterns that are cut out of paths, names that were joined by hand, run ids that several jobs
    reported, families of jobs that are joined, and names that were used again after a rename.
    """

    patterns: Sequence[str] = ()
    joined: Sequence[tuple[tuple[str, str], tuple[str, str]]] = ()
    shared_runs: Sequence[int] = ()
    families: frozenset[tuple[str, str]] = frozenset()
    names_before: Sequence[NameBefore] = ()

    @property
    def naming(self) -> Naming:
        """The naming of datasets and jobs."""
        return naming_of(self.patterns, self.families)


NO_NAMES = NameRules()


class Rebuilt(NamedTuple):
    """The result of a rebuild: distinct events, rows by table, and reasons of refused events."""

    events: int
    rows: dict[str, int]
    refused: list[tuple[str, str]]


def names_of(connection: Connection) -> NameRules:
    """Return the names of a live store, for a rebuild that shall equal it."""
    shared = connection.scalars(select(shared_runs.c.id)).all()
    families = agreed_naming(connection).families
    joined = list(aliases_by_hand(connection))
    before = names_before(connection)
    return NameRules(strip_patterns(connection), joined, shared, families, before)


def rebuild(
    spark: SparkSession, source: str, target: Engine, names: NameRules = NO_NAMES
) -> Rebuilt:
    """Write the tables of a store that is empty, or begun, from the archive at `source`.

    Raises RefusedError for a store with events of its own, or one that was begun from another
    archive.
    """
    with target.begin() as connection:
        _begin(connection, source)
        apply_patterns(connection, names.patterns)
        agree_on_families(connection, names.families)
        note_shared_runs(connection, names.shared_runs)
        if names.names_before:
            note_names_before(connection, names.names_before)
        begin_anew(connection)
    archived = read_archive(spark, source)
    partitions = _partitions(spark, archived)
    with (
        _small_batches(spark),
        first_received(archived) as events,
        sorted_rows(events, names, partitions) as pages,
    ):
        done = _load(target, pages)
    with target.begin() as connection:
        lock(connection)
        relabel(connection)
        if connection.scalar(select(exists().where(dataset_aliases.c.type == RENAMED))):
            agree(connection, "has_renames", "1")
        for alias, other in names.joined:
            apply_alias(connection, alias, other)
        apply_patterns(connection, names.patterns)
    _relate_all_owners(target)
    fill_index(target)
    return done


def _partitions(spark: SparkSession, archived: DataFrame) -> int:
    """Return how many partitions keep the driver's memory small."""
    wanted: int = max(archived.count() // EVENTS_A_PARTITION, spark.sparkContext.defaultParallelism)
    return min(wanted, MOST_PARTITIONS)


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
    """Return the events of an archive.

    A folder of Parquet files, `delta:FOLDER`, or `iceberg:CATALOG.DATABASE.TABLE`.

    Raises RefusedError where Spark finds no archive there.
    """
    from pyspark.errors import AnalysisException

    try:
        read = frame_at(
            spark, place_of(source), **{"batch-size": str(EVENTS_AT_ONCE)}
        )  # Iceberg's name for it
        return read.select("hash", "received_at", "body")
    except AnalysisException as error:
        raise RefusedError(
            f"{source}: no archive can be read there: {str(error).splitlines()[0]}"
        ) from None


@contextmanager
def first_received(events: DataFrame) -> Iterator[DataFrame]:
    """Yield each content as it was received first, which is what the live collector counts.

    Contents that came again are stored on disk first, so that Spark knows how few they are. Then it
    sends them to where the bodies are, instead of shuffling all bodies. Received twice in the same
    microsecond, a content stays twice, and folds to the same rows.
    """
    from pyspark.sql import functions as f
    from pyspark.storagelevel import StorageLevel

    received = events.groupBy("hash").agg(
        f.min("received_at").alias("first"), f.count("*").alias("times")
    )
    again = received.where("times > 1").selectExpr("hash AS again", "first")
    again.persist(StorageLevel.DISK_ONLY).count()
    try:
        marked = events.join(again, f.expr("hash = again"), "left")
        yield marked.where("again IS NULL OR received_at = first").select(
            "hash", "received_at", "body"
        )
    finally:
        again.unpersist()


@contextmanager
def sorted_rows(
    events: DataFrame, names: NameRules, partitions: int
) -> Iterator[Iterator[tuple[str, bytes]]]:
    """Yield the store's rows in pages (`parts.pages_of`), one row a table and key, in their order.

    The rows that events leave are stored on the workers' disks, because Spark reads them twice. It
    takes samples to find ranges of keys that no job can make uneven, and then sorts.
    """
    from pyspark.storagelevel import StorageLevel

    make = partial(_make, names)
    rows = events.mapInArrow(make, ROWS).persist(StorageLevel.DISK_ONLY)
    try:
        ranges = rows.repartitionByRange(partitions, "table", "key")
        pages = ranges.sortWithinPartitions("table", "key").mapInArrow(_fold, PAGES)
        yield (
            (row.table, bytes(row.page)) for row in pages.toLocalIterator(prefetchPartitions=True)
        )
    finally:
        rows.unpersist()


def _make(names: NameRules, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for parts in parts_of(
        map(ArchivedEvent._make, _rows(batches)),
        names.naming,
        names.shared_runs,
        names.names_before,
    ):
        for table, rows in parts.items():
            for start in range(0, len(rows), EVENTS_AT_ONCE):
                keys, packed = zip(*rows[start : start + EVENTS_AT_ONCE], strict=True)
                columns = [pa.array([table] * len(keys)), pa.array(keys), pa.array(packed)]
                yield pa.RecordBatch.from_arrays(columns, ROW_NAMES)


def _fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    compress = zstandard.ZstdCompressor(level=1).compress
    with no_search_for_cycles():
        for table, page in pages_of(_rows(batches)):
            columns = [pa.array([table]), pa.array([compress(page)])]
            yield pa.RecordBatch.from_arrays(columns, PAGE_NAMES)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _begin(connection: Connection, source: str) -> None:
    mark = agreed(connection).get(MARK)
    if mark not in (None, source):
        raise RefusedError(
            f"the store was begun from {mark}: name an empty one to rebuild from {source}"
        )
    if mark is None and connection.execute(select(event_keys.c.hash).limit(1)).first():
        raise RefusedError(
            "the store holds events of its own: name an empty one, and switch over when it is equal"
        )
    agree(connection, MARK, source)


def _load(target: Engine, pages: Iterable[tuple[str, bytes]]) -> Rebuilt:
    """Write the rows, some pages at a time, into tables that have no indexes but their keys."""
    counts: dict[str, int] = {}
    refused: list[tuple[str, str]] = []
    decompress = zstandard.ZstdDecompressor().decompress
    begin_staging(target)
    with without_indexes(target, TABLES):
        for table, same in groupby(pages, key=itemgetter(0)):
            packed = (page for _, page in same)
            while some := list(islice(packed, WRITTEN)):
                rows = [row for page in some for row in rows_in(decompress(page))]
                if table == REFUSED:
                    refused += [(hash_.hex(), reason) for hash_, reason in rows]
                    continue
                with target.begin() as connection:
                    _write(connection, table, rows)
                counts[table] = counts.get(table, 0) + len(rows)
        move_into_templates(target)
    return Rebuilt(counts.pop(KNOWN, 0), counts, refused)


def _write(connection: Connection, table: str, page: Sequence[Any]) -> None:
    """Write rows of a table.

    Which events are known too, so that whoever takes them from the topic again stores nothing.
    """
    if table == KNOWN:
        claim(connection, page)
        return
    kind = kind_of(table)
    if kind in STAGED_KINDS:
        stage(connection, kind, page)
    else:
        upsert(connection, kind, page)


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
