"""The contents of the aligned bank's tables, barrier by barrier, and the expected ones.

Recomputed from the transfers alone.

Read from Iceberg's own metadata and data files, without Spark and without anything of Strandline's.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import ManifestEntryStatus

Amounts = Counter[int]  # by account
MAX_BEHIND = 5  # barriers; what `aligned_stream` has where nothing is said
INPUTS = {
    "credits": ("bank.transfers",),
    "debits": ("bank.transfers",),
    "balance": ("aligned.credits", "aligned.debits"),
}


@dataclass
class Added:
    """One snapshot with a barrier: what it was made from, and the rows that it added."""

    barrier: int
    snapshot: str
    inputs: dict[str, str]
    rows: list[dict[str, Any]]


@dataclass
class AlignedTables:
    """The tables of a bank: their snapshots in order, and each account's sums at each barrier."""

    snapshots: dict[str, list[Added]]
    sums: dict[str, dict[int, Amounts]] = field(default_factory=dict)

    def barriers(self, name: str) -> list[int]:
        """The barriers of a table, in the order of its commits."""
        return [one.barrier for one in self.snapshots[name]]

    def snapshot_at(self, name: str, barrier: int) -> str | None:
        """The snapshot of a table that carries a barrier, None if none does."""
        return next((one.snapshot for one in self.snapshots[name] if one.barrier == barrier), None)


def tables_in(folder: Path) -> AlignedTables:
    """All that the tables below a demo's folder hold."""
    uri, warehouse = f"sqlite:///{folder}/lake/catalog.db", (folder / "lake").as_uri()
    with closing(SqlCatalog("lake", uri=uri, warehouse=warehouse)) as lake:
        names = ("bank.transfers", "aligned.credits", "aligned.debits", "aligned.balance")
        found = AlignedTables({name: list(_added(lake.load_table(name))) for name in names})
    for name in ("credits", "debits"):
        found.sums[name] = _running(found.snapshots[f"aligned.{name}"], "account", "amount")
    found.sums["balance"] = {
        one.barrier: Counter({row["account"]: row["balance"] for row in one.rows})
        for one in found.snapshots["aligned.balance"]
    }
    return found


def faults_of(found: AlignedTables, rejoined: Collection[str] = ()) -> list[str]:
    """Every snapshot that is not what its barrier says, and every barrier that is missing, out of order or there twice.

    A job may pass barriers that one of its inputs lacks. It drains when it is more than MAX_BEHIND behind, and as long as
    it has not joined the others: it takes the newest barrier each time, until it passes none and so has caught up.

    rejoined: names of the tables whose jobs were started again; these drain as soon as they are two behind.
    """
    expected = expected_of(found)
    faults = []
    for name, inputs in INPUTS.items():
        barriers = found.barriers(f"aligned.{name}")
        common = set.intersection(*(set(found.barriers(table)) for table in inputs))
        drained = True  # a new job joins at the newest barrier
        for earlier, later in pairwise(barriers):
            passed = common.intersection(range(earlier + 1, later))
            if later <= earlier or (0 < len(passed) < MAX_BEHIND and not drained):
                faults.append(f"{name}: its barriers are {barriers}")
                break
            drained = name in rejoined or len(passed) >= MAX_BEHIND or (drained and bool(passed))
        for one in found.snapshots[f"aligned.{name}"]:
            if found.sums[name].get(one.barrier) != expected[name].get(one.barrier):
                faults.append(
                    f"{name}: barrier {one.barrier} does not hold what its base table says"
                )
            told = {f"lake.{table}": found.snapshot_at(table, one.barrier) for table in inputs}
            if one.inputs != told:
                faults.append(
                    f"{name}: barrier {one.barrier} was made from {one.inputs}, not from {told}"
                )
    return faults


def expected_of(found: AlignedTables) -> dict[str, dict[int, Amounts]]:
    """Credits, debits and balance of each account at each barrier, recomputed from the transfers."""
    root = found.snapshots["bank.transfers"]
    credited, debited = _running(root, "payee", "amount"), _running(root, "payer", "amount")
    balance = {}
    for barrier in credited:
        balance[barrier] = Counter(credited[barrier])
        balance[barrier].subtract(debited[barrier])
    return {"credits": credited, "debits": debited, "balance": balance}


def _running(snapshots: list[Added], account: str, amount: str) -> dict[int, Amounts]:
    sums: dict[int, Amounts] = {}
    so_far: Amounts = Counter()
    for one in snapshots:
        for row in one.rows:
            so_far[row[account]] += row[amount]
        sums[one.barrier] = Counter(so_far)
    return sums


def _added(table: Any) -> Iterator[Added]:
    for snapshot in table.snapshots():
        summary = snapshot.summary.additional_properties
        told, epoch = summary.get("strandline.barrier"), summary.get("spark.sql.streaming.epochId")
        barrier = int(told) if told else int(epoch) + 1
        inputs = json.loads(summary.get("strandline.inputs", "{}"))
        yield Added(barrier, str(snapshot.snapshot_id), inputs, list(_rows(table, snapshot)))


def _rows(table: Any, snapshot: Any) -> Iterator[dict[str, Any]]:
    """The rows of the files that one snapshot added."""
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.status == ManifestEntryStatus.ADDED:
                yield from pq.read_table(
                    url2pathname(urlsplit(entry.data_file.file_path).path)
                ).to_pylist()
