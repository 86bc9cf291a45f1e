"""A read of several paths reports exactly those folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline_spark.extraction.reader import PlanReader
from strandline_spark.formats.files import folders_of


@pytest.mark.parametrize(
    ("paths", "folders"),
    [
        (
            ["file:/raw/orders/dt=1", "file:/raw/customers/dt=1"],
            ["file:/raw/orders", "file:/raw/customers"],
        ),
        (
            ["file:/raw/orders/dt=1", "file:/raw/orders/dt=2", "file:/raw/x"],
            ["file:/raw/orders", "file:/raw/x"],
        ),
        (["file:/raw/orders/dt=1/h=1", "file:/raw/orders/dt=1/h=2"], ["file:/raw/orders"]),
        (["file:/raw/orders/part-00000-c000.parquet"], ["file:/raw/orders"]),
        (["file:/raw/orders.parquet/part-0.parquet"], ["file:/raw/orders.parquet"]),
        (["file:/raw/orders", "file:/raw/orders/dt=2"], ["file:/raw/orders"]),
        (["s3a://one/x.csv", "s3a://two/y.csv"], ["s3a://one/x.csv", "s3a://two/y.csv"]),
        (["s3a://2024/x.csv", "s3a://2025/y.csv"], ["s3a://2024/x.csv", "s3a://2025/y.csv"]),
        (["s3a://one/x.csv", "s3a://one/y.csv"], ["s3a://one/x.csv", "s3a://one/y.csv"]),
        (["s3a://one/dt=1", "s3a://two/dt=1"], ["s3a://one", "s3a://two"]),
        (
            ["s3a://one/dt=1", "file:/dt=1", "hdfs://name:8020/dt=1"],
            ["s3a://one", "file:/", "hdfs://name:8020"],
        ),
        (["/in/x.csv", "/in/y.csv"], ["/in/x.csv", "/in/y.csv"]),
        (["file:/in/2024/01", "file:/in/2024/02"], ["file:/in/2024/01", "file:/in/2024/02"]),
        ([f"file:/in/{number}.csv" for number in range(101)], ["file:/in"]),
        (["file:/in/x.csv", "file:/out/x.csv"], ["file:/in/x.csv", "file:/out/x.csv"]),
        (["file:/a/orders", "file:/a/people"], ["file:/a/orders", "file:/a/people"]),
    ],
)
def test_read_reports_exactly_its_folders(paths: list[str], folders: list[str]) -> None:
    assert folders_of(paths) == folders


@pytest.mark.spark
@pytest.mark.parametrize("older", ["parquet", ""], ids=["v1", "v2"])
def test_parts_of_two_folders_are_two_inputs(lake: Any, tmp_path: Path, older: str) -> None:
    for name in ("orders", "customers"):
        lake.range(3).selectExpr("id", "1 AS dt").write.partitionBy("dt").parquet(
            str(tmp_path / name)
        )
    session = lake.newSession()
    session.conf.set("spark.sql.sources.useV1SourceList", older)
    frame = session.read.parquet(str(tmp_path / "orders/dt=1"), str(tmp_path / "customers/dt=1"))

    statement = PlanReader(session).at_start(frame.select("id")._jdf.queryExecution())

    assert [dataset.name for dataset in statement.inputs] == [
        str(tmp_path / "orders"),
        str(tmp_path / "customers"),
    ]
    assert [o.dataset[1] for o in statement.columns[0].origins] == [
        dataset.name for dataset in statement.inputs
    ]
