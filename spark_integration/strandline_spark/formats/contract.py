"""Table formats: one file each, found by one registry.

A format says which mentions of data are its own, names the dataset, and knows which snapshot was
read or written. The registry takes every `FORMAT` of this package's modules; the first that knows a
mention decides, the narrowest ask first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from strandline_spark.columns.expression import Value
from strandline_spark.columns.rules import Rule
from strandline_spark.formats.catalog_tables import made_at
from strandline_spark.formats.done import Done
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Described, ReadBy
from strandline_spark.jvm.class_names import Internal
from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.jvm.iceberg_snapshot import Commit, Scan
from strandline_spark.model.statement import Dataset, Field, Snapshot


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """The commit of a micro-batch, and its inputs."""

    batch_id: int
    snapshot: Snapshot
    of: Sequence[Scan]


class Format:
    """The interface of a format. The defaults know nothing."""

    name = ""
    rank = 50  # formats ask in the order of their ranks
    asked: Mapping[
        str, Mapping[str, str]
    ] = {}  # by class of table: questions for `client.answer`, by name
    commands: Mapping[
        str, Rule
    ] = {}  # its own commands, by the name of their node: how their columns are resolved
    without_columns: Collection[str] = ()  # those of its commands that set no column
    writes: Mapping[str, Described] = {}  # what its own commands write
    reads: Mapping[str, ReadBy] = {}  # what its own commands read that is no plan inside them
    plans_in: Mapping[
        str, Sequence[str]
    ] = {}  # by command: fields that hold plans, out of reach of its children
    versioned = False  # whether its tables have snapshots
    scans_tell = False  # whether physical scans know what they have read: then `scanned` is asked
    relies_on: Sequence[
        Internal
    ] = ()  # private fields of its classes, each with what is not known without it
    names_batches = True  # whether a commit says of which streaming query and micro-batch it is

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The dataset that a mention is about, or None if it is not of this format."""
        return None

    def others_of(self, mention: Mention, jvm: Jvm) -> Sequence[Dataset]:
        """Further datasets of the same mention.

        The other topics of a source, the other tables of a query.
        """
        return ()

    def queried(self, mention: Mention, jvm: Jvm) -> Mapping[int, Value] | None:
        """Return what the columns are made of, where a query stands in place of a table; None.

        The datasets have them all.
        """
        return None

    def generated(self, mention: Mention, jvm: Jvm) -> tuple[Sequence[Field], Mapping[str, str]]:
        """Return the schema and the expressions of a table that generates columns from others.

        Expressions as SQL.
        """
        return (), {}

    def written_schema(self, mention: Mention, jvm: Jvm) -> Sequence[Field]:
        """Return the columns of a table that was written by its path; none if they are not known.

        Such a mention has those of the query, which may leave some of the table's out.
        """
        return ()

    def named(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The dataset of a table that does not exist yet."""
        return None

    def made_at(self, mention: Mention, jvm: Jvm) -> int | None:
        """Return the creation time of the mentioned table, in milliseconds since 1970.

        None if it is not there.
        """
        return made_at(mention, jvm)

    def snapshot_at_start(self, mention: Mention, jvm: Jvm) -> Snapshot | None:
        """A hint, before anything is read.

        `observed` unless the statement itself names the snapshot.
        """
        return None

    def snapshot_unseen(self, mention: Mention, jvm: Jvm) -> Snapshot | None:
        """The snapshot to report at the end of a statement where no scan reported what was read."""
        return self.snapshot_at_start(mention, jvm)

    def scanned(self, scan: JavaObject, jvm: Jvm) -> Scan | None:
        """Return the report of a physical scan that has run."""
        return None

    def read(self, mention: Mention, scan: Scan, jvm: Jvm) -> Snapshot | None:
        """The snapshot of a scan, with what the table knows of it."""
        return None

    def streamed(self, mention: Mention, start: str | None, end: str, jvm: Jvm) -> Snapshot | None:
        """Return the snapshots that a micro-batch read, from its source's offsets."""
        return None

    def written(self, mention: Mention, done: Done, jvm: Jvm) -> Snapshot | None:
        """Return the commits of an execution."""
        return None

    def statistics(self, mention: Mention, snapshot: Snapshot, jvm: Jvm) -> dict[str, int]:
        """Return what a commit counted, where the write's metrics do not.

        Named as OpenLineage's outputStatistics facet.
        """
        return {}

    def written_by_batch(
        self, mention: Mention, batch: tuple[str, int], commits: Sequence[Commit], jvm: Jvm
    ) -> Snapshot | None:
        """Return the commit of micro-batch (query id, number), also of one before a restart."""
        return None

    def written_by_query(
        self, mention: Mention, query_id: str, after: int, changes: Collection[str], jvm: Jvm
    ) -> Sequence[BatchSnapshot]:
        """Return the commits of an aligned job's query after one micro-batch, the newest first.

        Of the tables in `changes` the job read what was added since the checkpoint before.
        """
        return ()


def with_snapshot(dataset: Dataset, snapshot: Snapshot | None) -> Dataset:
    """The same dataset at a snapshot."""
    return replace(dataset, snapshots=(snapshot,)) if snapshot is not None else dataset
