"""Exactly the dropped tables are shown as dropped."""

from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.cli import main
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import datasets_page
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.questions.impact import Removal, impact_of
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import dataset, run
from worlds.scenarios.taking import fill, reader, view

NOW = view("2026-11-20T13:00:00Z")
DROPPED = {"t.gone": "2026-11-20T12:00:11Z"}


def drops(name: str) -> dict[str, Any]:
    """A dataset that the statement drops."""
    return dataset(name, lifecycleStateChange=FACET | {"lifecycleStateChange": "DROP"})


def lives(engine: Engine) -> None:
    """One source and the ends that tables made from it come to."""
    names = ["gone", "again", "failed", "under_way", "kept"]
    fill(
        engine,
        [
            *(run("COMPLETE", 1, f"load_{name}", ["src"], [f"t.{name}"]) for name in names),
            *(run("START", 10, f"drop_{name}", [], [drops(f"t.{name}")]) for name in names[:4]),
            run("COMPLETE", 11, "drop_gone", [], [drops("t.gone")]),
            run("COMPLETE", 11, "drop_again", [], [drops("t.again")]),
            run("FAIL", 11, "drop_failed", [], [drops("t.failed")]),
            run("COMPLETE", 20, "load_again", ["src"], ["t.again"], run_id="2"),
            run("COMPLETE", 21, "reads", ["t.again", "t.kept"], ["t.out"]),
        ],
    )


def test_dropped_table_is_marked_in_lists_lineage_and_impact(engine: Engine) -> None:
    lives(engine)

    with reader(engine) as connection:
        src = node_called(connection, "dataset:db:src")
        listed = datasets_page(connection, Filter(), NOW.at, 100, None)["items"]
        walked = lineage_of(connection, Question(src, NOW))["nodes"]
        before = lineage_of(connection, Question(src, view("2026-11-20T12:00:10.5Z")))["nodes"]
        broken = impact_of(connection, Removal(src, None, NOW, None, 100))["items"]

    for found in (listed, walked, broken):
        assert {one["name"]: one["droppedAt"] for one in found if "droppedAt" in one} == DROPPED
    assert [one for one in before if "droppedAt" in one] == []


def test_later_write_does_not_undo_a_drop_in_the_past(engine: Engine) -> None:
    lives(engine)
    between = view("2026-11-20T12:00:15Z", past=True)

    with reader(engine) as connection:
        src = node_called(connection, "dataset:db:src")
        walked = lineage_of(connection, Question(src, between))["nodes"]
        broken = impact_of(connection, Removal(src, None, between, None, 100))["items"]

    for found in (walked, broken):
        assert {one["name"] for one in found if "droppedAt" in one} == {"t.gone", "t.again"}


def test_command_shows_dropped_tables(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    lives(engine)
    url = {"STRANDLINE_DATABASE_URL": engine.url.render_as_string(hide_password=False)}

    assert main(["lineage", "t.gone"], url) == 0
    assert "\nt.gone  (dropped 2026-11-20 12:00:11)\n" in capsys.readouterr().out
    assert main(["datasets"], url) == 0
    states = {
        line.split()[0]: line.split()[2]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("t.")
    }

    del states["t.under_way"]  # lost by now
    # A DROP that failed is no write: the state is that of the write before it.
    assert states == {
        "t.again": "COMPLETE", "t.failed": "COMPLETE", "t.gone": "DROPPED", "t.kept": "COMPLETE", "t.out": "COMPLETE",
    }  # fmt: skip
