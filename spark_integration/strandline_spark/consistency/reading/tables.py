"""Reading tables at one consistent version.

The collector says which snapshots belong together, and keeps them.

`read_consistent` promises that all DataFrames of one answer show one barrier of their group
("strong") or their greatest common one ("weak"). The snapshots stay readable while the answer is
held. An answer that the tables' own metadata contradict is an error, not a result.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from strandline_spark.conf_keys import COLLECTOR_URL
from strandline_spark.consistency.certificates import faults_of
from strandline_spark.consistency.collector import (
    CertificateError,
    Collector,
    ConfigurationError,
    ConsistencyError,
    LeaseLostError,
    UnknownTableError,
    UntrackedError,
)
from strandline_spark.consistency.leases import Lease
from strandline_spark.consistency.reading.plain import plain_sql
from strandline_spark.consistency.reading.sql_text import Text, text_of
from strandline_spark.consistency.reading.statements import StatementReading
from strandline_spark.consistency.reading.untracked import is_read_at_latest
from strandline_spark.consistency.reading.written_back import note_versions
from strandline_spark.consistency.table_identity import Identities, Identity

LEASE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a table to read.

    A table that no job of a group writes has no barrier, and at its latest no snapshot.
    """

    table: str
    snapshot_id: str | None
    barrier: int | None
    generation: int | None
    group: str | None
    lag_seconds: float | None


