"""What a table's own metadata says of its snapshots, read without Spark.

By pyiceberg, by delta-rs, and by Paimon's own library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Truth:
    """The tables of the race: rows of a snapshot, the snapshot before one, the snapshots that the application made."""

    rows: Callable[[str, str], list[Row]]
    parent: Callable[[str, str], str | None]
    own: Callable[[str], list[str]]

    def added(self, table: str, snapshot_id: str) -> list[Row]:
        """The rows that were not there in the snapshot before."""
        before = self.parent(table, snapshot_id)
        old = Counter(map(_key, self.rows(table, before))) if before is not None else Counter()
        return [dict(row) for row in (Counter(map(_key, self.rows(table, snapshot_id))) - old).elements()]


def _key(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple(row.items())


def of_iceberg(folder: Path, database: str = "race") -> Truth:
    """The other writer says in its snapshots who it is."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")
    tables = cache(lambda name: catalog.load_table(f"{database}.{name}"))

    def rows(name: str, snapshot_id: str) -> list[Row]:
        return list(tables(name).scan(snapshot_id=int(snapshot_id)).to_arrow().to_pylist())

    def parent(name: str, snapshot_id: str) -> str | None:
        found = tables(name).snapshot_by_id(int(snapshot_id)).parent_snapshot_id
        return str(found) if found is not None else None

    def own(name: str) -> list[str]:
        made = sorted(tables(name).snapshots(), key=lambda one: one.sequence_number)
        return [str(one.snapshot_id) for one in made if one.summary["spark.app.id"]]

    return Truth(cache(rows), parent, own)


def of_delta(folder: Path, database: str = "race") -> Truth:
    """Commits say what engine made them."""
    from deltalake import DeltaTable

    def place(name: str) -> str:
        return f"{folder}/spark/{database}.db/{name}"

    def rows(name: str, version: str) -> list[Row]:
        return list(DeltaTable(place(name), version=int(version)).to_pyarrow_table().to_pylist())

    def parent(name: str, version: str) -> str | None:
        return str(int(version) - 1) if int(version) else None

    def own(name: str) -> list[str]:
        history = sorted(DeltaTable(place(name)).history(), key=lambda one: one["version"])
        return [str(one["version"]) for one in history if str(one.get("engineInfo")).startswith("Apache-Spark")]

    return Truth(cache(rows), parent, own)


def of_paimon(folder: Path) -> Truth:
    """Snapshots say by whose prefix they were made; compaction makes some that hold nothing new."""
    from spark_lake.paimon import Tables

    tables = Tables(folder / "paimon", "race")

    def parent(name: str, snapshot_id: str) -> str | None:
        return str(int(snapshot_id) - 1) if int(snapshot_id) > 1 else None

    def own(name: str) -> list[str]:
        made = [one for one in tables.snapshots(name) if one["commitKind"] != "COMPACT"]
        return [str(one["id"]) for one in made if one["commitUser"].startswith("ours_")]

    return Truth(cache(tables.rows), parent, own)


TRUTHS: Mapping[str, Callable[[Path], Truth]] = {"iceberg": of_iceberg, "delta": of_delta, "paimon": of_paimon}
