"""Another writer of the same tables, without Spark: a row a commit, until a file says that it is over.

`rival.py FOLDER FORMAT`: makes the tables of the race first. Written by pyiceberg, by delta-rs, and by
Paimon's own library.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

MOST = 400  # commits, should nobody say that it is over
PAUSES = {"iceberg": 0.1, "delta": 1.0, "paimon": 0.2}  # a Delta statement takes seconds
OFTEN = {"source", "sink"}
KEYS = {"target": "k", "merged": "batch"}  # Paimon changes rows of tables with a primary key only
COLUMNS = {
    "source": pa.schema([("v", pa.int64())]),
    "sink": pa.schema([("n", pa.int64()), ("tag", pa.string())]),
    "target": pa.schema([("k", pa.int64()), ("who", pa.string())]),
    "copied": pa.schema([("v", pa.int64()), ("tag", pa.int64())]),
    "merged": pa.schema([("v", pa.int64()), ("batch", pa.int32())]),
}
ROWS: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "source": lambda number: (number,),
    "sink": lambda number: (-1, "rival"),
    "target": lambda number: (1000 + number, "rival"),
    "copied": lambda number: (-1, -1),
    "merged": lambda number: (-1, -1 - number),
}


def iceberg(folder: Path) -> Callable[[str, pa.Table], None]:
    """Appends to a table of the JDBC catalog."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import CommitFailedException

    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("race")
    for name, schema in COLUMNS.items():
        isolation = {f"write.{command}.isolation-level": "snapshot" for command in ("merge", "update", "delete")}
        catalog.create_table(f"race.{name}", schema, properties=isolation)

    def append(name: str, rows: pa.Table) -> None:
        try:
            catalog.load_table(f"race.{name}").append(rows, snapshot_properties={"writer": "rival"})
        except CommitFailedException:
            return  # the application came first

    return append


def delta(folder: Path) -> Callable[[str, pa.Table], None]:
    """Appends to a table of a folder."""
    from deltalake import DeltaTable, write_deltalake
    from deltalake.exceptions import CommitFailedError

    place = {name: f"{folder}/spark/race.db/{name}" for name in COLUMNS}
    for name, schema in COLUMNS.items():
        DeltaTable.create(place[name], schema)

    def append(name: str, rows: pa.Table) -> None:
        try:
            write_deltalake(place[name], rows, mode="append")
        except CommitFailedError:
            return

    return append


def paimon(folder: Path) -> Callable[[str, pa.Table], None]:
    """Appends to a table of the warehouse."""
    from py4j.protocol import Py4JJavaError

    from spark_lake.paimon import Tables

    tables = Tables(folder / "paimon", "race")
    for name, schema in COLUMNS.items():
        tables.create(name, schema, KEYS.get(name))

    def append(name: str, rows: pa.Table) -> None:
        try:
            tables.append(name, rows.schema, rows.to_pylist()[0])
        except Py4JJavaError as error:
            if "conflict" not in str(error).lower():
                raise

    return append


def ever_more_seldom(number: int) -> bool:
    """At powers of two: what changes rows begins again when another one came first, and has to come to an end."""
    return number & (number - 1) == 0


def main(folder: Path, kind: str) -> None:
    append = {"iceberg": iceberg, "delta": delta, "paimon": paimon}[kind](folder)
    append("source", pa.table({"v": [0]}))
    (folder / "ready").touch()
    for number in range(1, MOST):
        if (folder / "over").exists():
            return
        time.sleep(PAUSES[kind])
        for name, row in ROWS.items():
            if name in OFTEN or ever_more_seldom(number):
                made = dict(zip(COLUMNS[name].names, row(number), strict=True))
                append(name, pa.Table.from_pylist([made], COLUMNS[name]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
