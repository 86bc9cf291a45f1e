"""Applications and DAGs: their children, failures, inputs and outputs."""

import pytest
from sqlalchemy import Engine

from strandline.alerts.conditions import store_troubles
from strandline.store.catalog.details import job_detail, run_detail
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.gauges import run_counts
from strandline.store.catalog.lists import jobs_page
from strandline.store.catalog.runs import runs_page
from strandline.store.lineage.failures import first_line
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from worlds.scenarios.bank import FACET, bank, run_id
from worlds.scenarios.plain import creates, parent, run
from worlds.scenarios.taking import NOW, arrows, fill, ids, lineage, reader, view

ERROR = {
    "errorMessage": FACET
    | {"message": "no such column: x\n  at line 7", "programmingLanguage": "SQL"}
}
STREAM = {
    "jobType": FACET | {"processingType": "STREAMING", "integration": "SPARK", "jobType": "QUERY"}
}
RDD = {"jobType": FACET | {"processingType": "BATCH", "integration": "SPARK", "jobType": "RDD_JOB"}}


def dag(engine: Engine) -> None:
    """A DAG with a task with an application with two statements.

    One fails, the rest is COMPLETE.
    """
    fill(
        engine,
        [
            run("START", 0, "dag"),
            run("START", 1, "dag.task", of_run=parent("dag")),
            run("START", 2, "app", of_run=parent("dag.task")),
            run("COMPLETE", 3, "app.good", ["a"], ["b"], of_run=parent("app")),
            run("FAIL", 4, "app.bad", ["b"], ["c", creates("d")], of_run=parent("app") | ERROR),
            run("COMPLETE", 5, "app", of_run=parent("dag.task")),
            run("COMPLETE", 6, "dag.task", of_run=parent("dag")),
            run("COMPLETE", 7, "dag"),
        ],
    )


PYTHON = "***: An error occurred while calling o602.sql."
JAVA = (
    ": org.apache.iceberg.exceptions.NoSuchNamespaceException: Namespace does not exist: lake.shop"
)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"{PYTHON}\n{JAVA}\nmore", JAVA[2:]),
        (f"Py4JJavaError: {PYTHON[5:]}\n{JAVA}", JAVA[2:]),
        ("An error occurred while calling o1.x. Trace:\npy4j.Py4JException: Method x([]) does not exist", "py4j.Py4JException: Method x([]) does not exist"),
        (PYTHON, PYTHON),
        ("Division by zero\n: of what\n", "Division by zero"),
        ("\n \n", ""),
    ],
)  # fmt: skip
def test_shown_error_line_gives_the_cause(message: str, shown: str) -> None:
    assert first_line(message) == shown


def test_lists_show_the_java_cause_of_a_failed_python_job(engine: Engine) -> None:
    error = {
        "errorMessage": FACET | {"message": f"{PYTHON}\n{JAVA}", "programmingLanguage": "PYTHON"}
    }
    fill(engine, [run("FAIL", 0, "app", [], ["c"], of_run=error)])

    with reader(engine) as connection:
        listed = runs_page(connection, None, Filter(), NOW.at, 10, None)["items"]

    assert [one["error"] for one in listed] == [JAVA[2:]]


def test_run_lists_its_children_and_their_failures(engine: Engine) -> None:
    dag(engine)

    with reader(engine) as connection:
        found = run_detail(connection, "app-1", NOW.at)

    assert found["state"] == "COMPLETE"
    assert found["children"] == {
        "runs": 2,
        "failed": 1,
        "jobs": [
            {"id": "job:ns:app.bad", "runs": 1, "failed": 1, "newestAt": "2026-11-20T12:00:04Z"},
            {"id": "job:ns:app.good", "runs": 1, "failed": 0, "newestAt": "2026-11-20T12:00:03Z"},
        ],
        "failures": [
            {
                "runId": "app.bad-1",
                "job": {"namespace": "ns", "name": "app.bad"},
                "state": "FAIL",
                "endedAt": "2026-11-20T12:00:04Z",
                "error": "no such column: x",
            }
        ],
    }
    assert (found["reads"], found["writes"]) == (
        ["dataset:db:a", "dataset:db:b"],
        ["dataset:db:b", "dataset:db:c"],
    )


