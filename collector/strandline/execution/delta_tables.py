"""Delta tables as a rollback changes them: through deltalake, by their locations.

deltalake is no dependency of ours: who executes plans installs it. A rollback makes a new version
with the content of an old one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strandline.core.versions.rollback_statements import GENERATION
from strandline.errors import RefusedError
from strandline.store.lineage.snapshot_reads import SAME_ROWS

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaTables:
    """The Delta tables at some locations."""

    def has(self, location: str, snapshot: str) -> bool:
        """Return whether the table still has a version."""
        if not snapshot.isdigit():
            return False
        _load(location)  # a table that cannot be reached is not one without the version
        from deltalake.exceptions import DeltaError

        try:
            _load(location, snapshot)
        except DeltaError:
            return False
        return True

    def rows(self, location: str, snapshot: str | None) -> int:
        """Return how many rows a version has; None: the current one."""
        return int(_load(location, snapshot).count())

    def is_restored(self, location: str, snapshot: str, generation: int) -> bool:
        """Return true if the table has the content of a version, and the generation."""
        return _generation(_load(location)) >= generation and _shows(location, snapshot)

    def restore(self, location: str, snapshot: str, generation: int) -> None:
        """Give the table the content of a version, then the generation."""
        table = _load(location)
        if not _shows(location, snapshot):
            table.restore(int(snapshot))
        _fence(table, generation)

    def is_cleared(self, location: str, generation: int) -> bool:
        """Return whether the table is empty, and has the generation."""
        table = _load(location)
        return _generation(table) >= generation and not _files(table)

    def clear(self, location: str, generation: int) -> None:
        """Empty the table, then give it the generation."""
        table = _load(location)
        table.delete()
        _fence(table, generation)


def _load(location: str, version: str | None = None) -> DeltaTable:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError
    except ImportError as error:
        raise RefusedError(
            "deltalake is needed to change Delta tables: pip install deltalake"
        ) from error
    try:
        return DeltaTable(location, version=int(version) if version is not None else None)
    except TableNotFoundError as error:
        raise RefusedError(f"{location}: no Delta table can be reached there") from error


def _shows(location: str, snapshot: str) -> bool:
    """Return whether the table has the rows of a version, also where compactions rewrote them."""
    table, version = _load(location), int(snapshot)
    history = {
        int(version["version"]): str(version["operation"]).lower() for version in table.history()
    }
    shown, same = [table.version()], [version]
    while history.get(shown[-1]) in SAME_ROWS and shown[-1] - 1 in history:
        shown.append(shown[-1] - 1)
    while history.get(same[-1] + 1) in SAME_ROWS:
        same.append(same[-1] + 1)
    wanted = [_files(_load(location, str(version))) for version in same]
    return any(_files(_load(location, str(version))) in wanted for version in shown)


def _files(table: DeltaTable) -> set[tuple[Any, ...]]:
    """Return the files of a version, each with the rows that are deleted in it."""
    actions: Any = table.get_add_actions(flatten=True)
    columns = [name for name in actions.schema.names if _tells_content(name)]
    return set(zip(*(actions.column(name).to_pylist() for name in columns), strict=True))


def _tells_content(column: str) -> bool:
    return column in ("path", "num_records") or column.startswith("deletion_vector")


def _fence(table: DeltaTable, generation: int) -> None:
    properties = {GENERATION: str(generation)}
    table.alter.set_table_properties(properties, raise_if_not_exists=False)


def _generation(table: DeltaTable) -> int:
    stated = table.metadata().configuration.get(GENERATION, "1")
    return int(stated) if stated.isdigit() else 1
