"""Files and folders that are read and written, by their plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake.analysis import ended_execution
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.event_queue import EventQueue
from strandline_spark.model.statement import Field, Statement

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def files(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    lake.range(4).selectExpr("id", "id * 2 AS twice").write.parquet(str(folder / "whole"))
    lake.range(4).selectExpr("id", "id * 3 AS twice").write.parquet(str(folder / "other"))
    parts = lake.range(4).selectExpr("id", "id % 2 AS p")
    parts.write.partitionBy("p").parquet(str(folder / "parts"))
    return folder


def read_by(lake: Any, execution: Any) -> Statement:
    return PlanReader(lake).at_start(execution)


def test_folder_is_read_as_itself(lake: Any, files: Path) -> None:
    frame = lake.read.parquet(str(files / "whole"))

    statement = read_by(lake, frame._jdf.queryExecution())

    assert [(one.name, one.schema) for one in statement.inputs] == [
        (str(files / "whole"), (Field("id", "bigint"), Field("twice", "bigint")))
    ]


@pytest.mark.parametrize(
    ("paths", "base", "inputs"),
    [
        (["parts/p=0"], "parts", ["parts"]),
        (["parts/p=0", "parts/p=1"], "", ["parts"]),
        (["whole", "other"], "", ["whole", "other"]),
    ],
    ids=["a part with its base folder", "several parts", "unrelated folders"],
)
def test_folders_are_read_as_they_are_meant(
    lake: Any, files: Path, paths: list[str], base: str, inputs: list[str]
) -> None:
    reader = lake.read.option("basePath", str(files / base)) if base else lake.read
    frame = reader.parquet(*(str(files / path) for path in paths))

    statement = read_by(lake, frame._jdf.queryExecution())

    assert [one.name for one in statement.inputs] == [str(files / name) for name in inputs]


def test_file_write_supports_odd_column_names(
    lake: Any, files: Path, tmp_path: Path, queue: EventQueue
) -> None:
    frame = lake.read.parquet(str(files / "whole")).selectExpr("id + 1 AS `a; b`", "twice")
    frame.write.mode("overwrite").csv(str(tmp_path / "out"))

    statement = read_by(lake, ended_execution(queue, "HadoopFsRelationCommand"))

    output = statement.outputs[0]
    assert (output.dataset.name, output.operation) == (str(tmp_path / "out"), "overwrite")
    assert output.dataset.schema == (Field("a; b", "bigint"), Field("twice", "bigint"))
    assert [column.name for column in statement.columns] == ["a; b", "twice"]
