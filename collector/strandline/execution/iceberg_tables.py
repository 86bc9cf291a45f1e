"""Iceberg tables as commands change them: through pyiceberg, with the catalogs that the user names.

pyiceberg is no dependency of ours: who executes plans installs it. A catalog is configured as
pyiceberg's own pages say (`.pyiceberg.yaml`, PYICEBERG_CATALOG__LAKE__URI), or by
`--catalog-property lake.uri=...`. Every change is one commit that says which state of the table it
begins from, so that a writer who comes in between makes it fail.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from strandline.core.versions.rollback_statements import GENERATION
from strandline.errors import RefusedError, SettingsError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

INSTALL = "pip install 'pyiceberg[sql-sqlite,pyarrow]', or the extra of your catalog"
PIN = "strandline-pin-"
PUBLISHED = "strandline.published"
"""The property of tables that `strandline tables publish` made: it replaces no others."""


def _remedy(catalog: str) -> str:
    return (
        f"set --catalog-property {catalog}.KEY=VALUE, or configure pyiceberg in ~/.pyiceberg.yaml"
    )


def catalog_properties(properties: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the properties by their catalogs.

    >>> catalog_properties(["lake.type=sql", "lake.uri=sqlite:///a=b.db"])
    {'lake': {'type': 'sql', 'uri': 'sqlite:///a=b.db'}}
    """
    catalogs: dict[str, dict[str, str]] = {}
    for entry in properties:
        name, equals, value = entry.partition("=")
        catalog, dot, key = name.partition(".")
        if not (catalog and dot and key and equals):
            raise SettingsError([f"--catalog-property {entry}: is not CATALOG.KEY=VALUE"])
        catalogs.setdefault(catalog, {})[key] = value
    return catalogs


