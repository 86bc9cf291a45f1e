"""Plans read as rows equal plans read from Spark's JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.client import class_name
from strandline_spark.jvm.event_queue import EventQueue
from strandline_spark.model.statement import Field, Statement

pytestmark = pytest.mark.spark
WAIT = 5_000  # milliseconds
NEVER = 1 << 62


@pytest.fixture(scope="module")
def files(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    lake.range(4).selectExpr("id", "id * 2 AS twice").write.parquet(str(folder / "whole"))
    lake.range(4).selectExpr("id", "id * 3 AS twice").write.parquet(str(folder / "other"))
    parts = lake.range(4).selectExpr("id", "id % 2 AS p")
    parts.write.partitionBy("p").parquet(str(folder / "parts"))
    return folder


def both(lake: Any, execution: Any) -> tuple[Statement, Statement]:
    """Return a plan read from rows, and read from JSON."""
    return PlanReader(lake, rows_after=0).at_start(execution), PlanReader(
        lake, rows_after=NEVER
    ).at_start(execution)


def test_folder_is_read_as_itself(lake: Any, files: Path) -> None:
    frame = lake.read.parquet(str(files / "whole"))

    in_rows, in_json = both(lake, frame._jdf.queryExecution())

    assert in_rows == in_json
    assert [(one.name, one.schema) for one in in_rows.inputs] == [
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

    in_rows, in_json = both(lake, frame._jdf.queryExecution())

    assert in_rows == in_json
    assert [one.name for one in in_rows.inputs] == [str(files / name) for name in inputs]


def written(queue: EventQueue) -> Any:
    """The QueryExecution of the next write of files."""
    while (event := queue.poll(WAIT)) is not None:
        if class_name(event).endswith("SQLExecutionEnd"):
            execution = event.qe()
            if class_name(execution.analyzed()).endswith("InsertIntoHadoopFsRelationCommand"):
                return execution
    raise AssertionError("no write of files came")


def test_file_write_supports_odd_column_names(
    lake: Any, files: Path, tmp_path: Path, queue: EventQueue
) -> None:
    frame = lake.read.parquet(str(files / "whole")).selectExpr("id + 1 AS `a; b`", "twice")
    frame.write.mode("overwrite").csv(str(tmp_path / "out"))

    in_rows, in_json = both(lake, written(queue))

    assert in_rows == in_json
    output = in_rows.outputs[0]
    assert (output.dataset.name, output.operation) == (str(tmp_path / "out"), "overwrite")
    assert output.dataset.schema == (Field("a; b", "bigint"), Field("twice", "bigint"))
    assert [column.name for column in in_rows.columns] == ["a; b", "twice"]
