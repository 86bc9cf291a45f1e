"""The tables that a rollback changes, each through the library of its format."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from strandline.core.versions.rollback_statements import StoredTable
from strandline.errors import RefusedError
from strandline.execution.delta_tables import DeltaTables
from strandline.execution.iceberg_tables import IcebergTables, catalog_properties


class RestorableTables(Protocol):
    """Tables of one format, by their addresses there."""

    def has(self, address: str, snapshot: str) -> bool:
        """Return whether a table still has a snapshot."""
        ...

    def rows(self, address: str, snapshot: str | None) -> int:
        """Return how many rows a snapshot has; None: the current one, if there is one."""
        ...

    def is_restored(self, address: str, snapshot: str, generation: int) -> bool:
        """Return true if a table shows a snapshot, and has the generation."""
        ...

    def restore(self, address: str, snapshot: str, generation: int) -> None:
        """Let a table show a snapshot, and have the generation."""
        ...

    def is_cleared(self, address: str, generation: int) -> bool:
        """Return whether a table is empty, and has the generation."""
        ...

    def clear(self, address: str, generation: int) -> None:
        """Empty a table, and give it the generation."""
        ...


class LakeTables:
    """Iceberg tables of catalogs, and Delta tables by their locations."""

    def __init__(self, properties: Iterable[str]) -> None:
        self._iceberg = IcebergTables(catalog_properties(properties))
        self._delta = DeltaTables()

    def reach(self, details: Mapping[str, str]) -> tuple[RestorableTables, str]:
        """Return the tables of a step's format with the address of its table there.

        Raises RefusedError where that cannot be reached from here.
        """
        called = details["table"]
        match details.get("format", ""):
            case "" | "iceberg":
                return self._iceberg, called
            case "delta" if "location" in details:
                return self._delta, details["location"]
            case "delta":
                why = "its location is not known"
            case other:
                why = f"it is a table of {other.capitalize()}, which no library here changes"
        raise RefusedError(f"{called}: {why}, so it cannot be reached; follow the plan by hand")

    def has(self, table: StoredTable, snapshot: str) -> bool:
        """Return whether a table still has a snapshot."""
        details = {"table": table.called, "format": table.format, "location": table.location}
        tables, address = self.reach({key: value for key, value in details.items() if value})
        return tables.has(address, snapshot)
