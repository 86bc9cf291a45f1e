"""Iceberg tables: named by their location, with the table's own name as a symlink.

Snapshots read come from the scans' own reports and from offsets, snapshots written from Iceberg's
listener registry. The current snapshot of a table is never taken for either, because another writer
may have moved it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from strandline_spark.formats.catalog_tables import folder_namespace
from strandline_spark.formats.contract import BatchSnapshot, Format
from strandline_spark.formats.done import Done
from strandline_spark.formats.iceberg.branches import with_branch_of_commit, with_branch_of_read
from strandline_spark.formats.iceberg.commands import WRITES
from strandline_spark.formats.iceberg.commits import own_commit
from strandline_spark.formats.iceberg.internals import FIELDS
from strandline_spark.formats.iceberg.offsets import (
    NO_SNAPSHOT,
    ends_whole,
    offset_in,
    passes_over_changes,
    read_up_to,
)
from strandline_spark.formats.iceberg.scans import incremental, scan_report, start_of
from strandline_spark.formats.iceberg.tables import (
    find_snapshot,
    fresh_table,
    iceberg_table,
    newest_first,
)
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.rewritten import with_same_rows
from strandline_spark.jvm.client import (
    JAVA_FAILED,
    JAVA_THREW,
    JavaObject,
    Jvm,
    answer,
    ask,
    class_name,
    dotted,
    known_answer,
    simple_name,
)
from strandline_spark.jvm.iceberg_snapshot import (
    GROUP,
    INPUTS,
    REGISTRY,
    Commit,
    Scan,
    batch_of,
    generation_of,
    stated_barrier,
)
from strandline_spark.model.statement import Catalog, Dataset, Snapshot, Symlink

_PACKAGE = "org.apache.iceberg.spark."
_SPARK_3 = "org.apache.iceberg.spark.Spark3Util"
_CHANGE_COLUMNS = {"_change_type", "_change_ordinal", "_commit_snapshot_id"}
_METADATA_COLUMNS = {"_file", "_pos", "_partition", "_spec_id", "_deleted"}
# What of a table is named: `table.branch_b`.
_PART = re.compile(r"branch_.+|tag_.+|snapshot_id_\d+|at_timestamp_\d+|changes")
_REWRITES = {"SparkRewriteTableCatalog", "SparkCachedTableCatalog"}
_LOOKED_AT = 1000  # snapshots, from the newest back


_OF_SNAPSHOT = {
    "id": "snapshotId",
    "parent": "parentId",
    "at": "timestampMillis",
    "operation": "operation",
    "summary": "summary",
}
_ASKED = {
    f"{_PACKAGE}source.SparkTable": {
        "location": "table.location",
        "metadata": "table?org.apache.iceberg.BaseMetadataTable",
        "pinned": "snapshotId",
        "current": ">table.currentSnapshot",
    },
    "org.apache.iceberg.BaseSnapshot": _OF_SNAPSHOT,
}


class Iceberg(Format):
    """Tables of org.apache.iceberg.spark.source.SparkTable and its kin."""

    name = "iceberg"
    versioned = True
    writes = WRITES
    scans_tell = True
    rank = 10
    asked = _ASKED
    relies_on = FIELDS

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table or view by its name in its catalog."""
        if (
            mention.provider == "view"
            and mention.catalog is not None
            and _is_iceberg(mention.catalog)
        ):
            return self._view(mention, jvm)
        if mention.table is None or not _is_iceberg(mention.table) or _is_rewrite(mention):
            return None
        if _shows_metadata(mention.table, jvm):
            return None
        if (registry := jvm.kept.get(REGISTRY)) is not None:
            registry.seen(mention.table)
        location = str(
            answer(mention.table, "location", lambda table_: iceberg_table(table_).location())
        )
        return self._dataset(mention, location, _qualified(mention), jvm)

    def named(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table that a catalog is about to create, at the location it will get."""
        if mention.catalog is None or not _is_iceberg(mention.catalog) or _is_rewrite(mention):
            return None
        location = mention.options.get("location") or _default_location(mention, jvm)
        return self._dataset(mention, location, _qualified(mention), jvm) if location else None

    def made_at(self, mention: Mention, jvm: Jvm) -> int | None:
        """Return the time of the oldest metadata that the table lists, in ms since 1970."""
        try:
            metadata = iceberg_table(fresh_table(mention)).operations().current()
        except JAVA_THREW:
            return None
        earlier = metadata.previousFiles()  # the newest hundred, which is long enough ago
        return int(
            metadata.lastUpdatedMillis() if earlier.isEmpty() else earlier.get(0).timestampMillis()
        )

    def _dataset(self, mention: Mention, location: str, table: str, jvm: Jvm) -> Dataset:
        namespace, name = jvm.path(location)
        in_catalog = mention.catalog is not None and not _is_path(mention.identifier)
        catalog = _catalog(mention.catalog, table, jvm) if in_catalog else None
        symlinks = (_symlink(catalog, table, jvm),) if catalog is not None else ()
        hidden = _METADATA_COLUMNS | (_CHANGE_COLUMNS if _is_changelog(mention.table) else set())
        schema = tuple(column for column in mention.schema if column.name not in hidden)
        return Dataset(
            namespace, name, self.name, schema, catalog, table if catalog else None, symlinks
        )

    def _view(self, mention: Mention, jvm: Jvm) -> Dataset:
        """A view has no files: its name in the catalog is all."""
        table = _qualified(mention)
        catalog = _catalog(mention.catalog, table, jvm)
        link = _symlink(catalog, table, jvm)
        return Dataset(link.namespace, table, "view", mention.schema, catalog, table, (link,))

    def snapshot_at_start(self, mention: Mention, jvm: Jvm) -> Snapshot | None:
        """The last snapshot that the statement names, or the one that the table is pinned to."""
        if mention.table is None:  # a view
            return None
        start, end = (
            mention.options.get("start-snapshot-id"),
            mention.options.get("end-snapshot-id"),
        )
        if end:
            return self._snapshot(mention, int(end), jvm, from_snapshot_id=start)
        pinned = _pinned(mention.table)
        return self._snapshot(mention, pinned, jvm, observed=True) if pinned is not None else None

    def scanned(self, scan: JavaObject, jvm: Jvm) -> Scan | None:
        """Return what Iceberg's scan report names, or the snapshots of an incremental scan."""
        if not _is_iceberg(scan):
            return None
        report = scan_report(scan, jvm)
        if report is not None:
            return Scan(str(report.tableName()), str(report.snapshotId()))
        return incremental(scan, jvm)

    def read(self, mention: Mention, scan: Scan, jvm: Jvm) -> Snapshot | None:
        """The snapshot of a scan, if it read this table."""
        if mention.table is None:  # a view
            return None
        if scan.table != _qualified(mention) and scan.table != str(
            iceberg_table(mention.table).name()
        ):
            return None
        if int(scan.snapshot_id) == NO_SNAPSHOT:
            return None
        if scan.from_snapshot_id is None and scan.first_snapshot_id is None:
            return self._snapshot(mention, int(scan.snapshot_id), jvm)
        table = iceberg_table(mention.table)
        after, known = start_of(scan, table)
        read = self._snapshot(
            mention, int(scan.snapshot_id), jvm, from_snapshot_id=after, observed=not known
        )
        if after is None or _is_changelog(mention.table):
            return read
        skipped = passes_over_changes(table, int(after), int(scan.snapshot_id))
        return replace(read, skipped_changes=skipped)

    def streamed(self, mention: Mention, start: str | None, end: str, jvm: Jvm) -> Snapshot | None:
        """Return the snapshots up to which a micro-batch's offsets read, end and start."""
        table, name = iceberg_table(mention.table), _qualified(mention)
        last, first = offset_in(name, end), offset_in(name, start)
        upper = read_up_to(last, table) if last is not None else None
        if last is None or upper is None:
            return None
        whole = (
            first is None or first.get("scan_all_files") or mention.options.get("rows") == "state"
        )
        lower = read_up_to(first, table, whole=True) if first is not None and not whole else None
        partial = not ends_whole(last, table)
        read = self._snapshot(
            mention, upper, jvm, from_snapshot_id=str(lower) if lower else None, observed=partial
        )
        if mention.options.get("rows") == "state":
            return read
        scanned_whole = first is not None and first.get("scan_all_files")
        after = int(first["snapshot_id"]) if first is not None and scanned_whole else lower
        return replace(read, skipped_changes=passes_over_changes(table, after, upper))

    def written(self, mention: Mention, done: Done, jvm: Jvm) -> Snapshot | None:
        """Return the execution's own commit among those reported while it ran."""
        if mention.provider == "view":
            return None
        same = [commit for commit in done.commits if _same_table(commit.table, _qualified(mention))]
        own = own_commit(same, done, lambda: iceberg_table(fresh_table(mention)), jvm)
        return (
            replace(self._of_commit(mention, own[0], jvm), observed=not own[1])
            if own is not None
            else None
        )

    def written_by_batch(
        self, mention: Mention, batch: tuple[str, int], commits: Sequence[Commit], jvm: Jvm
    ) -> Snapshot | None:
        """Return the commit reported for the micro-batch, or the snapshot that names it."""
        own = [commit for commit in commits if commit.batch == batch]
        if own:
            return self._of_commit(mention, own[-1], jvm)
        table = iceberg_table(fresh_table(mention))
        query, number = batch
        for snapshot in islice(newest_first(table), _LOOKED_AT):
            query_id, made_by = batch_of(jvm.mapping(snapshot.summary())) or (None, 0)
            if query_id == query and made_by <= number:
                return _of(snapshot) if made_by == number else None
        return None

    def written_by_query(
        self, mention: Mention, query_id: str, after: int, changes: Collection[str], jvm: Jvm
    ) -> Sequence[BatchSnapshot]:
        """Return the snapshots after that micro-batch whose summaries name the query."""
        snapshots: list[tuple[int, JavaObject]] = []
        inputs: list[Mapping[str, str]] = []
        for snapshot in islice(newest_first(iceberg_table(fresh_table(mention))), _LOOKED_AT):
            summary = jvm.mapping(snapshot.summary())
            if INPUTS not in summary:
                continue
            inputs.append(json.loads(summary[INPUTS]))
            query, number = batch_of(summary) or (None, 0)
            if query != query_id or number <= after:
                break
            snapshots.append((number, snapshot))
        before: list[Mapping[str, str]] = [*inputs[1:], {}]
        return [
            BatchSnapshot(
                number,
                _of(snapshot),
                [Scan(n, id_, old.get(n) if n in changes else None) for n, id_ in own.items()],
            )
            for (number, snapshot), own, old in zip(snapshots, inputs, before, strict=False)
        ]

    def _of_commit(self, mention: Mention, commit: Commit, jvm: Jvm) -> Snapshot:
        table, snapshot = find_snapshot(mention, int(commit.snapshot_id))
        if snapshot is not None:
            return with_branch_of_commit(_of(snapshot), table, jvm)
        rows = commit.summary.get("added-records")
        return Snapshot(
            self.name,
            commit.snapshot_id,
            barrier_id=stated_barrier(commit.summary),
            operation=commit.operation,
            number_of_rows=int(rows) if rows else None,
            group=commit.summary.get(GROUP),
            generation=generation_of(commit.summary),
            replaces_table=replaces_table(commit.summary),
            was_empty=was_empty(commit.summary),
        )

    def _snapshot(
        self,
        mention: Mention,
        snapshot_id: int,
        jvm: Jvm,
        from_snapshot_id: str | None = None,
        observed: bool = False,
    ) -> Snapshot:
        described = known_answer(mention.table, "current") or {}
        table = iceberg_table(mention.table) if described else None
        if described.get("id") != snapshot_id:
            table, snapshot_found = find_snapshot(mention, snapshot_id)
            if snapshot_found is None:
                return Snapshot(
                    self.name,
                    str(snapshot_id),
                    from_snapshot_id=from_snapshot_id,
                    observed=observed,
                )
            described = _described(snapshot_found)
        read = replace(
            _snapshot_of(described), from_snapshot_id=from_snapshot_id, observed=observed
        )
        read = with_branch_of_read(read, table, "wap.id" in (described["summary"] or {}), jvm)

        def at(id_: str) -> Snapshot | None:
            _, before = find_snapshot(mention, int(id_))
            return _of(before) if before is not None else None

        return with_same_rows(read, {"replace"}, at)


def _is_iceberg(instance: JavaObject) -> bool:
    return class_name(instance).startswith(_PACKAGE)


def _is_rewrite(mention: Mention) -> bool:
    """Return true for a procedure's rewrite of a table's files, under a name that is nobody's.

    Nothing is read or written.
    """
    return mention.catalog is not None and simple_name(mention.catalog) in _REWRITES


def _shows_metadata(table: JavaObject, jvm: Jvm) -> bool:
    """Return whether it is one of the tables about a table (`t.snapshots`).

    Reading those is not reading the data.
    """
    kind = "org.apache.iceberg.BaseMetadataTable"
    _opened(table, jvm)
    return bool(
        answer(
            table,
            "metadata",
            lambda table_: jvm.class_named(kind).isInstance(iceberg_table(table_)),
        )
    )


def _is_changelog(table: JavaObject | None) -> bool:
    return table is not None and class_name(table).endswith(".SparkChangelogTable")


def _opened(table: JavaObject, jvm: Jvm) -> None:
    """Treat the changes in a table (`t.changes`) as data of the table.

    Only one of its fields knows the table.
    """
    if _is_changelog(table):
        answer(
            table,
            "table",
            lambda relation_: jvm.field(relation_, "table") or jvm.field(relation_, "icebergTable"),
        )


def _is_path(identifier: JavaObject | None) -> bool:
    """Return whether a table is read by its path, which is no name that a catalog gave."""
    return identifier is not None and simple_name(identifier) == "PathIdentifier"


def _qualified(mention: Mention) -> str:
    """catalog.database.table, as Spark names it."""
    if mention.catalog is None or mention.identifier is None:
        return str(mention.table.name())
    named = f"{_name(mention.catalog)}.{dotted(mention.identifier)}"
    table, _, part = named.rpartition(".")
    if mention.table is None or not _PART.fullmatch(part):
        return named
    own = str(answer(mention.table, "name", lambda table_: iceberg_table(table_).name()))
    return table if _same_table(own, table) else named


def _name(catalog: JavaObject) -> str:
    return str(answer(catalog, "name", lambda catalog_: catalog_.name()))


def _same_table(committed: str, qualified: str) -> bool:
    """Return whether Iceberg's name of a table, which is never quoted, is that of Spark's.

    >>> _same_table("lake.a.x.y", "lake.a.`x.y`"), _same_table("a.t", "lake.a.t")
    (True, True)
    >>> _same_table("lake.a.y", "lake.a.`x.y`"), _same_table("b.t", "lake.a.t")
    (False, False)
    """
    plain = qualified.replace("`", "")
    return committed == plain or plain.endswith("." + committed)


def _catalog(catalog: JavaObject, table: str, jvm: Jvm) -> Catalog:
    name = _name(catalog)
    prefix = f"spark.sql.catalog.{name}"
    kind = jvm.conf(f"{prefix}.type") or _kind_of(jvm.conf(f"{prefix}.catalog-impl"))
    return Catalog(
        name,
        kind or "hive",
        "iceberg",
        jvm.conf(f"{prefix}.warehouse"),
        jvm.conf(f"{prefix}.uri"),
    )


def _kind_of(implementation: str | None) -> str | None:
    """Jdbc of org.apache.iceberg.jdbc.JdbcCatalog."""
    return (
        implementation.rpartition(".")[2].removesuffix("Catalog").lower()
        if implementation
        else None
    )


def _symlink(catalog: Catalog, table: str, jvm: Jvm) -> Symlink:
    place = (
        folder_namespace(catalog.warehouse_uri, jvm)
        if catalog.warehouse_uri
        else catalog.metadata_uri
    )
    return Symlink(place or catalog.name, _inside_catalog(catalog, table), "TABLE")


def _inside_catalog(catalog: Catalog, table: str) -> str:
    return table.removeprefix(catalog.name + ".")


def _default_location(mention: Mention, jvm: Jvm) -> str | None:
    """Return the location that the catalog will give to a new table.

    A REST catalog tells nobody.
    """
    try:
        identifier = jvm.static(_SPARK_3, "identifierToTableIdentifier")(mention.identifier)
        return _promised_location(_inner_catalog(mention.catalog, jvm), identifier, jvm)
    except JAVA_THREW:
        return None


def _inner_catalog(catalog: JavaObject, jvm: Jvm) -> JavaObject:
    inner = catalog.icebergCatalog()
    return jvm.field(inner, "catalog") if simple_name(inner) == "CachingCatalog" else inner


def _promised_location(catalog: JavaObject, identifier: JavaObject, jvm: Jvm) -> str:
    kinds = jvm.array("java.lang.Class", identifier.getClass())
    method = catalog.getClass().getDeclaredMethod("defaultWarehouseLocation", kinds)
    method.setAccessible(True)
    return str(method.invoke(catalog, jvm.array("java.lang.Object", identifier)))


def _pinned(table: JavaObject) -> int | None:
    """The snapshot that the analysed plan holds.

    Of a time travel, or the one that was current then.
    """
    try:
        pinned = answer(table, "pinned", lambda scan_: scan_.snapshotId())
    except JAVA_FAILED:
        return None
    if pinned is not None:
        return int(pinned)
    current = answer(table, "current", _current)
    return int(current["id"]) if current is not None else None


def _current(table: JavaObject) -> Mapping[str, Any] | None:
    current = iceberg_table(table).currentSnapshot()
    return _described(current) if current is not None else None


def _of(snapshot: JavaObject) -> Snapshot:
    return _snapshot_of(_described(snapshot))


def _described(snapshot: JavaObject) -> Mapping[str, Any]:
    return dict(zip(_OF_SNAPSHOT, ask(snapshot, *_OF_SNAPSHOT.values()), strict=True))


def _snapshot_of(described: Mapping[str, Any]) -> Snapshot:
    summary, parent = described["summary"] or {}, described["parent"]
    replaces, rows = replaces_table(summary), summary.get("added-records")
    if replaces and rows is None:
        rows = 0
    return Snapshot(
        "iceberg",
        str(described["id"]),
        str(parent) if parent is not None else None,
        barrier_id=stated_barrier(summary),
        committed_at=datetime.fromtimestamp(described["at"] / 1000, timezone.utc).isoformat(),
        operation=str(described["operation"]),
        number_of_rows=int(rows) if rows is not None else None,
        group=summary.get(GROUP),
        generation=generation_of(summary),
        replaces_table=replaces,
        was_empty=was_empty(summary),
    )


def replaces_table(summary: Mapping[str, Any]) -> bool | None:
    """Return whether a commit left no row of those before it, by its own counts.

    >>> replaces_table({"total-records": "3", "added-records": "3", "deleted-records": "7"})
    True
    >>> replaces_table({"total-records": "0", "deleted-records": "7"})
    True
    >>> replaces_table({"total-records": "5", "added-records": "3"})
    False
    """
    if "total-records" not in summary:
        return None
    return int(summary["total-records"]) == int(summary.get("added-records", 0))


def was_empty(summary: Mapping[str, Any]) -> bool:
    """Return whether the table had no rows before a commit, by the commit's own counts.

    >>> was_empty({"total-records": "3", "added-records": "3"})
    True
    >>> was_empty({"total-records": "3", "added-records": "3", "deleted-records": "7"})
    False
    >>> was_empty({})
    False
    """
    changed = int(summary.get("added-records", 0)) - int(summary.get("deleted-records", 0))
    return "total-records" in summary and int(summary["total-records"]) == changed


FORMAT = Iceberg()
