"""Bounds of the graph in memory, and queries left to the database."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from strandline.core.access.granted import Access
from strandline.core.changes.extraction import SOURCE
from strandline.runtime import lineage_graph
from strandline.runtime.lineage_graph import LineageGraph
from strandline.store.graph import news
from strandline.store.ingest.name_patterns import apply_alias
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_lineage import Question
from strandline.store.schema.graph_tables import graph_news
from strandline.store.sql.engine import reading
from strandline.store.sql.narrowed import narrowed
from worlds.scenarios.bank import bank
from worlds.scenarios.kept_graph import MOMENT, PLENTY, answered, different, follow, nodes, reached
from worlds.scenarios.plain import run
from worlds.scenarios.taking import fill, view

DAY = 86_400_000_000


def writer(engine: Engine, records: Sequence[Record]) -> Caches:
    """The caches of a writer who has stored these, and needs no lock for that any more."""
    caches = Caches()
    with engine.begin() as connection:
        take(connection, records, caches)
    caches.commit()
    return caches


@pytest.mark.postgres
def test_transaction_committed_out_of_order_is_not_missed(
    postgres_engine: Engine, graph: LineageGraph
) -> None:
    follow(postgres_engine)
    before = [
        run("COMPLETE", 1, "load", ["a"], ["b"]),
        run("COMPLETE", 1, "clean", ["d"], ["e", "c"]),
    ]
    one, other = (writer(postgres_engine, before) for _ in range(2))
    assert different(postgres_engine, graph) == ""

    with postgres_engine.begin() as slow:
        take(slow, [run("COMPLETE", 2, "load", ["a"], ["c"], run_id="2")], one)
        with postgres_engine.begin() as fast:
            take(fast, [run("COMPLETE", 3, "clean", ["d"], ["e"], run_id="2")], other)
        assert different(postgres_engine, graph) == ""

    assert different(postgres_engine, graph) == ""
    assert b'"dataset:db:c"' in answered(postgres_engine, graph, "a")


@pytest.mark.postgres
def test_following_by_the_greatest_number_misses_it(
    postgres_engine: Engine, graph: LineageGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the transaction that commits late is missed."""
    greatest = news._LOOK["postgresql"].replace("pg_snapshot_xmin", "pg_snapshot_xmax")
    monkeypatch.setitem(news._LOOK, "postgresql", greatest)
    news._statement.cache_clear()
    with pytest.raises(AssertionError):
        test_transaction_committed_out_of_order_is_not_missed(postgres_engine, graph)
    news._statement.cache_clear()


