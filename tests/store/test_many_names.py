"""A job's edges are the same from every node, also with renamed runs."""

import random
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.sqlite_first import database_url, own_database_url  # noqa: F401 - PostgreSQL is slow here
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from worlds.builders import dataset, event, rows, run_id, store
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import parent, run
from worlds.scenarios.taking import NOW, arrows, fill, lineage, reader, view

PAST = view("2026-11-20T13:00:00Z", past=True)
NEWEST = [replace(NOW, newest=True), replace(PAST, newest=True)]
STREAMING = {
    "jobType": FACET | {"processingType": "STREAMING", "integration": "SPARK", "jobType": "SQL_JOB"}
}


def columns_asked(engine: Engine, node: str, seen: View) -> list[dict[str, Any]]:
    with reader(engine) as connection:
        edges: list[dict[str, Any]] = column_lineage_of(
            connection, Question(node_called(connection, node), seen)
        )["edges"]
        return edges


@pytest.mark.parametrize("seen", [NOW, PAST])
def test_run_reported_under_its_first_name_is_found_from_every_node(
    engine: Engine, seen: View
) -> None:
    """In stock Spark, START has the datasets; COMPLETE has another name and no datasets."""
    a, x = dataset("a"), dataset("x")
    store(
        engine,
        [
            event("START", 1, "insert", 0, inputs=[a], outputs=[x]),
            event("COMPLETE", 1, "insert.x", 1),
        ],
    )

    for node in ("a", "x", "job:tests:insert", "job:tests:insert.x"):
        assert arrows(lineage(engine, node, seen)) == [
            "job:tests:insert.x -> dataset:hive://lake:x",
            "dataset:hive://lake:a -> job:tests:insert.x",
        ]
        assert len(columns_asked(engine, node, seen)) == 1


@pytest.mark.parametrize("seen", NEWEST)
def test_latest_run_under_another_name_replaces_the_earlier_edges(
    engine: Engine, seen: View
) -> None:
    a, b, x = (dataset(name) for name in "abx")
    store(
        engine,
        [
            event("START", 1, "append", 0, inputs=[a], outputs=[x]),
            event("COMPLETE", 1, "append", 1),
        ],
    )
    store(
        engine,
        [
            event("START", 2, "unknown", 2, inputs=[b], outputs=[x]),
            event("COMPLETE", 2, "append", 3),
        ],
    )

    for node in ("b", "x", "job:tests:append", "job:tests:unknown"):
        assert arrows(lineage(engine, node, seen)) == [
            "job:tests:append -> dataset:hive://lake:x",
            "dataset:hive://lake:b -> job:tests:append",
        ]
    assert arrows(lineage(engine, "a", seen)) == []


@pytest.mark.parametrize("seen", NEWEST)
def test_only_an_applications_latest_run_counts_under_any_batch_name(
    engine: Engine, seen: View
) -> None:
    fill(
        engine,
        [run("START", 0, "app"), run("COMPLETE", 2, "app"), run("START", 10, "app", run_id="2")],
    )
    fill(
        engine,
        [run("COMPLETE", 1, "app.append_x", ["a"], ["x"], of_run=parent("app"), of_job=STREAMING)],
    )
    fill(
        engine,
        [
            run(
                "COMPLETE",
                11,
                "app.append_y",
                ["b"],
                ["y"],
                of_run=parent("app", "2"),
                of_job=STREAMING,
            )
        ],
    )

    for node in ("b", "y", "job:ns:app", "job:ns:app.append_y"):
        assert arrows(lineage(engine, node, seen)) == [
            "job:ns:app -> dataset:db:y",
            "dataset:db:b -> job:ns:app",
        ]
    assert arrows(lineage(engine, "a", seen)) == []
    assert arrows(lineage(engine, "x", seen)) == []


@pytest.mark.parametrize("stories", [6, pytest.param(24, marks=pytest.mark.slow)])
def test_latest_edges_of_a_job_are_the_same_from_every_node(engine: Engine, stories: int) -> None:
    """This includes runs that change their names and micro-batches of an application."""
    chance = random.Random(11)
    for story in range(stories):
        store(engine, [one for number in range(5) for one in _any_run(chance, 10 * story + number)])

    nodes = rows(engine, "SELECT 'dataset:' || namespace || ':' || name FROM datasets")
    jobs = rows(engine, "SELECT 'job:' || namespace || ':' || name FROM jobs")
    edges = {node: set(arrows(lineage(engine, node, depth=1))) for (node,) in nodes + jobs}
    for node, found in edges.items():
        assert found == set(arrows(lineage(engine, node, PAST, depth=1))), node
    for node, found in edges.items():
        if node.startswith("dataset"):
            of_jobs = {
                edge for job, told in edges.items() if job.startswith("job") for edge in told
            }
            assert found <= of_jobs
            assert {
                edge
                for edge in of_jobs
                if edge.startswith(f"{node} ->") or edge.endswith(f"-> {node}")
            } <= found


def _any_run(chance: random.Random, number: int) -> list[Any]:
    """A run of one of a story's two jobs.

    START, and COMPLETE maybe under another name, each with some of its datasets.

    All micro-batches of a job and an application's run are alike.
    """
    story, turn = divmod(number, 10)
    job = f"{story}.{chance.choice(['one', 'two'])}"
    batch, app = story % 3 == 0 or job.endswith("two"), run_id(9000 + 10 * story + turn // 3)
    parent_of = {"run": {"runId": app}, "job": {"namespace": "tests", "name": f"{story}.app"}}
    more: Any = {"facets": {"parent": parent_of}, "job_facets": STREAMING} if batch else {}
    if batch:
        chance = random.Random(f"{job} {app}")
    names = [f"{job}.begun" if chance.random() < 0.5 else job, job]
    events = []
    for seconds, (kind, name) in enumerate(zip(("START", "COMPLETE"), names, strict=True)):
        reads, writes = (
            [dataset(f"{story}.{one}") for one in chance.sample("abc", chance.randrange(3))]
            for _ in "io"
        )
        events.append(
            event(kind, number, name, 10 * turn + seconds, inputs=reads, outputs=writes, **more)
        )
    return events