class IcebergTables:
    """The tables of some catalogs, by catalog.database.table."""

    def __init__(self, properties: Mapping[str, Mapping[str, str]]) -> None:
        self._properties = properties
        self._catalogs: dict[str, Catalog] = {}

    def load(self, called: str) -> Table:
        """Return the table as it is now, or raise RefusedError with the way out."""
        catalog, dot, name = called.partition(".")
        if not dot or "." not in name or "/" in called:
            raise RefusedError(
                f"{called}: its catalog is not known, so it cannot be reached; "
                "follow the plan by hand"
            )
        try:
            return self._catalog(catalog).load_table(name)
        except ImportError:
            raise
        except Exception as error:
            raise RefusedError(
                f"{called}: catalog {catalog} cannot load the table: {_line(error)} "
                f"({_remedy(catalog)})"
            ) from error

    def replace_rows(self, called: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> int:
        """Replace the rows of a published table in one commit, and return how many there are.

        The table is made if it does not exist. Raises RefusedError if it was not published by
        Strandline, or cannot be written.

        The table is made where there is none. Raises RefusedError where it is another one's, or
        cannot be written.
        """
        table = self._published(called, schema)
        count = 0
        with table.transaction() as change:
            if set(schema.names) - {column.name for column in table.schema().fields}:
                with change.update_schema() as wider:
                    wider.union_by_name(schema)
            if table.current_snapshot() is not None:
                change.delete(delete_filter="true")
            for part in parts:
                change.append(part)
                count += part.num_rows
        return count

    def _published(self, called: str, schema: pa.Schema) -> Table:
        catalog, _, name = called.partition(".")
        try:
            held = self._catalog(catalog)
            held.create_namespace_if_not_exists(name.rpartition(".")[0])
            table = held.create_table_if_not_exists(
                name, schema=schema, properties={PUBLISHED: "true"}
            )
        except RefusedError:
            raise
        except Exception as error:
            raise RefusedError(
                f"{called}: catalog {catalog} refused the table: {_line(error)} "
                f"({_remedy(catalog)})"
            ) from error
        if table.properties.get(PUBLISHED) != "true":
            raise RefusedError(
                f"{called}: already exists and was not published by Strandline "
                f"({PUBLISHED} is not true)"
            )
        return table

    def _catalog(self, name: str) -> Catalog:
        if name not in self._catalogs:
            try:
                from pyiceberg.catalog import load_catalog
            except ImportError as error:
                raise RefusedError(f"pyiceberg is needed to change tables: {INSTALL}") from error
            self._catalogs[name] = load_catalog(name, **self._properties.get(name, {}))
        return self._catalogs[name]

    def has(self, called: str, snapshot: str) -> bool:
        """Return whether the table still has a snapshot."""
        return snapshot.isdigit() and self.load(called).snapshot_by_id(int(snapshot)) is not None

    def rows(self, called: str, snapshot: str | None) -> int:
        """Return how many rows a snapshot has; None: the current one, if there is one."""
        table = self.load(called)
        found = (
            table.current_snapshot() if snapshot is None else table.snapshot_by_id(int(snapshot))
        )
        if found is None:
            return 0
        total = found.summary["total-records"] if found.summary is not None else None
        return (
            int(total)
            if total is not None
            else int(table.scan(snapshot_id=found.snapshot_id).count())
        )

    def is_restored(self, called: str, snapshot: str, generation: int) -> bool:
        """Return true if the table is at a snapshot, and fences commits of earlier generations."""
        table = self.load(called)
        current = table.current_snapshot()
        return (
            current is not None
            and str(current.snapshot_id) == snapshot
            and _generation(table) >= generation
        )

    def restore(self, called: str, snapshot: str, generation: int) -> None:
        """Let the table be at a snapshot, and fence, in one commit."""
        from pyiceberg.table.update import SetSnapshotRefUpdate

        back = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=int(snapshot))
        self._commit(self.load(called), back, generation)

    def is_cleared(self, called: str, generation: int) -> bool:
        """Return whether the table is empty, and its history begins with the generation."""
        table = self.load(called)
        current = table.current_snapshot()
        if current is None or _generation(table) < generation:
            return False
        return current.parent_snapshot_id is None and self.rows(called, None) == 0

    def clear(self, called: str, generation: int) -> None:
        """End the table's history, fence, and begin a new one with an empty snapshot.

        The old snapshots stay readable by their ids. The empty one lets a commit that was on its
        way see that what it came from is gone.
        """
        from pyiceberg.table.update import RemoveSnapshotRefUpdate

        table = self.load(called)
        if table.current_snapshot() is not None:
            self._commit(table, RemoveSnapshotRefUpdate(ref_name="main"), generation)
        table = self.load(called)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table.append(
                table.schema().as_arrow().empty_table(),
                snapshot_properties={GENERATION: str(generation)},
            )

    def _commit(self, table: Table, change: Any, generation: int) -> None:
        from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetPropertiesUpdate

        current = table.current_snapshot()
        begins = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId(
                ref="main", snapshot_id=current.snapshot_id if current is not None else None
            ),
        )
        fence = SetPropertiesUpdate(updates={GENERATION: str(generation)})
        table.catalog.commit_table(table, begins, (change, fence))

    def snapshots(self, called: str) -> list[str]:
        """Return the ids of all snapshots that the table has."""
        return [str(snapshot.snapshot_id) for snapshot in self.load(called).snapshots()]

    def expire(self, called: str, snapshots: Collection[str]) -> None:
        """Drop exactly these snapshots from the table's metadata."""
        table = self.load(called)
        table.maintenance.expire_snapshots().by_ids(
            [int(snapshot) for snapshot in snapshots]
        ).commit()

    def heads(self, called: str) -> set[str]:
        """Return the snapshots that branches and tags point to: Iceberg does not expire them."""
        return {str(ref.snapshot_id) for ref in self.load(called).metadata.refs.values()}

    def pins(self, called: str) -> dict[str, str]:
        """Our tags of the table: snapshot by tag."""
        refs = self.load(called).metadata.refs
        return {name: str(ref.snapshot_id) for name, ref in refs.items() if name.startswith(PIN)}

    def pin(self, called: str, snapshots: Sequence[str]) -> tuple[int, int]:
        """Let our tags be on these snapshots, and on no others; how many came and went."""
        there, table = self.pins(called), self.load(called)
        there_yet = [
            snapshot
            for snapshot in snapshots
            if snapshot.isdigit() and table.snapshot_by_id(int(snapshot)) is not None
        ]
        wanted = {PIN + tag: tag for tag in there_yet}
        new, old = wanted.keys() - there.keys(), there.keys() - wanted.keys()
        for tag in sorted(new):
            self.load(called).manage_snapshots().create_tag(int(wanted[tag]), tag).commit()
        for tag in sorted(old):
            self.load(called).manage_snapshots().remove_tag(tag).commit()
        return len(new), len(old)


def _generation(table: Table) -> int:
    stated = table.properties.get(GENERATION, "1")
    return int(stated) if stated.isdigit() else 1


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
