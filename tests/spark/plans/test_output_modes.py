"""The output mode of a query decides the operation of its micro-batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline_spark.extraction.writes import writes_of
from strandline_spark.jvm.client import Jvm
from strandline_spark.plans.tree_source import tree_of_plan

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("mode", "operation"), [("append", "append"), ("complete", "overwrite")])
def test_complete_mode_overwrites(lake: Any, tmp_path: Path, mode: str, operation: str) -> None:
    lake.range(3).write.parquet(str(tmp_path / "arriving"))
    arriving = lake.readStream.schema("id bigint").parquet(str(tmp_path / "arriving"))
    rows = arriving.groupBy().count() if mode == "complete" else arriving
    writer = rows.writeStream.outputMode(mode).format("memory").queryName(f"{mode}_mode")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.processAllAvailable()
    plan, query_id = query._jsq.streamingQuery().lastExecution().analyzed(), query.id
    query.stop()

    jvm = Jvm(lake._jvm, lake._jsparkSession)
    (write,) = writes_of(plan, tree_of_plan(plan).root, jvm, [])

    assert write.operation == operation
    assert write.batch == (query_id, 0)
    assert (write.whole, write.completes) == (mode == "complete", mode == "complete")