def test_past_graph_shows_no_later_failure(engine: Engine) -> None:
    fill(
        engine,
        [
            run("START", 0, "app", ["a"], ["b"]),
            run("FAIL", 3, "app.bad", ["b"], ["c"], of_run=parent("app") | ERROR),
            run("FAIL", 5, "app", ["a"], ["b"], of_run=ERROR),
        ],
    )

    def app(moment: str) -> tuple[str, int, str | None]:
        with reader(engine) as connection:
            table = node_called(connection, "dataset:db:a")
            nodes = lineage_of(connection, Question(table, view(moment, past=True), depth=1))[
                "nodes"
            ]
        (job,) = (one for one in nodes if one["type"] == "job")
        return job["state"], job["failedChildren"], job["error"]

    assert app("2026-11-20T12:00:02Z") == ("RUNNING", 0, None)
    assert app("2026-11-20T12:00:04Z") == ("RUNNING", 1, None)
    assert app("2026-11-20T12:00:06Z") == ("FAIL", 1, "no such column: x")


def test_dag_shows_the_edges_of_its_applications_statements(engine: Engine) -> None:
    dag(engine)

    with reader(engine) as connection:
        found = job_detail(connection, node_called(connection, "dag"), NOW.at)

    assert [one["id"] for one in found["children"]["jobs"]] == [
        "job:ns:app",
        "job:ns:app.bad",
        "job:ns:app.good",
        "job:ns:dag.task",
    ]
    assert (found["children"]["failed"], found["latestRun"]["state"]) == (1, "COMPLETE")
    assert found["writes"] == ["dataset:db:b", "dataset:db:c"]


def test_stopped_run_below_another_has_not_failed(engine: Engine) -> None:
    fill(
        engine,
        [
            run("START", 0, "app"),
            run("ABORT", 1, "app.query", of_run=parent("app")),
            run("COMPLETE", 2, "app"),
        ],
    )

    with reader(engine) as connection:
        children = job_detail(connection, node_called(connection, "app"), NOW.at)["children"]

    assert (children["runs"], children["failed"], children["failures"]) == (1, 0, [])


def test_lists_show_child_failures_with_their_reason(engine: Engine) -> None:
    dag(engine)

    with reader(engine) as connection:
        runs = runs_page(connection, None, Filter(), NOW.at, 10, None)["items"]
        jobs = jobs_page(connection, Filter(), NOW.at, 10, None)["items"]

    assert {one["runId"]: (one["state"], one["failedChildren"], one["error"]) for one in runs} == {
        "dag-1": ("COMPLETE", 0, None),
        "dag.task-1": ("COMPLETE", 0, None),
        "app-1": ("COMPLETE", 1, None),
        "app.bad-1": ("FAIL", 0, "no such column: x"),
        "app.good-1": ("COMPLETE", 0, None),
    }
    assert [one["latestRun"]["failedChildren"] for one in jobs if one["name"] == "app"] == [1]


def test_job_without_own_edges_stands_for_its_children(engine: Engine) -> None:
    dag(engine)

    for name, collapse in (
        ("dag", "none"),
        ("app", "none"),
        ("app", "parent"),
        ("dag", "parent"),
        ("dag", "root"),
    ):
        answer = lineage(engine, name, collapse=collapse)
        assert ids(answer)[0] == f"job:ns:{name}"
        assert arrows(answer) == [
            f"job:ns:{name} -> dataset:db:b",  # and not c: that statement failed
            f"dataset:db:a -> job:ns:{name}",
            f"dataset:db:b -> job:ns:{name}",
        ]
    shown = lineage(engine, "app")["nodes"][0]
    assert (shown["state"], shown["failedChildren"]) == ("COMPLETE", 1)


def test_an_application_stands_for_its_streaming_query(engine: Engine) -> None:
    """The edges are stored for the application too, although the query owns them."""
    lease = {"strandline_heartbeat": FACET | {"timeoutSeconds": 10**6}}
    query = run(
        "RUNNING", 2, "app.copied", ["a"], ["b"], of_run=parent("app") | lease, of_job=STREAM
    )
    fill(engine, [run("START", 1, "app"), query])

    for collapse in ("none", "parent"):
        answer = lineage(engine, "app", collapse=collapse)
        assert arrows(answer) == ["job:ns:app -> dataset:db:b", "dataset:db:a -> job:ns:app"]
        assert [one["id"] for one in answer["nodes"] if one["type"] == "job"] == ["job:ns:app"]


