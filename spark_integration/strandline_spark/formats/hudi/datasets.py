"""Hudi tables: named by their location; a completed instant of the timeline is a snapshot.

A relation is pinned to an instant when it is made, and a scan reads up to it. Once its files were
listed anew (the session wrote the table meanwhile) what was read is only observed. A commit names
no statement: it is the statement's own where it is the only one of its time, and has counted and
timed all that the write's metrics did. A MERGE, and a write by path, has no such metrics. A
stream's sink writes the number of the micro-batch into its commit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from strandline_spark.formats.catalog_tables import (
    location_of,
    provider_of,
    session_catalog,
    symlink_of,
    table_name,
)
from strandline_spark.formats.contract import Format
from strandline_spark.formats.done import Done
from strandline_spark.formats.hudi.columns import COMMANDS
from strandline_spark.formats.hudi.commands import PLANS_IN, WITHOUT_COLUMNS, WRITES
from strandline_spark.formats.hudi.timeline import COUNTS, Instant, Timeline, count, micro_batches
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.class_names import Internal
from strandline_spark.jvm.client import JavaObject, Jvm, class_name, optional, simple_name
from strandline_spark.jvm.iceberg_snapshot import Commit, Scan
from strandline_spark.model.statement import Dataset, Field, Snapshot
from strandline_spark.plans.physical import counted_by

_PACKAGE = "org.apache.hudi."
_PINNED, _ASKED_FOR = "queryTimestamp", "specifiedQueryInstant"
_FILE_FORMAT = (
    "org.apache.spark.sql.execution.datasources.parquet.HoodieFileGroupReaderBasedFileFormat"
)
_OWN_COLUMNS = "_hoodie_"
_UPKEEP = {"COMPACT", "CLUSTER", "INDEX", "LOG_COMPACT"}  # operations that are no statement's
_REFRESHED = "~"  # behind the instant of a scan whose files were listed anew


class Hudi(Format):
    """Relations over Hudi's index of files, tables of the session catalog, and writes by path."""

    name = "hudi"
    rank = 14
    commands = COMMANDS
    without_columns = WITHOUT_COLUMNS
    writes = WRITES
    plans_in = PLANS_IN
    versioned = True
    scans_tell = True
    relies_on = (
        Internal(_FILE_FORMAT, _PINNED, "Hudi: which snapshot a scan read"),
        Internal(
            f"{_PACKAGE}SparkHoodieTableFileIndex",
            _ASKED_FOR,
            "Hudi: whether a read asks for the past",
        ),
    )

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table at the mention's path, with its names in catalogs."""
        location = _location(mention)
        if location is None:
            return None
        namespace, name = jvm.path(location)
        schema, table = _own(mention.schema), mention.catalog_table
        if table is None:
            return Dataset(namespace, name, self.name, schema)
        catalog = replace(session_catalog(jvm), framework="hudi")
        return Dataset(
            namespace,
            name,
            self.name,
            schema,
            catalog,
            table_name(table),
            (symlink_of(table, jvm),),
        )

    def snapshot_at_start(self, mention: Mention, jvm: Jvm) -> Snapshot | None:
        """Of a batch read: of a stream nothing is known before its offsets."""
        snapshot = self.snapshot_unseen(mention, jvm)
        return replace(snapshot, observed=True) if snapshot is not None else None

    def snapshot_unseen(self, mention: Mention, jvm: Jvm) -> Snapshot | None:
        """Return the version that the relation is pinned to.

        A MERGE runs its plan without a scan that could be seen.
        """
        pinned = (
            _pinned(mention.relation, jvm)
            if mention.relation is not None and mention.offsets is None
            else None
        )
        return self._read(mention, pinned, jvm) if pinned is not None else None

    def scanned(self, scan: JavaObject, jvm: Jvm) -> Scan | None:
        """Return the table and the instant that a scan of its files was pinned to."""
        if simple_name(scan) != "FileSourceScanExec":
            return None
        relation = scan.relation()
        pinned = _pinned(relation, jvm)
        return (
            Scan(str(relation.location().getBasePath().toString()), pinned)
            if pinned is not None
            else None
        )

    def read(self, mention: Mention, scan: Scan, jvm: Jvm) -> Snapshot | None:
        """The instant of a scan, if it read this table."""
        location = _location(mention)
        if location is None or jvm.path(location) != jvm.path(scan.table):
            return None
        return self._read(mention, scan.snapshot_id, jvm)

    def streamed(self, mention: Mention, start: str | None, end: str, jvm: Jvm) -> Snapshot | None:
        """Return the last instants that had completed at a micro-batch's offsets."""
        location = _location(mention)
        if location is None:
            return None
        timeline = Timeline(jvm, location)
        upper = timeline.completed_until(_completed(end))
        lower = timeline.completed_until(_completed(start)) if start else None
        if upper is None:
            return None
        return replace(
            timeline.snapshot(upper),
            from_snapshot_id=lower.requested if lower is not None else None,
        )

    def written(self, mention: Mention, done: Done, jvm: Jvm) -> Snapshot | None:
        """Return the instant of the execution's time whose counts fit its own."""
        location = _location(mention)
        if location is None or done.since is None:
            return None
        timeline = Timeline(jvm, location)
        counted = counted_by(done.execution, tuple(COUNTS))
        fitting = [instant for instant in _of_its_time(timeline, done) if _fits(instant, counted)]
        if not fitting:
            return None
        proven = len(fitting) == 1 and len(counted) == len(COUNTS)
        return replace(timeline.snapshot(fitting[0]), observed=not proven)

    def written_by_batch(
        self, mention: Mention, batch: tuple[str, int], commits: Sequence[Commit], jvm: Jvm
    ) -> Snapshot | None:
        """Return the commit by the number alone.

        If several queries write a table, each needs a name of its own.
        """
        location = _location(mention)
        if location is None:
            return None
        timeline, number = Timeline(jvm, location), str(batch[1])
        held = ((one, micro_batches(one)) for one in timeline.newest_first())
        instant = next(((one, held) for one, held in held if number in held.values()), None)
        return (
            replace(timeline.snapshot(instant[0]), observed=len(instant[1]) > 1)
            if instant is not None
            else None
        )

    def statistics(self, mention: Mention, snapshot: Snapshot, jvm: Jvm) -> dict[str, int]:
        """Return the rows and bytes that the instant wrote."""
        location = _location(mention)
        instant = Timeline(jvm, location).at(snapshot.snapshot_id) if location is not None else None
        if instant is None:
            return {}
        return {
            "rowCount": snapshot.number_of_rows or 0,
            "size": count(instant, "output size in bytes"),
        }

    def _read(self, mention: Mention, pinned: str, jvm: Jvm) -> Snapshot | None:
        timeline = Timeline(jvm, str(_location(mention)))
        instant = timeline.at(pinned.removesuffix(_REFRESHED))
        return (
            replace(timeline.snapshot(instant), observed=pinned.endswith(_REFRESHED))
            if instant is not None
            else None
        )


