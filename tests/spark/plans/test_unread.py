"""Unreadable parts of a plan are named in the event and logged once; the rest is reported."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from py4j.protocol import Py4JNetworkError

from fixtures.spark_lake.analysis import analysed, input_names
from strandline_spark.extraction.reader import PlanReader, UnreadablePlanError
from strandline_spark.extraction.writes import readers
from strandline_spark.formats.done import Done
from strandline_spark.formats.files import Files
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Write
from strandline_spark.jvm.client import Jvm
from strandline_spark.model.statement import Dataset, Snapshot
from strandline_spark.plans.tree import Node
from strandline_spark.swallowed import counted, swallowed

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders and people."""
    path = tmp_path_factory.mktemp("unread")
    for name in ("orders", "people"):
        lake.range(3).selectExpr("id", "id * 2 AS twice").write.parquet(f"{path}/{name}")
    return path


def joined(lake: Any, folder: Path) -> Any:
    orders, people = (lake.read.parquet(f"{folder}/{name}") for name in ("orders", "people"))
    return orders.join(people, "id").select(orders.twice, people.id)._jdf.queryExecution()


def test_unreadable_leaf_keeps_the_other_inputs(
    lake: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Files.dataset_of

    def broken(self: Files, mention: Mention, jvm: Jvm) -> Dataset | None:
        found = whole(self, mention, jvm)
        if found is not None and found.name.endswith("/people"):
            raise AttributeError("this Spark has no such method")
        return found

    monkeypatch.setattr(Files, "dataset_of", broken)
    statement = PlanReader(lake).at_start(joined(lake, folder))

    assert input_names(statement) == ["orders"]
    assert [(column.name, column.origins[0].column) for column in statement.columns] == [
        ("twice", "twice")
    ]
    assert statement.unread == ("an input: AttributeError: this Spark has no such method",)


def test_unreadable_snapshot_keeps_the_dataset(
    lake: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Files, mention: Mention, jvm: Jvm) -> Snapshot | None:
        raise LookupError("gone")

    monkeypatch.setattr(Files, "snapshot_at_start", broken)
    statement = PlanReader(lake).at_start(joined(lake, folder))

    assert input_names(statement) == ["orders", "people"]
    assert statement.unread == tuple(
        f"the snapshot of {folder}/{name}: LookupError: gone" for name in input_names(statement)
    )


def test_unreadable_output_keeps_the_inputs(
    lake: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(plan: Any, root: Node, jvm: Jvm) -> list[Write]:
        raise AttributeError("this Spark has no such method")

    monkeypatch.setitem(readers(), "InsertIntoDataSourceDirCommand", broken)
    plan = writing_plan(lake, folder)
    reader = PlanReader(lake)
    began, ended = reader.at_start(plan), reader.at_end(plan)

    for statement in (began, ended):
        assert (input_names(statement), statement.outputs, statement.output_unread) == (
            ["orders"],
            (),
            True,
        )
        assert statement.unread == (
            "an output of InsertIntoDataSourceDirCommand: AttributeError: this Spark has no such method",
        )


def test_output_with_an_unreadable_snapshot_is_reported_without_it(
    lake: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Files, mention: Mention, done: Done, jvm: Jvm) -> Snapshot | None:
        raise LookupError("gone")

    monkeypatch.setattr(Files, "written", broken)
    statement = PlanReader(lake).at_end(writing_plan(lake, folder))

    assert input_names(statement) == ["orders"]
    assert [output.dataset.name for output in statement.outputs] == [f"{folder}/copy"]
    assert statement.unread == (f"the snapshot of {folder}/copy: LookupError: gone",)


def writing_plan(lake: Any, folder: Path) -> Any:
    """Return the plan of a write of files, which is not run."""
    sql = f"INSERT OVERWRITE DIRECTORY '{folder}/copy' USING parquet SELECT id FROM parquet.`{folder}/orders`"
    return analysed(lake, sql)


def test_lost_jvm_raises_instead_of_marking_the_plan_unreadable(
    lake: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Files, mention: Mention, jvm: Jvm) -> Snapshot | None:
        raise Py4JNetworkError("no answer")

    monkeypatch.setattr(Files, "snapshot_at_start", gone)

    with pytest.raises(UnreadablePlanError, match="no answer"):
        PlanReader(lake).at_start(joined(lake, folder))


def test_each_kind_of_failure_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    missing = f"something {uuid4()}"
    with caplog.at_level(logging.INFO, "strandline"):
        texts = [swallowed(missing, ValueError(text)) for text in ("first\nand more", "second")]

    assert texts == ["ValueError: first", "ValueError: second"]
    assert counted()[f"{missing} (ValueError)"] == 2
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        f"strandline: {missing}: ValueError: first. The job is not affected; further errors of this kind are counted "
        "in the run facet strandline_emitter, and logged with their traceback at DEBUG (logger strandline)"
    )