def test_edges_of_an_applications_recent_runs_are_shown(engine: Engine) -> None:
    for day in ("1", "2"):
        fill(engine, [run("START", int(day) * 10, "app", run_id=day)])
        of_app = parent("app", day)
        fill(
            engine,
            [
                run(
                    "COMPLETE",
                    int(day) * 10,
                    f"app.{day}",
                    [f"a{day}"],
                    ["t"],
                    run_id=day,
                    of_run=of_app,
                )
            ],
        )

    assert arrows(lineage(engine, "app")) == [
        "job:ns:app -> dataset:db:t",
        "dataset:db:a1 -> job:ns:app",
        "dataset:db:a2 -> job:ns:app",
    ]


def test_child_with_another_parent_in_recent_runs_is_its_own_node(engine: Engine) -> None:
    below = run("COMPLETE", 2, "app.copied", ["a"], ["b"], of_run=parent("app"))
    since = [
        run("COMPLETE", 10 + day, "app.copied", ["a"], ["b"], run_id=f"alone-{day}")
        for day in range(30)
    ]
    fill(engine, [run("COMPLETE", 3, "app"), below, *since])

    answer = lineage(engine, "app")

    assert arrows(answer) == [
        "job:ns:app.copied -> dataset:db:b",
        "dataset:db:a -> job:ns:app.copied",
    ]
    assert {"job:ns:app", "job:ns:app.copied"} <= set(ids(answer))


def test_rdd_job_is_listed_only_if_it_has_edges(engine: Engine) -> None:
    fill(
        engine,
        [run("START", 1, "app"), run("START", 2, "app.37", of_run=parent("app"), of_job=RDD)],
    )
    fill(engine, [run("COMPLETE", 3, "app.38", ["a"], of_run=parent("app"), of_job=RDD)])

    with reader(engine) as connection:
        assert [
            one["name"] for one in jobs_page(connection, Filter(), NOW.at, 10, None)["items"]
        ] == ["app", "app.38"]


def test_cyclic_parents_are_counted_once(engine: Engine) -> None:
    circle = [
        run("COMPLETE", 1, "one", of_run=parent("two")),
        run("COMPLETE", 1, "two", ["a"], of_run=parent("one")),
    ]
    fill(engine, circle)

    with reader(engine) as connection:
        assert run_detail(connection, "one-1", NOW.at)["children"]["runs"] == 1


def test_query_of_an_ended_application_is_neither_running_nor_lost(engine: Engine) -> None:
    """A streaming query of the stock listener reports no end; it ends with its application."""
    lease = {"strandline_heartbeat": FACET | {"timeoutSeconds": 60}}
    fill(
        engine,
        [
            run("START", 0, "app"),
            run("RUNNING", 1, "app.open", of_run=parent("app")),
            run("RUNNING", 1, "app.leased", of_run=parent("app") | lease),
            run("COMPLETE", 2, "app"),
            run("RUNNING", 3, "other", of_run=lease),
            run("RUNNING", 3, "another"),
        ],
    )

    with reader(engine) as connection:
        counted = run_counts(connection, NOW.at)
        lost = [
            (one.about, one.run)
            for one in store_troubles(connection, [], NOW.at / 1e6)
            if one.rule == "lost"
        ]
        listed = [
            one["state"]
            for one in runs_page(connection, None, Filter(), NOW.at, 100, None)["items"]
        ]

    assert (counted.running, counted.lost, lost) == (1, 1, [("ns:other", "other-1")])
    assert sorted(listed) == ["COMPLETE", "COMPLETE", "COMPLETE", "LOST", "RUNNING"]


def test_run_names_its_tables_as_spark_does_with_newest_snapshots(engine: Engine) -> None:
    fill(engine, bank(7))

    with reader(engine) as connection:
        found = run_detail(connection, run_id("credits"), NOW.at)

    (read,), (made,) = found["inputs"], found["outputs"]
    assert (read["label"], made["label"]) == ("lake.bank.transfers", "lake.bank.credits")
    assert [one["snapshotId"] for one in read["snapshots"]] == ["107", "106", "105", "104", "103"]
    assert made["snapshots"][0] == {"snapshotId": "207", "barrierId": 7, "observed": False}
