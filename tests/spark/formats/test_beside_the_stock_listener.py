"""One application under our emitter and the stock listener: all differences are listed.

Compared are names, schemas and the columns that values come from, by output. `+` is what only we
say, `-` what only the stock listener says; every line stands under the reason why it is so. Tables
of Iceberg are left out: of those the stock listener (1.53) names no output in a JDBC catalog, as
here; in a Hadoop catalog it does (tests/recordings).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fixtures.spark_lake.running import events_of
from fixtures.spark_lake.written import differences, written

pytestmark = [pytest.mark.spark, pytest.mark.soak]
HIVE = {"spark.sql.catalogImplementation": "hive"}

ORDERS, TOTALS = "file /spark/shop.db/orders", "derby /shopdb.TOTALS"
KNOWN: Mapping[str, tuple[str, ...]] = {
    "the stock listener takes the metastore's database for that of a table behind JDBC": (
        f"+ {TOTALS}",
        "- file:/metastore_db TOTALS",
        f"+ file /out/totals inputs: {TOTALS}",
        "- file /out/totals inputs: file:/metastore_db TOTALS",
        f"+ file /out/totals columns: name <- {TOTALS} name",
        "- file /out/totals columns: name <- file:/metastore_db TOTALS name",
        f"+ file /out/totals columns: total <- {TOTALS} total",
        "- file /out/totals columns: total <- file:/metastore_db TOTALS total",
    ),
    "it does not tell where a stream writes its files": ("+ file /out/copied",),
    "it loses the columns of rows that come into foreachBatch": (
        f"+ file /out/kept columns: amount <- {ORDERS} amount",
        f"+ file /out/kept columns: id <- {ORDERS} id",
    ),
    "it does not tell what a multi-insert reads": (
        f"+ file /spark/shop.db/high columns: amount <- {ORDERS} amount",
        f"+ file /spark/shop.db/high columns: id <- {ORDERS} id",
        f"+ file /spark/shop.db/low columns: amount <- {ORDERS} amount",
        f"+ file /spark/shop.db/low columns: id <- {ORDERS} id",
        f"+ file /spark/shop.db/high inputs: {ORDERS}",
        f"+ file /spark/shop.db/low inputs: {ORDERS}",
    ),
    "it does not tell of views": ("+ file:/spark shop.large",),
}


def test_the_differences_are_known(tmp_path: Path) -> None:
    told = []
    for stock in (False, True):
        folder = tmp_path / ("stock" if stock else "ours")
        folder.mkdir()
        told.append(
            written(events_of("ordinary.py", folder, "plain", conf=HIVE, stock=stock), str(folder))
        )

    assert differences(*told) == sorted(line for lines in KNOWN.values() for line in lines)
