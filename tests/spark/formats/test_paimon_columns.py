"""Column lineage of Paimon's own commands, on Spark 3.5.

In an application of their own, because Iceberg's extensions of Spark's SQL take Paimon's statements
for theirs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.spark_lake import needs
from fixtures.spark_lake.running import events_of
from fixtures.warm_jvm import WarmJvm

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    needs("paimon"),
]


def test_row_changing_statements_have_column_lineage(tmp_path: Path, warm_jvm: WarmJvm) -> None:
    events_of("columns_of.py", tmp_path, "paimon", "paimon.shop", jvm=warm_jvm)

    merge, update, delete = json.loads((tmp_path / "columns.json").read_text())
    assert merge == [
        "id <- paimon.shop.news.id = None",
        "name <- paimon.shop.news.name = UPPER(name)",
        "name <- paimon.shop.news.name = None",
    ]
    assert update == [
        "name <- paimon.shop.people.name = CONCAT(name, city)",
        "name <- paimon.shop.people.city = CONCAT(name, city)",
    ]
    assert delete == []
