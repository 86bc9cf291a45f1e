"""Every question about random graphs has the answer that a slow, obvious oracle gives, on both databases."""

import random
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.narrowing import narrowed
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.questions.differences import Span, differences
from strandline.store.questions.lineage_answers import ANSWERS
from worlds.scenarios.plain import run
from worlds.scenarios.random_graph import Job, Triple, random_jobs, reached, turned, ways_on
from worlds.scenarios.taking import fill, ids, reader, view

NOW = view("2026-11-20T13:00:00Z")
TABLES, JOBS = 12, 14
Answer = dict[str, Any]


@pytest.fixture(params=range(2))
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def jobs(seed: int, engine: Engine) -> list[Job]:
    found = random_jobs(random.Random(seed), TABLES, JOBS)
    fill(engine, [job.event() for job in found])
    return found


def asked(engine: Engine, path: str, how: View = NOW, **given: Any) -> Answer:
    with reader(engine) as connection:
        return ANSWERS[path](connection, given, how)


def way(engine: Engine, first: str, last: str) -> Answer:
    with reader(engine) as connection:
        return ANSWERS["/lineage/paths"](connection, {"from": first, "to": last}, NOW)


def triples_of(jobs: list[Job]) -> set[Triple]:
    return {triple for job in jobs for triple in job.triples()}


def tables_of(jobs: list[Job]) -> list[str]:
    return sorted({name for job in jobs for name in (*job.reads, *job.writes)})


def named(answer: Answer) -> set[str]:
    """The datasets of an answer by their short names."""
    return {node["name"] for node in answer["nodes"] if node["type"] == "dataset"}


def test_several_starts_reach_the_union_of_what_each_reaches(
    engine: Engine, jobs: list[Job]
) -> None:
    onwards, tables = ways_on(triples_of(jobs)), tables_of(jobs)
    writer = next(job for job in jobs if job.writes)

    found = asked(
        engine,
        "/lineage",
        node=[tables[0], tables[1], f"job:ns:{writer.name}"],
        direction="downstream",
    )

    assert named(found) == set(reached(onwards, [tables[0], tables[1], *writer.writes]))


def test_nodes_beyond_the_depth_are_counted(engine: Engine, jobs: list[Job]) -> None:
    triples, tables = triples_of(jobs), tables_of(jobs)
    for start in tables:
        distances = reached(ways_on(triples), [start])
        near = {name for name, distance in distances.items() if distance <= 1}
        on = {triple for triple in triples if triple[0] in near}
        within = {triple for triple in triples if triple[0] == start}
        shown = near | {job for _, job, _ in within}
        beyond = {
            node for _, job, sink in on - within for node in (job, sink) if node is not None
        } - shown

        found = asked(engine, "/lineage", node=start, direction="downstream", depth=1)

        assert found["hidden"]["nodes"] == len(beyond)
        assert found["complete"] == (not beyond)


def test_hidden_nodes_are_bridged_without_joining_unconnected_nodes(
    engine: Engine, jobs: list[Job], seed: int
) -> None:
    """Two shown nodes are joined if a chain of triples connects them through hidden nodes only."""
    chance, triples = random.Random(seed), triples_of(jobs)
    whole = asked(engine, "/lineage", node=tables_of(jobs), direction="downstream")
    kept = {node["id"] for node in whole["nodes"] if chance.random() < 0.5}

    found = narrowed(whole, lambda node: node["id"] in kept)

    assert {(edge["source"], edge["target"]) for edge in found["edges"]} == bridges(triples, kept)
    assert found["hidden"]["filtered"] == len(whole["nodes"]) - len(kept)


