"""The statements of rollback plans, carried out by Spark on real Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import formats
from strandline.core.versions.rollback_statements import GENERATION, StoredTable, clear, restore
from strandline.execution.delta_tables import DeltaTables

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by location"])
def test_statements_for_delta_leave_what_their_plan_promises(
    named: bool, lake: Any, tmp_path: Path
) -> None:
    if "delta" not in formats():
        pytest.skip("no runtime for this Spark")
    location, called = str(tmp_path / "it`s"), "spark_catalog.taken_back.t"
    lake.sql("CREATE NAMESPACE taken_back")
    lake.sql(f"CREATE TABLE {called} (v BIGINT) USING delta LOCATION '{location}'")
    for value in (1, 2, 3):
        lake.sql(f"INSERT INTO {called} VALUES ({value})")
    table = StoredTable(called if named else location, "delta", location)
    promised = DeltaTables()

    for statement in restore(table, "2", 2):
        assert not promised.is_restored(location, "2", 2)
        lake.sql(statement)
    restored = promised.is_restored(location, "2", 2), values(lake, called)
    for statement in clear(table, 3):
        assert not promised.is_cleared(location, 3)
        lake.sql(statement)
    cleared = promised.is_cleared(location, 3), values(lake, called)
    properties = dict(lake.sql(f"SHOW TBLPROPERTIES {called}").collect())
    lake.sql("DROP NAMESPACE taken_back CASCADE")

    assert restored == (True, [1, 2])
    assert cleared == (True, [])
    assert properties[GENERATION] == "3"


def values(lake: Any, table: str) -> list[int]:
    return sorted(row["v"] for row in lake.table(table).collect())
