"""Packed entries of the graph in memory answer and are dropped as before."""

import gc
import random
import tracemalloc
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from strandline.runtime.graph_shelf import JobsOfRuns
from strandline.runtime.lineage_graph import LineageGraph
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_lineage import Question
from strandline.store.sql.engine import reading
from worlds.scenarios.bank import bank
from worlds.scenarios.kept_graph import MOMENT, PLENTY, answered, different, nodes, story
from worlds.scenarios.plain import run
from worlds.scenarios.taking import fill


def pack(graph: LineageGraph) -> None:
    """Let nothing stay open."""
    for shelf in (graph._jobs, graph._datasets):
        while shelf.open_bytes:
            shelf.pack_oldest()


@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_packed_entries_answer_the_same_after_any_operation(
    followed: Engine, graph: LineageGraph, seed: int
) -> None:
    done = []
    for what in story(followed, random.Random(seed)):
        done.append(what)
        assert different(followed, graph) == "", done
        pack(graph)
        loaded = graph.counts.loaded
        assert different(followed, graph) == "", done
        assert graph.counts.loaded == loaded, "what was packed was read again"
        pack(graph)

    assert graph.counts.answered > 5 * graph.counts.left


def test_changes_reach_packed_entries(followed: Engine, graph: LineageGraph) -> None:
    fill(
        followed,
        [run("COMPLETE", 1, "load", ["a"], ["b"]), run("COMPLETE", 1, "odd", ["x"], ["y"])],
    )
    answered(followed, graph, "a")
    pack(graph)
    fill(followed, [run("COMPLETE", 2, "clean", ["a"], ["c"])])

    assert b'"dataset:db:c"' in answered(followed, graph, "a")
    assert different(followed, graph) == ""


def ask_all(engine: Engine, graph: LineageGraph) -> Iterator[int]:
    """Ask for every node; gives the size after each."""
    with reading(engine).connect() as connection:
        for node in nodes(connection):
            graph.answer(connection, Question(node, View(MOMENT)))
            yield graph.size


def test_entries_are_packed_before_any_is_dropped(followed: Engine, graph: LineageGraph) -> None:
    fill(followed, bank())
    whole = max(ask_all(followed, graph))
    small, smaller = LineageGraph(whole // 2), LineageGraph(whole // 10)

    sizes = [max([*ask_all(followed, one), *ask_all(followed, one)]) for one in (small, smaller)]

    assert sizes[0] <= whole // 2
    assert sizes[1] <= whole // 10
    assert small.counts.loaded == graph.counts.loaded  # each entry once
    assert small.counts.dropped == 0 < smaller.counts.dropped
    assert different(followed, smaller) == ""


def test_size_is_zero_after_dropping_everything(followed: Engine, graph: LineageGraph) -> None:
    fill(followed, bank())
    assert different(followed, graph) == ""
    pack(graph)
    assert different(followed, graph) == ""
    ids = [*graph._jobs._bytes_by_id], [*graph._datasets._bytes_by_id]
    for one in ids[0]:
        graph._drop_job(one)
    for one in ids[1]:
        graph._drop_dataset(one)

    assert (graph.size, len(graph._jobs), len(graph._datasets)) == (0, 0, 0)


def traced() -> int:
    """The bytes that tracemalloc sees, without what only waits to be collected."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
def test_size_estimates_the_memory_of_the_entries(followed: Engine) -> None:
    fill(
        followed,
        [run("COMPLETE", 1, f"job{n}", [f"t{n}", f"t{n + 1}"], [f"u{n}"]) for n in range(300)],
    )
    for _ in ask_all(followed, LineageGraph(PLENTY)):
        pass  # what is made once and stays is there now
    tracemalloc.start()
    try:
        before = traced()
        graph = LineageGraph(PLENTY)
        for _ in ask_all(followed, graph):
            pass
        open_, size = traced() - before, graph.size
        pack(graph)
        packed = traced() - before
    finally:
        tracemalloc.stop()

    assert 0.7 < size / open_ < 1.3
    assert 0.7 < graph.size / packed < 1.3
    assert packed < open_ / 3


def test_several_jobs_can_depend_on_a_run() -> None:
    jobs = JobsOfRuns()
    for job in (1, 2, 3, 2):
        jobs.add(7, job)
    jobs.discard(7, 1)
    jobs.discard(7, 9)
    jobs.discard(8, 1)

    assert jobs.jobs(7) == {2, 3}
    jobs.discard(7, 2)
    jobs.discard(7, 3)
    assert (jobs.jobs(7), jobs.size) == (set(), 0)
