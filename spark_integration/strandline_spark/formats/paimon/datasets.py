"""Paimon tables: named by their location.

What was read comes from the splits of the scans, or from a stream's offsets. A snapshot names no
statement and no micro-batch, only a user that Paimon makes up. So what was written is the one
snapshot of the statement's time whose user begins with the application's prefix
(`spark.paimon.commit.user-prefix`). It is only `observed` where there is no prefix, or several such
snapshots, or another statement of this application that may have made it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from strandline_spark.formats.catalog_tables import folder_namespace
from strandline_spark.formats.contract import Format
from strandline_spark.formats.done import Done
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.paimon.columns import COMMANDS
from strandline_spark.formats.paimon.commands import PLANS_IN, WRITES
from strandline_spark.formats.rewritten import with_same_rows
from strandline_spark.jvm.class_names import Internal
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm, class_name
from strandline_spark.jvm.iceberg_snapshot import Scan
from strandline_spark.model.names import qualified
from strandline_spark.model.statement import Catalog, Dataset, Snapshot, Symlink

_PACKAGE = "org.apache.paimon."
_PREFIX = "spark.paimon.commit.user-prefix"
_LOOK_BACK = 200  # snapshots among which a statement's own is looked for
_REMEMBERED = 1000  # snapshots that were reported


class Paimon(Format):
    """org.apache.paimon.spark.SparkTable, and writes by path."""

    name = "paimon"
    commands = COMMANDS
    versioned = True
    writes = WRITES
    plans_in = PLANS_IN
    scans_tell = True
    rank = 12
    names_batches = False
    relies_on = (
        Internal(
            f"{_PACKAGE}spark.sources.PaimonMicroBatchStream",
            "originTable",
            "Paimon: streamed tables",
        ),
    )

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table at its location, with its name in its catalog."""
        location = _location(mention, jvm)
        return self._dataset(mention, location, jvm) if location is not None else None

    def named(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table that a catalog is about to create, below its warehouse."""
        if mention.catalog is None or not _is_paimon(mention.catalog):
            return None
        warehouse = jvm.conf(f"spark.sql.catalog.{mention.catalog.name()}.warehouse")
        if warehouse is None:
            return None
        namespace = ".".join(mention.identifier.namespace())
        return self._dataset(
            mention, f"{warehouse}/{namespace}.db/{mention.identifier.name()}", jvm
        )

    def _dataset(self, mention: Mention, location: str, jvm: Jvm) -> Dataset:
        namespace, name = jvm.path(location)
        if mention.catalog is None or mention.identifier is None:
            return Dataset(namespace, name, self.name, mention.schema)
        catalog = str(mention.catalog.name())
        table = qualified(
            *map(str, mention.identifier.namespace()),
            str(mention.identifier.name()).partition("$")[0],
        )
        settings = f"spark.sql.catalog.{catalog}"
        warehouse, kind = (
            jvm.conf(f"{settings}.warehouse"),
            jvm.conf(f"{settings}.metastore") or "filesystem",
        )
        place = folder_namespace(warehouse, jvm) if warehouse else catalog
        described = Catalog(catalog, kind, "paimon", warehouse, jvm.conf(f"{settings}.uri"))
        link = Symlink(place, table, "TABLE")
        return Dataset(
            namespace, name, self.name, mention.schema, described, f"{catalog}.{table}", (link,)
        )

    def made_at(self, mention: Mention, jvm: Jvm) -> int | None:
        """Return the time of the table's first schema, in milliseconds since 1970."""
        try:
            return int(_table(mention, jvm).schemaManager().schema(0).timeMillis())
        except (*JAVA_FAILED, AttributeError):
            return None

    def scanned(self, scan: JavaObject, jvm: Jvm) -> Scan | None:
        """Return the table and the snapshot of the scan's first split."""
        if not class_name(scan).startswith(_PACKAGE + "spark.PaimonScan"):
            return None
        for partition in jvm.sequence(scan.lazyInputPartitions()):
            for split in jvm.sequence(partition.splits()):
                return Scan(str(scan.table().location().toString()), str(split.snapshotId()))
        return None

    def read(self, mention: Mention, scan: Scan, jvm: Jvm) -> Snapshot | None:
        """The snapshot of a scan, if it read this table and no branch."""
        if _location(mention, jvm) != scan.table or _is_branch(mention):
            return None
        return self._snapshot(mention, int(scan.snapshot_id), jvm)

    def streamed(self, mention: Mention, start: str | None, end: str, jvm: Jvm) -> Snapshot | None:
        """Return the snapshot that a micro-batch's offsets end at, and the one that it read after.

        A query begins before the splits of a whole snapshot, or of its news alone, and goes on with
        what is new.
        """
        if _is_branch(mention):
            return None
        upper, lower = json.loads(end), json.loads(start) if start else None
        read = self._snapshot(mention, int(upper["snapshotId"]), jvm)
        if lower is None or upper.get("scanSnapshot"):
            return read
        begins, behind = int(lower["index"]) < 0, int(lower["snapshotId"])
        if begins and lower.get("scanSnapshot"):
            return read
        before = behind - 1 if begins else behind
        return replace(
            read,
            from_snapshot_id=str(before) if before else None,
            skipped_changes=_skipped(mention, before, int(upper["snapshotId"]), jvm),
        )

    def written(self, mention: Mention, done: Done, jvm: Jvm) -> Snapshot | None:
        """Return the first snapshot of the execution's time that can be its own."""
        table, prefix = _table(mention, jvm), jvm.conf(_PREFIX)
        if table is None or done.since is None or _is_branch(mention):
            return None
        own, all_seen = _of_its_time(table, done, prefix)
        if not own:
            return None
        alone = all_seen and len(own) == 1 and prefix is not None and not done.beside
        makes = done.operation in {"create", "replace"}  # it receives what is inserted inside it
        first = makes or _first_told((str(table.location().toString()), int(own[0].id())), jvm)
        return replace(_of(own[0]), observed=not (alone and first))

    def _snapshot(self, mention: Mention, snapshot_id: int, jvm: Jvm) -> Snapshot:
        table = _opened(mention, jvm)
        manager = table.snapshotManager() if table is not None else None
        if manager is None or not manager.snapshotExists(snapshot_id):
            return Snapshot(self.name, str(snapshot_id))

        def at(id_: str) -> Snapshot | None:
            return _of(manager.snapshot(int(id_))) if manager.snapshotExists(int(id_)) else None

        return with_same_rows(_of(manager.snapshot(snapshot_id)), {"compact"}, at)


def _skipped(mention: Mention, after: int, until: int, jvm: Jvm) -> bool:
    """Return whether a stream passed over an overwrite, as it does unless it is told not to."""
    table = _opened(mention, jvm)
    if table is None or mention.options.get("streaming-read-overwrite") == "true":
        return False
    manager = table.snapshotManager()
    for snapshot_id in range(until, max(after, until - _LOOK_BACK), -1):
        if not manager.snapshotExists(snapshot_id):
            return False
        if str(manager.snapshot(snapshot_id).commitKind().toString()) == "OVERWRITE":
            return True
    return False


def _is_paimon(instance: JavaObject) -> bool:
    return class_name(instance).startswith(_PACKAGE)


def _is_branch(mention: Mention) -> bool:
    """A branch counts its snapshots anew: its second one is not the table's second one."""
    return mention.identifier is not None and "$branch_" in str(mention.identifier.name())


def _opened(mention: Mention, jvm: Jvm) -> JavaObject | None:
    """The table as the plan holds it; a stream by path (Spark 3.5) is known to its stream alone."""
    if mention.table is not None:
        return _inner(mention.table) if _is_paimon(mention.table) else None
    streams = mention.relation is not None and _is_paimon(mention.relation)
    return jvm.field(mention.relation, "originTable") if streams else None


def _inner(table: JavaObject) -> JavaObject:
    """Paimon's table inside Spark's; TRUNCATE has it alone."""
    return table if class_name(table).endswith("FileStoreTable") else table.getTable()


def _location(mention: Mention, jvm: Jvm) -> str | None:
    inner = _opened(mention, jvm)
    if inner is not None:
        return (
            str(inner.location().toString())
            if class_name(inner).endswith("FileStoreTable")
            else None
        )
    return mention.options.get("path") if mention.provider in {"paimon", "SparkSource"} else None


def _table(mention: Mention, jvm: Jvm) -> Any:
    """The table itself; of a write by path, and of one that was just made, it has to be opened."""
    if mention.table is not None:
        return _inner(mention.table)
    if mention.catalog is not None and mention.identifier is not None:
        return mention.catalog.loadTable(mention.identifier).getTable()
    path = mention.options.get("path")
    options = jvm.new("org.apache.paimon.options.Options")
    options.set("path", path)
    context = jvm.static("org.apache.paimon.catalog.CatalogContext", "create")(options)
    return (
        jvm.static("org.apache.paimon.table.FileStoreTableFactory", "create")(context)
        if path
        else None
    )


def _of_its_time(
    table: JavaObject, done: Done, prefix: str | None
) -> tuple[list[JavaObject], bool]:
    """Return the application's snapshots in a statement's time, and if those are all.

    The newest first. An application's own snapshots have the time of its own clock.
    """
    manager, own = table.snapshotManager(), list[JavaObject]()
    since, until = done.since or 0, done.until
    newest = int(manager.latestSnapshotId() or 0)
    for snapshot_id in range(newest, max(0, newest - _LOOK_BACK), -1):
        if not manager.snapshotExists(snapshot_id):
            return own, until is not None  # expired, and so were all before
        snapshot = manager.snapshot(snapshot_id)
        if not _is_own(snapshot, prefix):
            continue
        timestamp = int(snapshot.timeMillis())
        if timestamp < since:
            return own, until is not None
        if until is None or timestamp <= until:
            own.append(snapshot)
    return own, until is not None and newest <= _LOOK_BACK


def _first_told(snapshot: tuple[str, int], jvm: Jvm) -> bool:
    """Return whether no other statement was given this snapshot."""
    reported: OrderedDict[tuple[str, int], None] = jvm.kept.setdefault("paimon", OrderedDict())
    first = snapshot not in reported
    reported[snapshot] = None
    if len(reported) > _REMEMBERED:
        reported.popitem(last=False)
    return first


def _is_own(snapshot: JavaObject, prefix: str | None) -> bool:
    """Compaction makes snapshots too, which say nothing new."""
    if str(snapshot.commitKind().toString()) == "COMPACT":
        return False
    return prefix is None or str(snapshot.commitUser()).startswith(f"{prefix}_")


def _of(snapshot: JavaObject) -> Snapshot:
    number, rows = int(snapshot.id()), snapshot.deltaRecordCount()
    total = snapshot.totalRecordCount()
    return Snapshot(
        "paimon",
        str(number),
        str(number - 1) if number > 1 else None,
        committed_at=datetime.fromtimestamp(
            int(snapshot.timeMillis()) / 1000, timezone.utc
        ).isoformat(),
        operation=str(snapshot.commitKind().toString()).lower(),
        number_of_rows=int(rows) if rows is not None else None,
        replaces_table=number == 1 or str(snapshot.commitKind().toString()) == "OVERWRITE",
        was_empty=number == 1 or (total is not None and total == rows),
    )


FORMAT = Paimon()
