"""Reading tables at one consistent version: the collector says which snapshots belong together, and keeps them.

`read_consistent` promises: all DataFrames of one answer show one barrier of their domain ("strong") or their greatest
common one ("weak"); the snapshots stay readable while the answer is held; an answer that the tables' own metadata
contradict is an error, not a result.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from strandline_spark.certificates import faults_of
from strandline_spark.collector_calls import URL_KEY, CertificateError, Collector, ConsistencyError
from strandline_spark.identities import Identities, Identity
from strandline_spark.leases import Lease
from strandline_spark.versioned_text import text_of

LEASE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Version:
    """What of a table is read. A table that no job of a domain writes has a snapshot and no barrier."""

    table: str
    snapshot_id: str | None
    barrier: int | None
    incarnation: int | None
    domain: str | None
    lag_seconds: float | None


class ConsistentTables(Mapping[str, DataFrame]):
    """DataFrames of one version, by the names that were asked for. A context manager that gives the claim up."""

    def __init__(
        self, spark: SparkSession, versions: Mapping[str, Version], held_by: Sequence[Any], lease: Lease | None
    ) -> None:
        self._frames = {name: _frame(spark, version) for name, version in versions.items()}
        self.versions = versions
        self.held_by = tuple(held_by)
        """Who holds a newer version back: job, table, state and reason, as the collector tells them."""
        self.lease = lease

    def __getitem__(self, table: str) -> DataFrame:
        return self._frames[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def barrier(self) -> int | None:
        """The barrier of all managed tables; None when they have none, or (weak) several."""
        barriers = {version.barrier for version in self.versions.values() if version.barrier is not None}
        return barriers.pop() if len(barriers) == 1 else None

    def release(self) -> None:
        """Give the claim up; the snapshots may expire from now on."""
        if self.lease is not None:
            self.lease.release()

    def __enter__(self) -> ConsistentTables:  # noqa: PYI034  (typing.Self is not in Python 3.10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def read_consistent(
    spark: SparkSession,
    tables: str | Sequence[str],
    consistency: str = "strong",
    max_lag: float | None = None,
    *,
    wait_for_barrier: int | None = None,
    timeout: float = 30.0,
    lease_seconds: float = LEASE_SECONDS,
) -> ConsistentTables:
    """The tables at one version, as DataFrames under the names that were given.

    Args:
        spark: The session; `spark.strandline.collector.url` says where the collector is.
        tables: Names of tables with snapshots.
        consistency: "strong": the version that all tables connected by jobs completed, the same for every reader.
            "weak": the newest that these tables have in common.
        max_lag: The oldest that the answer may be, in seconds; LagError otherwise, at once.
        wait_for_barrier: Read your own writes: wait until the answer shows this barrier.
        timeout: How long to wait for it; WaitedInVainError after that.
        lease_seconds: How long the claim lasts after its last renewal; it is renewed while the answer is held.

    Raises:
        ConsistencyError: no such answer can be given; see `strandline_spark.collector_calls` for the kinds.
    """
    names = [tables] if isinstance(tables, str) else list(tables)
    collector = Collector.of(spark)
    if collector is None:
        raise ConsistencyError(f"{URL_KEY} is not set: only the collector knows which snapshots belong together")
    identities = Identities(spark)
    wanted = {name: identities.of(name) for name in names}
    question = {
        "tables": [{"namespace": one.namespace, "name": one.name} for one in wanted.values()],
        "consistency": consistency,
        "leaseSeconds": lease_seconds,
    }
    if max_lag is not None:
        question["maxLagSeconds"] = max_lag
    if wait_for_barrier is not None:
        question |= {"waitForBarrier": wait_for_barrier, "timeoutSeconds": timeout}
    answer = collector.ask("POST", "/api/v2/versions", question, timeout if wait_for_barrier is not None else 0.0)
    return _read(spark, collector, answer, wanted, lease_seconds)


def _read(
    spark: SparkSession,
    collector: Collector,
    answer: Mapping[str, Any],
    wanted: Mapping[str, Identity],
    lease_seconds: float,
) -> ConsistentTables:
    lease = Lease(collector, answer["lease"]["id"], lease_seconds) if answer.get("lease") else None
    try:
        told = _told(answer, wanted)
        if answer.get("certificate"):
            faults = faults_of(spark, answer["certificate"], {wanted[name]: one for name, one in told.items()})
            if faults:
                raise CertificateError("; ".join(faults))
        versions = {name: _version(wanted[name], one) for name, one in told.items()}
        return ConsistentTables(spark, versions, answer.get("heldBy", ()), lease)
    except BaseException:
        if lease is not None:
            lease.release()
        raise


def _told(answer: Mapping[str, Any], wanted: Mapping[str, Identity]) -> dict[str, Mapping[str, Any]]:
    """What the answer says of each table. The collector may know a table by another of its names: then by position."""
    by_pair = {(one["namespace"], one["name"]): one for one in answer["tables"]}
    if len(answer["tables"]) == len({identity.pair for identity in wanted.values()}):
        positions = dict(
            zip(dict.fromkeys(identity.pair for identity in wanted.values()), answer["tables"], strict=True)
        )
        by_pair = positions | by_pair
    missing = [name for name, identity in wanted.items() if identity.pair not in by_pair]
    if missing:
        raise CertificateError(f"the collector's answer says nothing of {', '.join(missing)}")
    return {name: by_pair[identity.pair] for name, identity in wanted.items()}


def _version(identity: Identity, told: Mapping[str, Any]) -> Version:
    return Version(
        identity.full_name,
        told["snapshotId"],
        told.get("barrier"),
        told.get("incarnation"),
        told.get("domain"),
        told.get("lagSeconds"),
    )


def _frame(spark: SparkSession, version: Version) -> DataFrame:
    if version.snapshot_id is None:
        return spark.read.table(version.table)
    return spark.read.option("versionAsOf", version.snapshot_id).table(version.table)


def consistent_sql(
    spark: SparkSession,
    query: str,
    consistency: str = "strong",
    max_lag: float | None = None,
    *,
    args: Any = None,
    catalogs: Sequence[str] | None = None,
    wait_for_barrier: int | None = None,
    timeout: float = 30.0,
    lease_seconds: float = LEASE_SECONDS,
) -> DataFrame:
    """The query's result with all its tables at one version. The text stays the user's: no versions in it.

    The claim is renewed while the returned DataFrame is there, and runs out by itself `lease_seconds` later.

    Args:
        spark: The session.
        query: Any statement of Spark SQL; the tables that it reads are versioned, not the one that it writes.
            A table for which the text itself asks a version keeps that.
        consistency: As in `read_consistent`.
        max_lag: As in `read_consistent`.
        args: Parameters of the query, as `spark.sql` takes them.
        catalogs: Only the tables of these catalogs; all unless given.
        wait_for_barrier: As in `read_consistent`.
        timeout: As in `read_consistent`.
        lease_seconds: As in `read_consistent`.

    Raises:
        ConsistencyError: no such answer can be given, or a table is read through a view.
    """
    from strandline_spark.consistent_conf import plain_sql

    text = text_of(spark, query)
    tables = _tables_in(spark, dict.fromkeys(one.name for one in text.tables), catalogs)
    if not tables:
        return plain_sql(spark, query, args)
    found = read_consistent(
        spark,
        tables,
        consistency,
        max_lag,
        wait_for_barrier=wait_for_barrier,
        timeout=timeout,
        lease_seconds=lease_seconds,
    )
    snapshots = {name: one.snapshot_id for name, one in found.versions.items() if one.snapshot_id is not None}
    frame = plain_sql(spark, text.at(snapshots), args)
    if found.lease is not None:
        weakref.finalize(frame, found.lease.stop_renewing)
    return frame


def _tables_in(spark: SparkSession, names: Mapping[str, None], catalogs: Sequence[str] | None) -> list[str]:
    """Those of the names that are asked about; temporary views over nothing stored, for one, are not."""
    identities, asked = Identities(spark), []
    for name in names:
        behind = identities.behind(name)
        versioned = [one for one in behind if one.table is not None and _is_wanted(one.table, catalogs)]
        if versioned:
            asked.append(identities.of(name).table)
    return asked


def _is_wanted(table: str, catalogs: Sequence[str] | None) -> bool:
    return catalogs is None or table.partition(".")[0] in catalogs
