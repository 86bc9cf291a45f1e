"""The demo's Iceberg tables as anybody sees them.

Through the catalog and their own metadata, without a JVM.
"""

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from strandline.demo.bank import Bank
from strandline.errors import DemoError

TABLES_SECONDS = 120


def make_tables(bank: Bank, example: str = "bank") -> None:
    """Let an example's tables.py make the tables that streams write."""
    command = [
        *bank.job("tables", example),
        f"sqlite:///{bank.catalog}",
        (bank.folder / "lake").as_uri(),
    ]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=TABLES_SECONDS, check=False
    )
    if result.returncode:
        raise DemoError(
            f"the bank's tables cannot be made: {result.stderr.strip().splitlines()[-1]}"
        )


def snapshots(bank: Bank, database: str = "bank") -> dict[str, list[str]]:
    """The snapshot ids of each table of a database of the lake, oldest first."""
    query = (
        "SELECT table_name, metadata_location FROM iceberg_tables WHERE "
        "table_namespace = ? ORDER BY 1"
    )
    with closing(sqlite3.connect(f"file:{bank.catalog}?mode=ro", uri=True, timeout=10)) as catalog:
        tables = catalog.execute(query, (database,)).fetchall()
    return {name: snapshots_in(location) for name, location in tables}


def snapshots_in(location: str) -> list[str]:
    """The snapshot ids in a table's metadata file."""
    metadata: dict[str, Any] = json.loads(Path(url2pathname(urlsplit(location).path)).read_text())
    return [str(snapshot["snapshot-id"]) for snapshot in metadata.get("snapshots", [])]


def totals(bank: Bank, name: str = "bank.balance") -> list[int]:
    """The sum of all balances in each snapshot of a table, oldest first, read by pyiceberg."""
    from pyiceberg.catalog.sql import SqlCatalog

    with closing(
        SqlCatalog(
            "lake", uri=f"sqlite:///{bank.catalog}", warehouse=(bank.folder / "lake").as_uri()
        )
    ) as lake:
        table = lake.load_table(name)
        scans = [table.scan(snapshot_id=snapshot.snapshot_id) for snapshot in table.snapshots()]
        return [sum(scan.to_arrow()["balance"].to_pylist()) for scan in scans]