def bridges(triples: set[Triple], kept: set[str]) -> set[tuple[str, str]]:
    """By brute force: the longest chains that hidden nodes allow, from each shown node."""
    links = {
        (
            f"dataset:db:{source}" if source else None,
            f"job:ns:{job}",
            f"dataset:db:{sink}" if sink else None,
        )
        for source, job, sink in triples
    }
    found: set[tuple[str, str]] = set()
    for start in kept:
        if start.startswith("job:"):
            found |= {(start, sink) for _, job, sink in links if job == start and sink in kept}
            hidden = {sink for _, job, sink in links if job == start and sink is not None} - kept
        else:
            hidden = {start}
        done: set[str] = set()
        while hidden - done:
            dataset = (hidden - done).pop()
            done.add(dataset)
            for source, job, sink in links:
                if source == dataset and job in kept:
                    found.add((start, job))
                elif source == dataset and sink is not None:
                    found |= {(start, sink)} if sink in kept else set()
                    hidden |= set() if sink in kept else {sink}
    return found


def test_paths_contain_exactly_the_nodes_between_both_ends(engine: Engine, jobs: list[Job]) -> None:
    onwards, tables = ways_on(triples_of(jobs)), tables_of(jobs)
    back = turned(onwards)
    for first in tables[:4]:
        for last in tables[-4:]:
            if first == last:
                continue
            distances = reached(onwards, [first])
            between = (
                set(distances) & set(reached(back, [last])) if last in distances else {first, last}
            )

            found = way(engine, first, last)

            assert named(found) == between
            assert len(found["shortest"]) == (2 * distances[last] + 1 if last in distances else 0)


def test_paths_between_columns_exist_exactly_where_columns_connect(
    engine: Engine, jobs: list[Job]
) -> None:
    """A whole table stands for all its columns, also at either end."""
    tables = tables_of(jobs)
    for first, last in zip(tables[:6], reversed(tables), strict=False):
        reached_from = columns_reached(jobs, (first, "x"), STRENGTH)
        joined = any(
            name == last and column in ("", "y") for name, column in reached_from - {(first, "x")}
        )
        given = {"from": first, "fromColumn": "x", "to": last, "toColumn": "y"}
        with reader(engine) as connection:
            found = ANSWERS["/lineage/paths"](connection, given, NOW)

        assert bool(found["shortest"]) == joined, (first, last)


@pytest.mark.slow
def test_paths_between_jobs_begin_and_end_with_those_jobs(engine: Engine, jobs: list[Job]) -> None:
    onwards = ways_on(triples_of(jobs))
    for one in jobs:
        for other in jobs:
            joined = set(reached(onwards, one.writes)) & set(other.reads)
            if one.name != other.name and one.writes:
                found = way(engine, f"job:ns:{one.name}", f"job:ns:{other.name}")

                assert bool(found["shortest"]) == bool(joined)
                if joined:
                    assert (found["shortest"][0], found["shortest"][-1]) == (
                        f"job:ns:{one.name}",
                        f"job:ns:{other.name}",
                    )


def test_impact_of_a_table_is_every_derived_table_and_every_reading_job(
    engine: Engine, jobs: list[Job]
) -> None:
    triples = triples_of(jobs)
    for start in tables_of(jobs):
        datasets = set(reached(ways_on(triples), [start]))
        touching = {job for source, job, _ in triples if source in datasets}

        found = asked(engine, "/impact", node=start)

        assert {one["name"] for one in found["items"] if one["type"] == "dataset"} == datasets - {
            start
        }
        assert {one["name"] for one in found["items"] if one["type"] == "job"} == touching
        assert found["complete"]


STRENGTH = ("direct", "indirect", "opaque")


def test_impact_of_a_column_says_how_each_column_depends_on_it(
    engine: Engine, jobs: list[Job]
) -> None:
    """The best path counts, and its weakest edge; a whole dataset stands for all its columns."""
    for start in tables_of(jobs)[:6]:
        best: dict[tuple[str, str], str] = {}
        for place in range(len(STRENGTH)):
            for node in columns_reached(jobs, (start, "x"), STRENGTH[: place + 1]):
                best.setdefault(node, STRENGTH[place])
        best.pop((start, "x"), None)

        found = asked(engine, "/impact", node=start, column="x")

        columns = {
            (one["name"], one["column"]): one["dependency"]
            for one in found["items"]
            if one["type"] == "column"
        }
        assert columns == {node: how for node, how in best.items() if node[1]}
        tables = {name for name, _ in best} - {start}
        assert {one["name"] for one in found["items"] if one["type"] == "dataset"} == tables
        only_read = {
            job.name for job in jobs if not job.writes and {start, *tables} & set(job.reads)
        }
        assert only_read <= {one["name"] for one in found["items"] if one["type"] == "job"}


