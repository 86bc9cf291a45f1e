"""Collapsing jobs into their parents: statements, application, Airflow task, DAG."""

from typing import Any

from sqlalchemy import Engine

from strandline.core.walk import Direction
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import parent, run
from worlds.scenarios.taking import arrows, fill, ids, lineage, reader, view

NOW = view("2026-11-20T13:00:00Z")


def shown(engine: Engine, node: str, collapse: str) -> dict[str, Any]:
    with reader(engine) as connection:
        question = Question(
            node_called(connection, node), NOW, Direction.UPSTREAM, collapse=collapse
        )
        return lineage_of(connection, question)


def airflow(engine: Engine) -> None:
    """A DAG of two tasks; the second submits a Spark application of two statements, which knows of its task alone."""
    fill(
        engine,
        [
            run("START", 0, "dag"),
            run("COMPLETE", 1, "dag.extract", ["a"], ["b"], of_run=parent("dag")),
            run("START", 2, "dag.spark", of_run=parent("dag")),
            run("START", 3, "app", of_run=parent("dag.spark")),
            run("COMPLETE", 4, "app.insert_c", ["b"], ["c"], of_run=parent("app")),
            run("COMPLETE", 5, "app.insert_d", ["c"], ["d"], of_run=parent("app")),
            run("COMPLETE", 6, "app", of_run=parent("dag.spark")),
            run("COMPLETE", 7, "dag.spark", of_run=parent("dag")),
        ],
    )


def test_statements_collapse_into_their_application(engine: Engine) -> None:
    airflow(engine)

    assert arrows(shown(engine, "d", "parent")) == [
        "job:ns:dag -> dataset:db:b",
        "job:ns:app -> dataset:db:c",
        "job:ns:app -> dataset:db:d",
        "dataset:db:b -> job:ns:app",
        "dataset:db:c -> job:ns:app",
        "dataset:db:a -> job:ns:dag",
    ]


def test_everything_collapses_into_the_top_dag(engine: Engine) -> None:
    airflow(engine)

    answer = shown(engine, "d", "root")

    assert ids(answer) == [
        "dataset:db:d",
        "dataset:db:c",
        "job:ns:dag",
        "dataset:db:b",
        "dataset:db:a",
    ]
    assert "job:ns:dag -> dataset:db:d" in arrows(answer)


def test_collapsed_job_shows_its_own_run(engine: Engine) -> None:
    airflow(engine)

    (dag,) = (node for node in shown(engine, "d", "root")["nodes"] if node["type"] == "job")

    assert (dag["runId"], dag["state"], dag["startedAt"], dag["endedAt"]) == (
        "dag-1",
        "START",
        "2026-11-20T12:00:00Z",
        None,
    )


def test_root_run_named_by_a_run_is_used(engine: Engine) -> None:
    above = parent("task")["parent"] | {
        "root": {"run": {"runId": "top-1"}, "job": {"namespace": "ns", "name": "top"}, **FACET}
    }
    fill(engine, [run("COMPLETE", 1, "task.statement", ["a"], ["b"], of_run={"parent": above})])

    assert ids(shown(engine, "b", "root")) == ["dataset:db:b", "dataset:db:a", "job:ns:top"]
    assert ids(shown(engine, "b", "parent")) == ["dataset:db:b", "dataset:db:a", "job:ns:task"]


def test_cyclic_parents_terminate(engine: Engine) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "one", ["a"], ["b"], of_run=parent("two")),
            run("COMPLETE", 1, "two", ["b"], ["c"], of_run=parent("one")),
        ],
    )

    assert len(shown(engine, "c", "root")["edges"]) >= 2


def test_job_without_a_parent_is_not_collapsed(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "alone", ["a"], ["b"])])

    assert shown(engine, "b", "root") == shown(engine, "b", "none")


def test_task_stands_for_all_its_runs_below_the_latest_run_of_its_dag(engine: Engine) -> None:
    fill(engine, [run("START", 0, "dag")])
    for number in range(15):
        task: dict[str, Any] = {"run_id": str(number), "of_run": parent("dag")}
        below: dict[str, Any] = {"of_run": parent("dag.task", str(number))}
        fill(
            engine,
            [
                run("COMPLETE", 1 + number, "dag.task", **task),
                run("COMPLETE", 2 + number, f"write{number}", ["raw"], [f"out{number}"], **below),
            ],
        )

    answer = lineage(engine, "job:ns:dag.task", direction=Direction.DOWNSTREAM)

    names = {node["name"] for node in answer["nodes"]}
    assert {f"out{number}" for number in range(15)} <= names
    assert answer["complete"]


def test_dag_that_is_only_named_as_a_parent_stands_for_what_ran_below_it(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "task", ["a"], ["b"], of_run=parent("dag"))])

    assert arrows(lineage(engine, "job:ns:dag")) == [
        "job:ns:dag -> dataset:db:b",
        "dataset:db:a -> job:ns:dag",
    ]