def _location(mention: Mention) -> str | None:
    if mention.relation is not None:
        return _of_relation(mention)
    if mention.catalog_table is not None:
        by_table = provider_of(mention.catalog_table) == "hudi"
        return (
            (location_of(mention.catalog_table) or mention.options.get("path"))
            if by_table
            else None
        )
    ours = mention.provider is not None and any(
        key.startswith("hoodie.") for key in mention.options
    )
    return (
        mention.options.get("path")
        if ours or mention.provider in {"hudi", "hoodiestreaming"}
        else None
    )


def _of_relation(mention: Mention) -> str | None:
    index = _index(mention.relation)
    if index is not None:
        return str(index.getBasePath().toString())
    hudi = class_name(mention.relation).startswith(_PACKAGE)  # of a table without any commit
    return (
        location_of(mention.catalog_table) if hudi and mention.catalog_table is not None else None
    )


def _index(relation: JavaObject) -> JavaObject | None:
    """Hudi's index of files, where the relation is one over it."""
    if simple_name(relation) != "HadoopFsRelation":
        return None
    index = relation.location()
    return index if class_name(index).startswith(_PACKAGE) else None


def _pinned(relation: JavaObject, jvm: Jvm) -> str | None:
    """The instant up to which a relation reads, marked where its files were listed anew since.

    None of a range.
    """
    index = _index(relation)
    if index is None or simple_name(index) == "HoodieIncrementalFileIndex":
        return None
    pinned, newest = jvm.field(relation.fileFormat(), _PINNED), index.getLatestCompletedInstant()
    if pinned is None or not newest.isPresent():
        return None
    asked_for = jvm.field(index, _ASKED_FOR)
    certain = str(newest.get().requestedTime()) == str(pinned) or optional(asked_for) is not None
    return str(pinned) + ("" if certain else _REFRESHED)


def _of_its_time(timeline: Timeline, done: Done) -> list[Instant]:
    """Return the commits that lie in the statement's time, the newest first.

    They were requested after it began and completed before it ended.
    """
    instants = list[Instant]()
    for instant in timeline.newest_first():
        if timeline.milliseconds(instant.requested) < (done.since or 0):
            break
        late = done.until is not None and timeline.milliseconds(instant.completed) > done.until
        if not late and instant.operation not in _UPKEEP:
            instants.append(instant)
    return instants


def _fits(instant: Instant, counted: dict[str, int]) -> bool:
    return all(count(instant, metric) == value for metric, value in counted.items())


def _completed(offset: str) -> str:
    return str(json.loads(offset)["offsetCommitTime"])


def _own(schema: tuple[Field, ...]) -> tuple[Field, ...]:
    """The schema without the columns that Hudi adds to each row."""
    return tuple(field for field in schema if not field.name.startswith(_OWN_COLUMNS))


FORMAT = Hudi()