class ConsistentTables(Mapping[str, DataFrame]):
    """DataFrames of one version, by the names that were asked for.

    A context manager that ends the lease. Once the lease is lost, a table raises LeaseLostError.
    """

    def __init__(
        self,
        spark: SparkSession,
        versions: Mapping[str, Version],
        blocked_by: Sequence[Any],
        lease: Lease | None,
    ) -> None:
        self._frames = {name: _frame(spark, version) for name, version in versions.items()}
        self.versions = versions
        self.blocked_by = tuple(blocked_by)
        """What blocks a newer version: job, table, state and reason."""
        self.lease = lease

    def __getitem__(self, table: str) -> DataFrame:
        if self.lease is not None:
            self.lease.check()
        return self._frames[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def barrier(self) -> int | None:
        """The barrier of all tracked tables; None when they have none, or (weak) several."""
        barriers = {
            version.barrier for version in self.versions.values() if version.barrier is not None
        }
        return barriers.pop() if len(barriers) == 1 else None

    def release(self) -> None:
        """End the lease; the snapshots may expire from now on."""
        if self.lease is not None:
            self.lease.release()

    def __enter__(self) -> ConsistentTables:  # noqa: PYI034  (typing.Self is not in Python 3.10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if isinstance(error, (PySparkException, Py4JError)) and self.lease is not None:
                self.lease.check()  # the reason why a snapshot could not be read any more
        except LeaseLostError as lost:
            raise lost from error
        finally:
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
        consistency: "strong": the version that all tables connected by jobs completed, the same for
            every reader. "weak": the newest that these tables have in common. "cut": the newest
            snapshots that agree by data lineage, without barriers.
        max_lag: The oldest that the answer may be, in seconds; LagError otherwise, at once.
        wait_for_barrier: Read your own writes: wait until the answer shows this barrier.
        timeout: How long to wait for it; WaitedInVainError after that.
        lease_seconds: How long the lease lasts after its last renewal; it is renewed while the
            answer is in use.

    Raises:
        ConsistencyError: no such answer can be given; see `strandline_spark.consistency.collector`
            for the kinds.
    """
    if consistency not in ("strong", "weak", "cut"):
        raise ValueError(f"consistency: {consistency!r} is none of strong, weak, cut")
    names = [tables] if isinstance(tables, str) else list(tables)
    collector = Collector.of(spark)
    if collector is None:
        raise ConfigurationError(
            f"{COLLECTOR_URL} is not set: only the collector knows which snapshots belong together"
        )
    wanted, plain = _identified(spark, names)
    question = {"consistency": consistency, "leaseSeconds": lease_seconds}
    question |= _conditions(max_lag, wait_for_barrier, timeout)
    wait = timeout if wait_for_barrier is not None else 0.0
    try:
        answer = _asked(collector, wanted, question, wait)
    except (UntrackedError, UnknownTableError):
        untracked = _at_latest(spark, collector, wanted, consistency)
        if not untracked:
            raise
        plain |= untracked
        wanted = {name: identity for name, identity in wanted.items() if name not in plain}
        answer = _asked(collector, wanted, question, wait)
    return _read(spark, collector, answer, wanted, plain, lease_seconds)


def _conditions(
    max_lag: float | None, wait_for_barrier: int | None, timeout: float
) -> dict[str, Any]:
    question: dict[str, Any] = {}
    if max_lag is not None:
        question["maxLagSeconds"] = max_lag
    if wait_for_barrier is not None:
        question |= {"waitForBarrier": wait_for_barrier, "timeoutSeconds": timeout}
    return question


def _identified(
    spark: SparkSession, names: Sequence[str]
) -> tuple[dict[str, Identity], dict[str, str]]:
    """Return the tables to ask about, and those without snapshots.

    The conf lets the latter be read as they are.
    """
    identities, wanted, plain = Identities(spark), dict[str, Identity](), dict[str, str]()
    for name in names:
        try:
            wanted[name] = identities.of(name)
        except UnknownTableError:
            behind = identities.behind(name)
            table = behind[0].table if len(behind) == 1 else None
            if (
                table is None
                or not identities.is_direct(name, behind[0])
                or not is_read_at_latest(spark, table)
            ):
                raise
            plain[name] = table
    return wanted, plain


def _asked(
    collector: Collector, wanted: Mapping[str, Identity], question: Mapping[str, Any], wait: float
) -> dict[str, Any]:
    if not wanted:
        return {"tables": []}
    tables = [{"namespace": table.namespace, "name": table.name} for table in wanted.values()]
    return collector.ask("POST", "/api/v2/versions", {"tables": tables, **question}, wait)


def _at_latest(
    spark: SparkSession, collector: Collector, wanted: Mapping[str, Identity], consistency: str
) -> dict[str, str]:
    """The tables that have no barriers and that the conf lets be read at their latest."""
    snapshots = {}
    for name, identity in wanted.items():
        try:
            _asked(collector, {name: identity}, {"consistency": consistency}, 0.0)
        except (UntrackedError, UnknownTableError):
            if is_read_at_latest(spark, identity.full_name):
                snapshots[name] = identity.full_name
        except (
            ConsistencyError
        ):  # it has barriers: what keeps it back is reported for all tables together
            continue
    return snapshots


def _read(
    spark: SparkSession,
    collector: Collector,
    answer: Mapping[str, Any],
    wanted: Mapping[str, Identity],
    plain: Mapping[str, str],
    lease_seconds: float,
) -> ConsistentTables:
    lease = Lease(collector, answer["lease"]["id"], lease_seconds) if answer.get("lease") else None
    try:
        answers = _answers_by_table(answer, wanted)
        if answer.get("certificate"):
            faults = faults_of(
                spark,
                answer["certificate"],
                {wanted[name]: answer for name, answer in answers.items()},
            )
            if faults:
                raise CertificateError("; ".join(faults))
        versions = {name: _version(wanted[name], answer) for name, answer in answers.items()}
        versions |= {
            name: Version(table, None, None, None, None, None) for name, table in plain.items()
        }
        return ConsistentTables(spark, versions, answer.get("blockedBy", ()), lease)
    except BaseException:
        if lease is not None:
            lease.release()
        raise


def _answers_by_table(
    answer: Mapping[str, Any], wanted: Mapping[str, Identity]
) -> dict[str, Mapping[str, Any]]:
    """Return the answer's entry of each table.

    The collector may know a table by another of its names: then by position.
    """
    by_pair = {(table["namespace"], table["name"]): table for table in answer["tables"]}
    if len(answer["tables"]) == len({identity.pair for identity in wanted.values()}):
        positions = dict(
            zip(
                dict.fromkeys(identity.pair for identity in wanted.values()),
                answer["tables"],
                strict=True,
            )
        )
        by_pair = positions | by_pair
    missing = [name for name, identity in wanted.items() if identity.pair not in by_pair]
    if missing:
        raise CertificateError(f"the collector's answer says nothing of {', '.join(missing)}")
    return {name: by_pair[identity.pair] for name, identity in wanted.items()}


def _version(identity: Identity, answered: Mapping[str, Any]) -> Version:
    return Version(
        identity.full_name,
        answered["snapshotId"],
        answered.get("barrier"),
        answered.get("generation"),
        answered.get("group"),
        answered.get("lagSeconds"),
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
    """The query's result with all its tables at one version.

    The text stays the user's: no versions in it.

    The lease is renewed while the returned DataFrame is there, and runs out by itself
    `lease_seconds` later.

    Args:
        spark: The session.
        query: Any statement of Spark SQL; the tables that it reads are versioned, also through
            views, but not those that it changes, defines or caches. A table for which the text
            itself asks a version keeps that.
        consistency: As in `read_consistent`.
        max_lag: As in `read_consistent`.
        args: Parameters of the query, as `spark.sql` takes them.
        catalogs: Only the tables of these catalogs; all unless given.
        wait_for_barrier: As in `read_consistent`.
        timeout: As in `read_consistent`.
        lease_seconds: As in `read_consistent`.

    Raises:
        ConsistencyError: no such answer can be given.
        UnreadableStatementError: a table is read where no version can be put; nothing has run.
    """
    return read_statement(
        spark, text_of(spark, query), args, lambda catalog: catalogs is None or catalog in catalogs,
        consistency=consistency, max_lag=max_lag, wait_for_barrier=wait_for_barrier,
        timeout=timeout, lease_seconds=lease_seconds,
    )  # fmt: skip


def read_statement(
    spark: SparkSession, text: Text, args: Any, in_catalog: Callable[[str], bool], **asking: Any
) -> DataFrame:
    """Run a statement with what it reads of the catalogs at one version.

    `asking` is for `read_consistent`.
    """
    if not text.may_read:
        return plain_sql(spark, text.sql, args)
    statement = StatementReading(spark, text, args, in_catalog)
    followed = statement.follow()
    tables = list(dict.fromkeys(followed.tables()))
    frames = read_consistent(spark, tables, **asking) if tables else None
    lease = frames.lease if frames is not None else None
    try:
        versions = frames.versions if frames is not None else {}
        sql = followed.at(_snapshots(versions))
        statement.check(
            sql,
            frozenset(
                version.table for version in versions.values() if version.snapshot_id is None
            ),
        )
        frame = plain_sql(spark, sql, args)
        note_versions(frozenset(version.table for version in versions.values()))
    except BaseException:
        if lease is not None:
            lease.release()
        raise
    if lease is not None:
        weakref.finalize(frame, lease.stop_renewing)
    return frame


def _snapshots(versions: Mapping[str, Version]) -> dict[str, str]:
    """The snapshots at which tables are read, but for those that are read as they are."""
    return {
        name: version.snapshot_id
        for name, version in versions.items()
        if version.snapshot_id is not None
    }
