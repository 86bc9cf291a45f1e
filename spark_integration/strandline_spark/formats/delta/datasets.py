"""Delta tables: named by their location; a version is a snapshot.

What was read comes from the prepared scan, or from a stream's offsets. What was written comes from
the session's own last commit, proven by what that commit says of itself, or from the micro-batch
that a commit names.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from strandline_spark.formats.catalog_tables import (
    identifier_of,
    location_of,
    provider_of,
    session_catalog,
    symlink_of,
    table_name,
    warehouse_namespace,
)
from strandline_spark.formats.contract import Format
from strandline_spark.formats.delta.columns import COMMANDS
from strandline_spark.formats.delta.commands import (
    READS,
    SAME_ROWS,
    VERSION,
    WITHOUT_COLUMNS,
    WRITES,
)
from strandline_spark.formats.done import Done
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.rewritten import with_same_rows
from strandline_spark.jvm.client import (
    JAVA_FAILED,
    JavaObject,
    Jvm,
    answer,
    class_name,
    fetched,
    known,
    optional,
    simple_name,
)
from strandline_spark.jvm.iceberg_snapshot import BARRIER, Commit, Scan
from strandline_spark.model.statement import Dataset, Field, Snapshot, Symlink
from strandline_spark.plans.physical import counted_by, statistics_of
from strandline_spark.plans.schemas import fields_in

_PACKAGE = "org.apache.spark.sql.delta."
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
_COUNTED = {"rowCount": "numOutputRows", "size": "numOutputBytes", "fileCount": "numFiles"}
_CLONED = {"size": "sourceTableSize", "fileCount": "sourceNumOfFiles"}
_GENERATED = "delta.generationExpression"
_DURATIONS = ("executionTimeMs", "scanTimeMs", "rewriteTimeMs")  # of a MERGE, UPDATE or DELETE
_LOOK_BACK = 200  # commits among which a statement's or a micro-batch's own is looked for
_NEWEST, _TABLES = (
    "delta.newest",
    1000,
)  # the newest version that was seen of each of so many tables
_CHANGED_ROWS = {  # operations by the metrics that count the rows, or files, that they removed
    "MERGE": ("numTargetRowsUpdated", "numTargetRowsDeleted"),
    "UPDATE": ("numUpdatedRows", "numRemovedFiles"),
    "DELETE": ("numDeletedRows", "numRemovedFiles", "numDeletionVectorsAdded"),
}
_FEED_COLUMNS = {"_change_type", "_commit_version", "_commit_timestamp"}
_OTHER_CLOCK = 3_600_000  # milliseconds by which another writer's clock may be behind


class Delta(Format):
    """DeltaTableV2, relations over Delta's log, and writes by path."""

    name = "delta"
    commands = COMMANDS
    versioned = True
    writes = WRITES
    reads = READS
    without_columns = WITHOUT_COLUMNS
    scans_tell = True
    rank = 15

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table at the mention's path, with its names in catalogs."""
        location = self._location(mention)
        if location is None:
            return None
        namespace, name = jvm.path(location)
        if _is_feed(mention.relation):
            mention = replace(
                mention,
                schema=tuple(field for field in mention.schema if field.name not in _FEED_COLUMNS),
            )
        table = mention.catalog_table or (
            _v2_table(mention.table) if mention.table is not None else None
        )
        if table is None:
            return Dataset(namespace, name, self.name, mention.schema)
        catalog = replace(session_catalog(jvm), framework="delta")
        return Dataset(
            namespace,
            name,
            self.name,
            mention.schema,
            catalog,
            table_name(table),
            (symlink_of(table, jvm),),
        )

    def named(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The table that a catalog is about to create, at the path it will get."""
        if mention.provider != "delta" or mention.catalog is None or not _is_delta(mention.catalog):
            return None
        namespace, name = jvm.path(_named_location(mention, jvm))
        catalog = replace(session_catalog(jvm), framework="delta")
        named = f"{mention.identifier.namespace()[-1]}.{mention.identifier.name()}"
        symlink = Symlink(warehouse_namespace(jvm), named, "TABLE")
        return Dataset(
            namespace,
            name,
            self.name,
            mention.schema,
            catalog,
            f"{catalog.name}.{named}",
            (symlink,),
        )

    def written_schema(self, mention: Mention, jvm: Jvm) -> Sequence[Field]:
        """Return the columns of the log, for a table that was written by its path."""
        named = mention.table or mention.catalog_table or mention.identifier
        schema = self._schema_of_log(mention, jvm) if named is None else ""
        return fields_in(schema) if schema else ()

    def generated(self, mention: Mention, jvm: Jvm) -> tuple[Sequence[Field], Mapping[str, str]]:
        """Return the log's columns, and the expressions of those that the table generates."""
        schema = self._schema_of_log(mention, jvm)
        if _GENERATED not in schema:
            return (), {}
        columns = {
            column["name"]: column.get("metadata", {}) for column in json.loads(schema)["fields"]
        }
        return fields_in(schema), {
            name: metadata[_GENERATED]
            for name, metadata in columns.items()
            if _GENERATED in metadata
        }

    def _schema_of_log(self, mention: Mention, jvm: Jvm) -> str:
        """Return the schema of a table as JSON; empty if there is no table."""
        location = self._location(mention)
        if location is None:
            return ""
        try:
            log = jvm.static(_PACKAGE + "DeltaLog", "forTable")(fetched(jvm.session), location)
            schema = log.unsafeVolatileSnapshot().metadata().schemaString()
            return str(schema) if schema is not None else ""  # before the first version
        except JAVA_FAILED:
            return ""

    def snapshot_at_start(self, mention: Mention, jvm: Jvm) -> Snapshot | None:
        """The version of a feed, a clone or a restore, or else that of the relation's index."""
        if (named := self._by_command(mention, jvm)) is not None:
            return named
        if mention.relation is None or not _is_delta(mention.relation.location()):
            return None
        version = _version_of_index(mention.relation.location())
        return Snapshot(self.name, str(version), observed=True) if version is not None else None

    def snapshot_unseen(self, mention: Mention, jvm: Jvm) -> Snapshot | None:
        """Return the version that a command without a scan names, else nothing.

        The index has moved on by then, and the scan of a write is in an execution inside it.
        """
        return self._by_command(mention, jvm)

    def _by_command(self, mention: Mention, jvm: Jvm) -> Snapshot | None:
        """Return the version that a command without scan names: of a feed, a clone or a restore."""
        if _is_feed(mention.relation):
            return self._of_feed(mention.relation)
        location = (
            self._location(mention)
            if VERSION in mention.options and mention.relation is None
            else None
        )
        return (
            self._snapshot(location, int(mention.options[VERSION]), jvm)
            if location is not None
            else None
        )

    def _of_feed(self, relation: JavaObject) -> Snapshot:
        """The versions of a feed.

        Without a last one it goes to the newest of the moment when it is read.
        """
        start, end = optional(relation.startingVersion()), optional(relation.endingVersion())
        newest = relation.snapshotWithSchemaMode().snapshot().version() if end is None else end
        before = str(int(start) - 1) if start else None
        return Snapshot(self.name, str(int(newest)), from_snapshot_id=before, observed=end is None)

    def scanned(self, scan: JavaObject, jvm: Jvm) -> Scan | None:
        """Return the table and the version that a scan of its files has read."""
        if simple_name(scan) != "FileSourceScanExec":
            return None
        index = scan.relation().location()
        if not _is_delta(index) or _is_log(index):
            return None
        prepared = simple_name(index) == "PreparedDeltaFileIndex"
        version = int(index.preparedScan().version()) if prepared else _version_of_index(index)
        return Scan(str(index.path().toString()), str(version)) if version is not None else None

    def read(self, mention: Mention, scan: Scan, jvm: Jvm) -> Snapshot | None:
        """The version of a scan, if it read this table and no change feed."""
        location = self._location(mention)
        if (
            location is None
            or _is_feed(mention.relation)
            or jvm.path(location) != jvm.path(scan.table)
        ):
            return None
        return self._snapshot(location, int(scan.snapshot_id), jvm)

    def streamed(self, mention: Mention, start: str | None, end: str, jvm: Jvm) -> Snapshot | None:
        """Return the whole versions between a micro-batch's offsets."""
        location, upper = self._location(mention), _whole_version(json.loads(end))
        if location is None or upper < 0:
            return None
        lower = _whole_version(json.loads(start)) if start else None
        snapshot = self._snapshot(location, upper, jvm)
        if lower is None and not json.loads(end)["isStartingVersion"]:
            first_version = mention.options.get("startingVersion")
            lower = int(first_version) - 1 if first_version else None
        partial = int(json.loads(end)["index"]) >= 0
        return replace(
            snapshot,
            from_snapshot_id=str(lower) if lower is not None else None,
            observed=partial,
            skipped_changes=self._skipped(mention, location, lower, upper, jvm),
        )

    def _skipped(
        self, mention: Mention, location: str, lower: int | None, upper: int, jvm: Jvm
    ) -> bool:
        """Return whether a stream passed over changes of rows after one version up to another."""
        if lower is None or any(field.name == "_change_type" for field in mention.schema):
            return False
        versions = range(upper, max(lower, upper - _LOOK_BACK), -1)
        infos = (_commit_info(location, version, jvm) for version in versions)
        return any(info is not None and removes_rows(info) for info in infos)

    def written(self, mention: Mention, done: Done, jvm: Jvm) -> Snapshot | None:
        """The one commit of the statement's time that says of itself what the statement did.

        Where several do (threads that write the same table at once), the session's last commit is a
        guess, and `observed` says so.
        """
        named = mention.table is None and mention.identifier is not None
        location = _named_location(mention, jvm) if named else self._location(mention)
        if location is None:
            return None
        recent, whole = _since(location, done, jvm)
        commits = {version: info for version, info in recent.items() if _fits(info, done, jvm)}
        if not commits:
            return None
        guess = int(jvm.conf(_LAST_COMMIT) or -1)
        version = guess if guess in commits else max(commits)
        made = _with_rows_before(location, _of(commits[version], version), jvm)
        return replace(made, observed=len(commits) > 1 or not whole)

    def written_by_batch(
        self, mention: Mention, batch: tuple[str, int], commits: Sequence[Commit], jvm: Jvm
    ) -> Snapshot | None:
        """Return the version whose operation names the micro-batch."""
        location = self._location(mention)
        newest = _newest_version(location, jvm) if location is not None else None
        if location is None or newest is None:
            return None
        for version in range(newest, max(-1, newest - _LOOK_BACK), -1):
            info = _commit_info(location, version, jvm) or {}
            parameters = info.get("operationParameters") or {}
            if (parameters.get("queryId"), str(parameters.get("epochId"))) == (
                batch[0],
                str(batch[1]),
            ):
                return _with_rows_before(location, _of(info, version), jvm)
        return None

    def statistics(self, mention: Mention, snapshot: Snapshot, jvm: Jvm) -> dict[str, int]:
        """Return the operation's metrics in the version's entry in the log."""
        named = mention.table is None and mention.identifier is not None
        location = _named_location(mention, jvm) if named else self._location(mention)
        info = (
            _commit_info(location, int(snapshot.snapshot_id), jvm) if location is not None else None
        )
        metrics = (info or {}).get("operationMetrics") or {}
        counted = _CLONED if "sourceNumOfFiles" in metrics else _COUNTED
        return {name: int(metrics[key]) for name, key in counted.items() if key in metrics}

    def _snapshot(self, location: str, version: int, jvm: Jvm) -> Snapshot:
        def at(id_: str) -> Snapshot | None:
            info = _commit_info(location, int(id_), jvm)
            return _of(info, int(id_)) if info is not None else None

        return with_same_rows(at(str(version)) or Snapshot(self.name, str(version)), SAME_ROWS, at)

    def _location(self, mention: Mention) -> str | None:
        if mention.relation is not None and mention.offsets in (None, (None, None)):
            return _path_of_relation(mention.relation)
        if mention.table is not None:
            return _path_of_table(mention.table)
        by_table = (
            mention.catalog_table is not None and provider_of(mention.catalog_table) == "delta"
        )
        location = location_of(mention.catalog_table) if by_table else None
        if location is not None:
            return location
        by_path = mention.provider in {"delta", "DeltaDataSource", "deltasource"}
        return mention.options.get("path") if by_table or by_path else None


def _is_delta(instance: JavaObject) -> bool:
    return class_name(instance).startswith(_PACKAGE)


def _path_of_relation(relation: JavaObject) -> str | None:
    """Return the path of Delta's relation.

    That is a HadoopFsRelation, or one of its own without a name, over an index of Delta's.
    """
    name = class_name(relation)
    if _is_feed(relation):
        return str(
            answer(
                relation,
                "path",
                lambda relation_: (
                    relation_.snapshotWithSchemaMode().snapshot().deltaLog().dataPath()
                ),
            )
        )
    if not (name.endswith("HadoopFsRelation") or name.startswith(_PACKAGE)):
        return None
    index = answer(relation, "index", lambda relation_: known(relation_.location()))
    return str(index.path().toString()) if _is_delta(index) and not _is_log(index) else None


def _is_feed(relation: JavaObject | None) -> bool:
    """Return true for a feed of changes in a table (`table_changes`, option `readChangeFeed`)."""
    return relation is not None and class_name(relation).endswith("DeltaCDFRelation")


def _path_of_table(table: JavaObject) -> str | None:
    """A staged table, which a CREATE TABLE AS is filling, does not tell its path.

    The statement around it does.
    """
    if not _is_delta(table):
        return None
    return str(table.path().toString()) if simple_name(table) == "DeltaTableV2" else None


def _is_log(index: JavaObject) -> bool:
    """Delta reads its own log with Spark; that is no reading of data."""
    return simple_name(index) == "DeltaLogFileIndex"


def _v2_table(table: JavaObject) -> JavaObject | None:
    return optional(table.catalogTable()) if simple_name(table) == "DeltaTableV2" else None


def _named_location(mention: Mention, jvm: Jvm) -> str:
    if mention.options.get("location"):
        return mention.options["location"]
    return str(
        jvm.session.sessionState()
        .catalog()
        .defaultTablePath(identifier_of(mention, jvm))
        .toString()
    )


def _version_of_index(index: JavaObject) -> int | None:
    try:
        return int(index.version())
    except JAVA_FAILED:
        return None


def _whole_version(offset: Mapping[str, Any]) -> int:
    """The newest version of which an offset has read something.

    Index -1 stands before anything of its version.
    """
    return int(offset["reservoirVersion"]) - (1 if int(offset["index"]) < 0 else 0)


def _newest_version(location: str, jvm: Jvm) -> int | None:
    """By the log's own files, because Delta's view of its log may be older.

    Versions follow each other without a gap from the last checkpoint on, so a few questions find
    the newest one: a log of 10,000 files is never listed over Py4J.
    """
    newest: OrderedDict[str, int] = jvm.kept.setdefault(_NEWEST, OrderedDict())
    log = f"{location}/_delta_log"
    last = newest.pop(location, None)
    if last is None or not _is_version(log, last, jvm):  # the table was made anew meanwhile
        last = _checkpointed(log, jvm)
    found = newest_from(last, lambda version: _is_version(log, version, jvm))
    if found >= 0:
        newest[location] = found
    while len(newest) > _TABLES:
        newest.popitem(last=False)
    return found if found >= 0 else None


def _is_version(log: str, version: int, jvm: Jvm) -> bool:
    return jvm.is_file(f"{log}/{version:020}.json")


def _checkpointed(log: str, jvm: Jvm) -> int:
    """The version of the last checkpoint; -1 without one."""
    try:
        return int(json.loads("".join(jvm.first_lines(f"{log}/_last_checkpoint", 1)))["version"])
    except (ValueError, KeyError, TypeError):
        return -1


def newest_from(version: int, exists: Callable[[int], bool]) -> int:
    """The newest version, where all from a known one on exist up to it.

    In steps that double, then halve.

    >>> newest_from(-1, lambda version: version <= 9_999)
    9999
    >>> newest_from(7, lambda version: version <= 7)
    7
    """
    step = 1
    while exists(version + step):
        version += step
        step *= 2
    while step > 1:
        step //= 2
        if exists(version + step):
            version += step
    return version


def _since(location: str, done: Done, jvm: Jvm) -> tuple[dict[int, dict[str, Any]], bool]:
    """This Spark's commits since a statement began, and whether these are all.

    Not where others made too many since.

    Those in between may have another clock, or tell no time.
    """
    newest, begun, found = _newest_version(location, jvm), done.since, dict[int, dict[str, Any]]()
    if newest is None or begun is None:
        return found, False
    for version in range(newest, max(-1, newest - _LOOK_BACK), -1):
        info = _commit_info(location, version, jvm) or {}
        own, timestamp = _of_this_application(info, jvm), int(info.get("timestamp") or begun)
        if timestamp < begun - (0 if own else _OTHER_CLOCK):
            return found, True
        if own:
            found[version] = info
    return found, newest < _LOOK_BACK


_OPERATIONS = {
    "merge": "MERGE",
    "update": "UPDATE",
    "delete": "DELETE",
    "truncate": "TRUNCATE",
    "restore": "RESTORE",
}


def _fits(info: Mapping[str, Any], done: Done, jvm: Jvm) -> bool:
    """Return true if a commit matches the statement, with as many rows, bytes and milliseconds."""
    operation = str(info.get("operation"))
    if not _same_operation(operation, done.operation):
        return False
    metrics = info.get("operationMetrics") or {}
    reported = {name: int(metrics[key]) for name, key in _COUNTED.items() if key in metrics}
    counted = {**statistics_of(done.execution), **counted_by(done.execution, _DURATIONS)}
    took = {name: int(metrics[name]) for name in _DURATIONS if name in metrics}
    return all({**reported, **took}.get(name, value) == value for name, value in counted.items())


def _same_operation(committed: str, wanted: str) -> bool:
    if wanted in {"append", "overwrite"}:
        return committed in {"WRITE", "CONVERT"}
    if wanted in {"create", "replace"}:
        return committed in {"WRITE", "CLONE"} or "TABLE" in committed
    return committed.startswith(_OPERATIONS.get(wanted, ""))


def _commit_info(location: str, version: int, jvm: Jvm) -> dict[str, Any] | None:
    """Return what a commit says of itself: the first line of its file that is a commitInfo."""
    for line in jvm.first_lines(f"{location}/_delta_log/{version:020}.json", 3):
        info = json.loads(line).get("commitInfo")
        if isinstance(info, dict):
            return info
    return None


def _of(info: Mapping[str, Any], version: int) -> Snapshot:
    metrics = info.get("operationMetrics") or {}
    rows = metrics.get("numOutputRows") or metrics.get("numTargetRowsInserted")
    return Snapshot(
        "delta",
        str(version),
        str(version - 1) if version else None,
        None,
        _barrier(info),
        datetime.fromtimestamp(int(info["timestamp"]) / 1000, timezone.utc).isoformat()
        if "timestamp" in info
        else None,
        str(info.get("operation", "")).lower() or None,
        int(rows) if rows is not None else None,
        replaces_table=replaces_table(info),
    )


def _with_rows_before(location: str, snapshot: Snapshot, jvm: Jvm) -> Snapshot:
    """Return a snapshot with whether the table had no rows before it."""
    if snapshot.operation == "convert":  # its rows are those of the files that were there
        return snapshot
    version = int(snapshot.snapshot_id) - 1
    for before in range(version, max(-1, version - _LOOK_BACK), -1):
        info = _commit_info(location, before, jvm) or {}
        if str(info.get("operation")).lower() not in SAME_ROWS:
            return replace(snapshot, was_empty=leaves_no_rows(info))
    return replace(snapshot, was_empty=version < 0)


def leaves_no_rows(info: Mapping[str, Any]) -> bool:
    """Return whether a table has no rows after a commit, by what the commit says of itself.

    >>> leaves_no_rows({"operation": "CREATE TABLE"})
    True
    >>> metrics = {"numOutputRows": "3"}
    >>> leaves_no_rows({"operation": "CREATE TABLE AS SELECT", "operationMetrics": metrics})
    False
    """
    operation, metrics = str(info.get("operation")), info.get("operationMetrics") or {}
    without_rows = operation == "TRUNCATE" or operation.endswith(("CREATE TABLE", "REPLACE TABLE"))
    return replaces_table(info) and (without_rows or metrics.get("numOutputRows") == "0")


def replaces_table(info: Mapping[str, Any]) -> bool:
    """Return whether a commit replaced the whole table, by what it says of itself.

    >>> replaces_table({"operation": "WRITE", "operationParameters": {"mode": "Overwrite"}})
    True
    >>> replaces_table({"operation": "WRITE", "operationParameters": {"mode": "Append"}})
    False
    """
    operation, parameters = str(info.get("operation")), info.get("operationParameters") or {}
    if operation == "WRITE":
        dynamic = str(parameters.get("isDynamicPartitionOverwrite")).lower() == "true"
        in_part = dynamic or parameters.get("predicate") not in (None, "", "[]", '["true"]')
        return parameters.get("mode") in {"Overwrite", "ErrorIfExists"} and not in_part
    if operation == "STREAMING UPDATE":
        return parameters.get("outputMode") == "Complete"
    return operation in {"TRUNCATE", "CLONE"} or operation.startswith(("CREATE", "REPLACE"))


def removes_rows(info: Mapping[str, Any]) -> bool:
    """Return whether a commit deleted or changed rows that were there before.

    >>> removes_rows({"operation": "DELETE", "operationMetrics": {"numRemovedFiles": "1"}})
    True
    >>> removes_rows({"operation": "MERGE", "operationMetrics": {"numTargetRowsInserted": "2"}})
    False
    """
    operation, metrics = str(info.get("operation")), info.get("operationMetrics") or {}
    if operation.lower() in SAME_ROWS or operation == "CREATE TABLE":
        return False
    if operation in _CHANGED_ROWS:
        return any(int(metrics.get(name, 0)) > 0 for name in _CHANGED_ROWS[operation])
    mode = (info.get("operationParameters") or {}).get("mode")
    return operation in {"TRUNCATE", "RESTORE"} or mode == "Overwrite" or "REPLACE" in operation


def _barrier(info: Mapping[str, Any]) -> int | None:
    """A barrier in the commit's own metadata, as JSON."""
    try:
        own = json.loads(info.get("userMetadata") or "{}").get(BARRIER)
    except (ValueError, AttributeError):
        own = None
    return int(own) if own is not None and str(own).isdigit() else None


def _of_this_application(info: Mapping[str, Any], jvm: Jvm) -> bool:
    return str(info.get("engineInfo", "")).startswith(f"Apache-Spark/{jvm.session.version()}")


FORMAT = Delta()