@pytest.mark.parametrize("what", ["load_jobs", "load_datasets"])
def test_entry_read_before_a_change_is_not_kept(
    followed: Engine, graph: LineageGraph, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event arrives while one query reads; another sees it before the first caches."""
    fill(
        followed,
        [run("COMPLETE", 1, "load", ["a"], ["b"]), run("COMPLETE", 1, "odd", ["x"], ["y"])],
    )
    answered(followed, graph, "x")
    load = getattr(lineage_graph, what)

    def overtaken(*given: Any) -> Any:
        found = load(*given)
        monkeypatch.setattr(lineage_graph, what, load)
        fill(
            followed,
            [
                run("COMPLETE", 2, "load", ["a"], ["b", "c"]),
                run("COMPLETE", 2, "other", ["a"], ["d"]),
            ],
        )
        answered(followed, graph, "x")
        return found

    monkeypatch.setattr(lineage_graph, what, overtaken)
    answered(followed, graph, "a")

    assert b'"dataset:db:c"' in answered(followed, graph, "a")
    assert different(followed, graph) == ""


FIND = "leads_of"


@pytest.mark.parametrize(
    "event",
    [run("COMPLETE", 2, "load", [], ["c"]), run("COMPLETE", 2, "other", ["z"], ["c"])],
    ids=["its job writes more", "another job reads it by another name"],
)
def test_resolved_name_read_before_a_change_is_not_kept(
    followed: Engine, graph: LineageGraph, event: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event arrives while one query resolves a table, and another query sees it."""
    fill(
        followed, [run("COMPLETE", 1, "load", ["a"], ["b"]), run("COMPLETE", 1, "write", [], ["z"])]
    )
    with followed.begin() as connection:
        apply_alias(connection, ("db", "z"), ("db", "a"))
    find = getattr(lineage_graph, FIND)

    def overtaken(*given: Any) -> Any:
        found = find(*given)
        if given[1] == SOURCE:
            monkeypatch.setattr(lineage_graph, FIND, find)
            fill(followed, [event])
            with graph.elsewhere():
                reached(followed, graph, "b")
        return found

    monkeypatch.setattr(lineage_graph, FIND, overtaken)
    reached(followed, graph, "a")

    assert b'"dataset:db:c"' in reached(followed, graph, "a")
    assert different(followed, graph) == ""


def test_silence_makes_runs_lost_without_a_change_event(
    followed: Engine, graph: LineageGraph
) -> None:
    fill(followed, [run("START", 1, "load", ["a"], ["b"])])
    soon = view("2026-11-20T12:00:10Z").at

    assert [different(followed, graph, at) for at in (soon, soon + 2 * DAY, soon)] == ["", "", ""]
    assert b'"state":"LOST"' in answered(followed, graph, "a", soon + 2 * DAY)
    assert b'"running":true' in answered(followed, graph, "a", soon)


def test_memory_stays_within_its_bound(followed: Engine) -> None:
    graph, sizes = LineageGraph(30_000), []
    fill(followed, bank())
    for _ in range(2):
        with reading(followed).connect() as connection:
            for node in nodes(connection):
                graph.answer(connection, Question(node, View(MOMENT)))
                graph.reach(connection, Question(node, View(MOMENT)))
                sizes.append(graph.size)

    assert 0 < max(sizes) <= 30_000
    assert graph.counts.dropped == 0 < graph.counts.loaded
    assert different(followed, graph) == ""


def test_reader_that_missed_pruned_changes_starts_empty(
    followed: Engine, graph: LineageGraph
) -> None:
    fill(followed, [run("COMPLETE", 1, "load", ["a"], ["b"])])
    assert different(followed, graph) == ""
    fill(followed, [run("COMPLETE", 2, "load", ["a"], ["c"], run_id="2")])
    with followed.begin() as connection:
        connection.execute(graph_news.update().values(at=0))
        news.prune(connection)
        assert connection.scalar(select(func.count()).select_from(graph_news)) == 0

    assert different(followed, graph) == ""
    assert b'"dataset:db:c"' in answered(followed, graph, "a")


def test_changes_are_recorded_only_for_a_following_reader(engine: Engine) -> None:
    fill(engine, bank())
    for graph in (LineageGraph(0), LineageGraph(PLENTY)):
        with reading(engine).connect() as connection:
            assert graph.answer(connection, Question(nodes(connection)[0], View(MOMENT))) is None
            assert connection.scalar(select(func.count()).select_from(graph_news)) == 0
        assert graph.size == 0

    follow(engine)
    with reading(engine).connect() as connection:
        asked = Question(nodes(connection)[0], View(MOMENT))
        assert (
            LineageGraph(0).answer(connection, asked)
            is LineageGraph(0).reach(connection, asked)
            is None
        )
        assert LineageGraph(PLENTY).answer(connection, asked) is not None


def test_past_running_and_narrowed_queries_go_to_the_database(
    followed: Engine, graph: LineageGraph
) -> None:
    fill(followed, bank())
    some = Access("key", frozenset({"read"}), ("file",))
    with (
        reading(followed).connect() as connection,
        reading(narrowed(followed, some)).connect() as of_key,
    ):
        node = nodes(connection)[0]
        views = [View(MOMENT, live=True), View(MOMENT, past=True), View(MOMENT, newest=True)]

        assert [graph.answer(connection, Question(node, one)) for one in views] == [None] * 3
        assert graph.answer(connection, Question(node, views[0], collapse="root")) is None
        assert graph.answer(of_key, Question(node, View(MOMENT))) is None
