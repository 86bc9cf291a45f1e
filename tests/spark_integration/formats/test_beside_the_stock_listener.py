"""The same ordinary application under our emitter and under the stock OpenLineage listener: what differs is listed.

Compared are names, schemas and the columns that values come from, by output. `+` is what only we say, `-` what only the
stock listener says; every line stands under the reason why it is so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_lake import formats
from spark_lake.running import events_of
from spark_lake.told import differences, written

pytestmark = [pytest.mark.spark, pytest.mark.soak]
HIVE = {"spark.sql.catalogImplementation": "hive"}

KNOWN: Mapping[str, tuple[str, ...]] = {}


@pytest.mark.skipif("iceberg" not in formats(), reason="Iceberg has no runtime for this Spark")
def test_what_differs_is_known(tmp_path: Path) -> None:
    told = []
    for stock in (False, True):
        folder = tmp_path / ("stock" if stock else "ours")
        folder.mkdir()
        told.append(written(events_of("ordinary.py", folder, "iceberg", conf=HIVE, stock=stock), str(folder)))

    assert differences(*told) == sorted(line for lines in KNOWN.values() for line in lines)
