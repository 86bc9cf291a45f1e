"""Unreadable parts of a plan are named in the event and logged once; the rest is reported."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from py4j.protocol import Py4JNetworkError

from fixtures.spark_lake.analysis import analysed, input_names
from strandline_spark.consistency.reading.followed_views import View
from strandline_spark.extraction.reader import PlanReader, UnreadablePlanError
from strandline_spark.extraction.writes import readers
from strandline_spark.formats.contract import Format
from strandline_spark.formats.done import Done
from strandline_spark.formats.files import Files
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.registry import identified
from strandline_spark.formats.writes import Write
from strandline_spark.jvm.client import Jvm
from strandline_spark.model.statement import Dataset, Field, Snapshot
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


def test_table_stays_where_its_view_cannot_be_identified(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("unread_a", "unread_b"):
        lake.sql(f"CREATE TABLE IF NOT EXISTS {name} USING parquet AS SELECT 1 AS id")
    lake.sql(
        "CREATE VIEW IF NOT EXISTS unread_v AS SELECT id FROM unread_a JOIN unread_b USING (id)"
    )

    def broken(mention: Mention, jvm: Jvm) -> tuple[Format, Dataset] | None:
        if mention.provider == "view":
            raise AttributeError("this Spark has no such method")
        return identified(mention, jvm)

    monkeypatch.setattr("strandline_spark.extraction.datasets_of_plan.identified", broken)
    execution = lake.table("unread_v")._jdf.queryExecution()
    statement = PlanReader(lake).at_start(execution)

    assert input_names(statement) == ["unread_a", "unread_b"]
    assert [dataset.through for dataset in statement.inputs] == [(None,), (None,)]
    assert statement.unread == tuple(
        f"{part}: AttributeError: this Spark has no such method"
        for part in ("a view around an input", "an input")
    )


def test_view_in_its_own_querys_place_that_cannot_be_read_keeps_the_table(
    lake: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(struct_type: Any) -> tuple[Field, ...]:
        raise TypeError("no such schema")

    monkeypatch.setattr("strandline_spark.extraction.leaves.fields_of", broken)
    inner = f"SELECT id FROM parquet.`{folder}/orders`"
    view = View(inner, selected=("id",), columns=("id",), name=("spark_catalog", "db", "v"))
    statement = PlanReader(lake).at_start(analysed(lake, f"SELECT id FROM {view.around(inner)}"))

    assert input_names(statement) == ["orders"]
    assert statement.unread == ("the view of a SubqueryAlias: TypeError: no such schema",)


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