def columns_reached(
    jobs: list[Job], start: tuple[str, str], kinds: tuple[str, ...]
) -> set[tuple[str, str]]:
    """All columns that can be reached by edges of these kinds."""
    edges = [edge for job in jobs for edge in job.column_edges() if edge[3] in kinds]
    found, grown = {start}, True
    while grown:
        more = {
            target
            for source, _, target, _ in edges
            for name, column in found
            if name == source[0] and (not column or not source[1] or column == source[1])
        }
        grown, found = not more <= found, found | more
    return found


def test_changes_equal_the_difference_of_two_graphs(
    engine: Engine, jobs: list[Job], seed: int
) -> None:
    """Of each job the latest run that touched anything counts here.

    Some run again with other datasets.
    """
    chance = random.Random(seed + 100)
    others = [one for one in random_jobs(chance, TABLES, JOBS) if one.reads or one.writes]
    later = [
        replace(one, name=job.name, second=1_000)
        for job, one in zip(jobs[:5], others, strict=False)
    ]
    fill(
        engine,
        [run("COMPLETE", one.second, one.name, one.reads, one.writes, run_id="2") for one in later],
    )
    after = {job.name: job for job in jobs} | {one.name: replace(one, stated={}) for one in later}
    noon = view("2026-11-20T12:10:00Z", past=True, runs=0)

    with reader(engine) as connection:
        every = [node_called(connection, name).id for name in tables_of([*jobs, *later])]
        found = differences(connection, Span((), tuple(every), noon, replace(NOW, runs=0)))

    old, new = edges_of(jobs), edges_of(list(after.values()))
    lines = {
        (one["change"], one["source"], one["target"])
        for one in found["items"]
        if one["kind"] == "edge"
    }
    gone, came = (
        {(change, *edge) for edge in edges}
        for change, edges in (("removed", old - new), ("added", new - old))
    )
    assert lines == gone | came


def edges_of(jobs: list[Job]) -> set[tuple[str, str]]:
    reads = {(f"dataset:db:{name}", f"job:ns:{job.name}") for job in jobs for name in job.reads}
    return reads | {
        (f"job:ns:{job.name}", f"dataset:db:{name}") for job in jobs for name in job.writes
    }


def test_edges_of_runs_that_are_no_longer_recent_are_counted(engine: Engine) -> None:
    """The job read two other tables before its last runs.

    Another job has stopped to write this one.
    """
    fill(engine, [run("COMPLETE", at, "j", [f"old{at}"], ["t"], run_id=str(at)) for at in range(2)])
    fill(engine, [run("COMPLETE", 10, "j", ["a"], ["t"], run_id="new")])
    fill(
        engine,
        [
            run("COMPLETE", 1, "k", ["b"], ["t"]),
            run("COMPLETE", 11, "k", ["b"], ["u"], run_id="new"),
        ],
    )
    only_newest = replace(NOW, runs=0)

    found = asked(engine, "/lineage", only_newest, node="t", direction="upstream")
    then = asked(
        engine, "/lineage", replace(only_newest, past=True), node="t", direction="upstream"
    )

    assert ids(found) == ["dataset:db:t", "dataset:db:a", "job:ns:j"]
    assert found["hidden"] == {"nodes": 0, "edges": 3}
    assert then["hidden"] == found["hidden"]
    assert asked(engine, "/lineage", node="t", direction="upstream")["hidden"] == {
        "nodes": 0,
        "edges": 0,
    }
