"""Iceberg tables as a Python worker reads them.

The barriers of their snapshots, and rows as Arrow batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from strandline_spark.consistency.table_history import Point, barriers_of, check_appends, point_of
from strandline_spark.sources.lake_catalogs import open_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import FileScanTask


class LakeTable:
    """One table, as its catalog gave it."""

    def __init__(self, name: str, catalogs: Mapping[str, Mapping[str, str]]) -> None:
        """Load the table. Raises CatalogError."""
        self.name = name
        self._table = open_table(name, catalogs)
        self.done = barriers_of(self._main())
        """Return each barrier that the table completed, and the last snapshot that carries it.

        In the barriers' order.
        """

    def _main(self) -> Iterator[Point]:
        """The snapshots from the newest back to the oldest that there is."""
        current = self._table.current_snapshot()
        wanted = str(current.snapshot_id) if current is not None else None
        while wanted is not None and (point := self._point(wanted)) is not None:
            yield point
            wanted = point.parent_id

    def _point(self, snapshot_id: str) -> Point | None:
        snapshot = self._table.snapshot_by_id(int(snapshot_id))
        return (
            point_of(snapshot.model_dump(mode="json", by_alias=True))
            if snapshot is not None
            else None
        )

    def last_carrier(self) -> Point | None:
        """The snapshot of the greatest barrier."""
        newest = next(reversed(self.done), None)
        return self._point(self.done[newest]) if newest is not None else None

    def left_behind(self, snapshot_id: str) -> bool:
        """Return true if a snapshot is outside the main history: the table was rolled back."""
        return self._point(snapshot_id) is not None and all(
            snapshot.snapshot_id != snapshot_id for snapshot in self._main()
        )

    def arrow_schema(self) -> pa.Schema:
        """The columns of now."""
        return self._table.schema().as_arrow()

    def files_at(self, snapshot_id: str) -> list[FileScanTask]:
        """Return the files of a snapshot's rows. Raises ValueError if it has been expired."""
        return list(self._table.scan(snapshot_id=int(snapshot_id)).plan_files())

    def files_since(self, after: str | None, until: str) -> list[FileScanTask]:
        """Return what holds the rows that came after one snapshot (None: ever), up to another.

        Raises NotOnlyAppendsError where rows were changed or deleted in between.
        """
        if after is None:
            return self.files_at(until)
        if after == until:
            return []
        check_appends(self.name, after, until, self._point)
        scan = self._table.incremental_append_scan(
            from_snapshot_id_exclusive=int(after), to_snapshot_id_inclusive=int(until)
        )
        return list(scan.plan_files())

    def batches(self, tasks: Sequence[FileScanTask]) -> Iterator[pa.RecordBatch]:
        """The rows of some files, in the columns of now."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        schema = self._table.schema()
        yield from ArrowScan(
            self._table.metadata, self._table.io, schema, AlwaysTrue()
        ).to_record_batches(tasks)
