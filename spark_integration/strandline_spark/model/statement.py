"""The data of one SQL execution or micro-batch, as plain values.

Reading a plan makes a `Statement`; building an event takes one. Nothing here knows Spark, the JVM
or OpenLineage's classes, so that a plan can be read on the emitter's thread, kept, compared and
tested as a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Operation = Literal[
    "append",
    "overwrite",
    "create",
    "replace",
    "merge",
    "update",
    "delete",
    "drop",
    "truncate",
    "restore",
    "rename",
    "alter",
]


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its name, its type in Spark's spelling ("bigint"), the fields inside it."""

    name: str
    type: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalog:
    """The catalog of a table, as OpenLineage's `catalog` facet has it."""

    name: str
    type: str
    framework: str
    warehouse_uri: str | None = None
    metadata_uri: str | None = None


@dataclass(frozen=True, slots=True)
class Symlink:
    """Another identity of a dataset; type is TABLE or LOCATION."""

    namespace: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The snapshot of a table that was read or made.

    `observed`: seen, but not proven to be this statement's.
    """

    format: str
    snapshot_id: str
    parent_snapshot_id: str | None = None
    from_snapshot_id: str | None = None  # exclusive: an incremental read starts after it
    barrier_id: int | None = None
    committed_at: str | None = None  # ISO 8601
    operation: str | None = None
    number_of_rows: int | None = None
    observed: bool = False
    group: str | None = None  # whose barrier it is, where the snapshot itself says so
    generation: int | None = None  # of its group, where the snapshot itself says so
    branch: str | None = None  # that has it where main has not; of one that was read, "main" too
    staged: bool = False  # no branch has it
    same_rows_as: tuple[
        Snapshot, ...
    ] = ()  # before it, the newest first: back to the one that changed rows
    replaces_table: bool | None = None  # the commit left nothing of what the table held
    was_empty: bool = False  # the table had no rows before the commit
    completes: bool = False  # its author asserts that it shows the state of all inputs
    skipped_changes: bool = False  # the read passed over deletes, overwrites or a restore


VERSIONED: set[str] = set()
"""The formats whose tables have snapshots; the registry of formats fills it."""


def each_once(snapshots: Iterable[Snapshot]) -> tuple[Snapshot, ...]:
    """Return the snapshots, each once: a proven one replaces one that was only seen."""
    distinct = tuple(dict.fromkeys(snapshots))
    proven = {(item.snapshot_id, item.from_snapshot_id) for item in distinct if not item.observed}
    return tuple(
        item
        for item in distinct
        if not item.observed or (item.snapshot_id, item.from_snapshot_id) not in proven
    )


def each_written(snapshots: Iterable[Snapshot]) -> tuple[Snapshot, ...]:
    """Return the snapshots that one run made of a table, each once, in the order of their making.

    A CREATE TABLE AS and the append inside it make the same one: what either knows of it counts.
    Where a snapshot is proven, one that was only observed is left out.
    """
    by_id: dict[str, Snapshot] = {}
    for snapshot in snapshots:
        earlier = by_id.get(snapshot.snapshot_id)
        if earlier is None:
            by_id[snapshot.snapshot_id] = snapshot
            continue
        better = snapshot if earlier.observed else earlier
        by_id[snapshot.snapshot_id] = replace(
            better,
            replaces_table=earlier.replaces_table or snapshot.replaces_table,
            completes=earlier.completes or snapshot.completes,
        )
    made = tuple(by_id.values())
    return tuple(snapshot for snapshot in made if not snapshot.observed) or made


@dataclass(frozen=True, slots=True)
class Dataset:
    """One dataset that a statement reads or writes.

    In the naming of the OpenLineage specification.
    """

    namespace: str
    name: str
    format: str  # iceberg, delta, paimon, files, jdbc, kafka, hive, python, ...
    schema: tuple[Field, ...] = ()
    catalog: Catalog | None = None
    table: str | None = None  # catalog.database.table as Spark names it, if it is a table
    symlinks: tuple[Symlink, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    facets: Mapping[str, Any] = field(default_factory=dict)  # facets of a provider's own
    streamed: bool = False  # a source of a streaming query, consumed up to its snapshot
    # The views whose queries read it, by namespace and name; None: the statement itself does.
    through: tuple[tuple[str, str] | None, ...] = (None,)

    @property
    def is_view(self) -> bool:
        """True for a view, which has no rows of its own."""
        return self.format == "view"


@dataclass(frozen=True, slots=True)
class Output:
    """A dataset that is written, how, and what the write reported (bytes, rows, files)."""

    dataset: Dataset
    operation: Operation
    statistics: Mapping[str, int] = field(default_factory=dict)
    before: Dataset | None = None  # as it was called until it was renamed
    renamed: Mapping[str, str] = field(
        default_factory=dict
    )  # columns by their old names, once done


@dataclass(frozen=True, slots=True)
class Origin:
    """One origin of a column.

    DIRECT (IDENTITY, TRANSFORMATION, AGGREGATION) or INDIRECT (FILTER, JOIN, GROUP_BY, ...).
    """

    dataset: tuple[str, str]  # namespace, name
    column: str
    type: str
    subtype: str
    transform: str | None = None  # None: an identity; else the whole expression as Spark SQL
    masking: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the output and its origins, in the output's column order."""

    name: str
    origins: tuple[Origin, ...]


UNREAD_OUTPUT = (
    "an output"  # how a part begins that could not be read and is one that the statement writes
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A whole statement.

    `columns` belong to the (single) output; `indirect` are origins of every column of it.

    A multi-insert has several outputs, and a branch for each with what belongs to that one.
    """

    kind: str  # simple class name of the root of the analysed plan
    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Output, ...] = ()
    columns: tuple[Column, ...] = ()
    indirect: tuple[Origin, ...] = ()
    opaque: tuple[
        str, ...
    ] = ()  # steps through which columns cannot be followed (mapInPandas, df.rdd)
    branches: tuple[Statement, ...] = ()
    sql: str | None = None  # as the user wrote it, if it was SQL
    unread: tuple[str, ...] = ()  # parts of the plan that could not be read, each with the reason
    absent: str | None = None  # the name of a target that a failed statement did not find
    if_filled: bool = False  # nothing was made unless a nested execution wrote the output

    @property
    def output_unread(self) -> bool:
        """True if it writes something that could not be read: `outputs` lacks it."""
        return any(part.startswith(UNREAD_OUTPUT) for part in self.unread)


def apart(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements, a multi-insert as its branches."""
    return [branch for statement in statements for branch in (statement.branches or (statement,))]
