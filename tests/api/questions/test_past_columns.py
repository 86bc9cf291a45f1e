"""Columns of a past moment: later columns are unknown, removed ones are known."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.errors import NotFoundError
from strandline.store.lineage import column_lineage
from strandline.store.questions import past_schemas
from strandline.store.questions.lineage_answers import ANSWERS
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import columns, dataset, run
from worlds.scenarios.taking import fill, reader, view

MOMENT = "2026-11-20T12:00:{:02}Z"


def orders(*names: str) -> dict[str, Any]:
    return dataset(
        "orders", schema=FACET | {"fields": [{"name": name, "type": "int"} for name in names]}
    )


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """Orders -> totals: at 10 with the columns id, old, unused; at 20 with id, late, idle."""
    fill(engine, [
        run("COMPLETE", 10, "load", [], [orders("id", "old", "unused")]),
        run("COMPLETE", 11, "sum", ["orders"], [columns("totals", id=("orders", "id"), old=("orders", "old"))]),
        run("COMPLETE", 20, "load", [], [orders("id", "late", "idle")], run_id="2"),
        run("COMPLETE", 21, "sum", ["orders"], [columns("totals", id=("orders", "id"), late=("orders", "late"))], run_id="2"),
    ])  # fmt: skip
    return engine


def asked(engine: Engine, path: str, second: int | None, **given: Any) -> Mapping[str, Any]:
    parameters = {"node": "orders", "granularity": "column"} | given
    with reader(engine) as connection:
        moment = MOMENT.format(59 if second is None else second)
        return ANSWERS[path](connection, parameters, view(moment, past=second is not None))


@pytest.mark.parametrize("path", ["/lineage", "/impact"])
@pytest.mark.parametrize("column", ["late", "idle", "idle.inside", "nonsense"])
def test_later_column_is_unknown_at_an_earlier_moment(
    filled: Engine, path: str, column: str
) -> None:
    with pytest.raises(NotFoundError) as error:
        asked(filled, path, 15, column=column)

    assert (
        str(error.value)
        == f"unknown column of dataset:db:orders at 2026-11-20T12:00:15Z: {column!r}"
    )
    assert set(error.value.candidates) <= {"id", "old", "unused"}


@pytest.mark.parametrize("path", ["/lineage", "/impact"])
@pytest.mark.parametrize(("column", "below"), [("old", 1), ("unused", 0)])
def test_removed_column_is_known_at_an_earlier_moment(
    filled: Engine, path: str, column: str, below: int
) -> None:
    then = asked(filled, path, 15, column=column)

    found = (
        then["edges"]
        if path == "/lineage"
        else [one for one in then["items"] if one["type"] == "column"]
    )
    assert len(found) == below


@pytest.mark.parametrize("path", ["/lineage", "/impact"])
def test_removed_column_is_known_as_long_as_an_edge_of_a_recent_run_names_it(
    filled: Engine, path: str
) -> None:
    assert asked(filled, path, None, column="old")["complete"]
    with pytest.raises(NotFoundError, match=r"^unknown column of dataset:db:orders: 'unused'$"):
        asked(filled, path, None, column="unused")


def test_past_columns_are_those_that_existed_then(filled: Engine) -> None:
    def starts(second: int | None) -> list[str]:
        return [
            one["column"]
            for one in asked(filled, "/lineage", second)["nodes"]
            if one["distance"] == 0
        ]

    assert starts(15) == ["id", "old"]  # nothing tells a column without edges that is gone
    assert starts(25) == ["id", "idle", "late", "old"]  # which an earlier run read
    assert starts(None) == ["id", "idle", "late", "old"]


def test_single_column_query_reads_more_events_than_a_query_for_all(
    filled: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_schemas, "MOST_READ_FOR_ALL", 1)  # which is of the other job

    shown = asked(filled, "/lineage", 15)["nodes"]

    assert {"idle", "late"} <= {one["column"] for one in shown if one["distance"] == 0}
    with pytest.raises(NotFoundError):
        asked(filled, "/lineage", 15, column="idle")


def test_past_columns_of_many_jobs_are_read_in_batches(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_lineage, "JOBS_AT_ONCE", 2)
    names = [f"c{n}" for n in range(5)]
    fill(engine, [run("COMPLETE", 10, "load", [], [orders(*names)])])
    fill(
        engine,
        [
            run("COMPLETE", 11, f"of {one}", ["orders"], [columns(one, id=("orders", one))])
            for one in names
        ],
    )
    fill(engine, [run("COMPLETE", 20, "load", [], [orders("id")], run_id="2")])

    found = asked(engine, "/lineage", 15)["nodes"]

    assert [one["column"] for one in found if one["distance"] == 0] == names


def test_past_columns_stay_undecided_beyond_the_read_limit(
    filled: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_schemas, "MOST_LATER", 1)

    assert asked(filled, "/lineage", 15, column="idle")["edges"] == []
    with pytest.raises(NotFoundError, match=r"^unknown column of dataset:db:orders: 'nonsense'$"):
        asked(filled, "/lineage", 15, column="nonsense")
