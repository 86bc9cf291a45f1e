"""The bank of the demo for tests that run it.

What the collector answers, what Iceberg's own metadata says, kill -9.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pyiceberg.catalog.sql import SqlCatalog

from fixtures.waiting import wait_until
from strandline.demo.bank import Bank
from strandline.demo.processes import DemoProcess

SECONDS = 600
SNAPSHOT_TABLES = ("source_snapshot_lineage", "sink_snapshot_lineage")
JOB_TABLES = ("source_job_lineage", "sink_job_lineage")
LASTING = [(table, "running") for table in SNAPSHOT_TABLES] + [
    (table, "history") for table in JOB_TABLES
]
Rows = list[dict[str, Any]]


def rows_of(url: str, table: str, state: str = "running") -> Rows:
    """GET /api/v2/tables/{table}."""
    with urlopen(f"{url}/api/v2/tables/{table}?state={state}", timeout=30) as response:
        found: Rows = json.load(response)
        return found


def wait_for_bank(condition: Callable[[], object]) -> None:
    """Wait for what real Spark jobs bring about."""
    wait_until(condition, seconds=SECONDS, every=0.3)


def metadata_of(folder: Path) -> dict[str, set[str]]:
    """The snapshot ids of each table, by database.table, as Iceberg's metadata has them."""
    catalog = SqlCatalog(
        "lake", uri=f"sqlite:///{folder}/lake/catalog.db", warehouse=(folder / "lake").as_uri()
    )
    names = [
        name for (database,) in catalog.list_namespaces() for name in catalog.list_tables(database)
    ]
    tables = [catalog.load_table(name) for name in names]
    found = {
        ".".join(table.name()[-2:]): {str(snapshot.snapshot_id) for snapshot in table.snapshots()}
        for table in tables
    }
    catalog.close()
    return found


def kill(part: DemoProcess) -> None:
    """Kill one process and its JVM, as a power cut does."""
    os.killpg(part.process.pid, signal.SIGKILL)
    part.process.wait(30)


def contents(bank: Bank) -> dict[tuple[str, str], list[str]]:
    """All rows that stay when every job has ended, in one order."""
    return {
        (table, state): sorted(map(repr, rows_of(bank.url, table, state)))
        for table, state in LASTING
    }
