"""Streams of the stock listener: each micro-batch is a run below its application."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine

from fixtures.stores import SQLITE_FIRST
from strandline.core.changes.edges import edges_in
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import jobs_page
from strandline.store.catalog.runs import runs_page
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.sql.compression import expand
from worlds.builders import Json, dataset, event, history, live, parent, rows, run_id, store
from worlds.scenarios.taking import reader

QUERY = "0f2c6d0e-0000-4000-8000-00000000000a"
STREAMING = {
    "jobType": {"processingType": "STREAMING", "integration": "SPARK", "jobType": "SQL_JOB"}
}
A, B = dataset("bank.a"), dataset("bank.b")


@pytest.fixture(params=SQLITE_FIRST)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty store."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def below(app: int) -> Json:
    """The parent facet of what runs below an application."""
    return parent(app, "app", root=(app, "app"))


def described(batch: int, line: str = "<br/>") -> Json:
    text = f"my query{line}id = {QUERY}{line}runId = {run_id(99)}{line}batch = {batch}"
    return {"spark_jobDetails": {"jobDescription": text}}


def micro_batch(run: int, batch: int, seconds: float, app: int = 1, **more: Json) -> list[Json]:
    """START, RUNNING with the description, COMPLETE: only the middle one says which query it is."""
    job = "app.append_data.bank_b"
    return [
        event(
            "START",
            run,
            job,
            seconds,
            facets=below(app),
            job_facets=STREAMING,
            inputs=[A],
            outputs=[B],
        ),
        event(
            "RUNNING",
            run,
            job,
            seconds + 0.1,
            facets={**below(app), **described(batch), **more},
            job_facets=STREAMING,
        ),
        event(
            "COMPLETE",
            run,
            job,
            seconds + 0.2,
            facets=below(app),
            job_facets=STREAMING,
            outputs=[B],
        ),
    ]


APP = event(
    "START", 1, "app", job_facets={"jobType": {"processingType": "NONE", "integration": "SPARK"}}
)
APP_END = event("COMPLETE", 1, "app", 100)


def test_micro_batches_form_one_continuous_job(engine: Engine) -> None:
    store(engine, [APP, *micro_batch(2, 0, 1), *micro_batch(3, 1, 2)])

    assert live(engine) == {"my query": ["< bank.a", "> bank.b"]}

    store(engine, [APP_END])

    assert live(engine) == {}
    assert [(*row[:4], round(row[4], 1), row[5]) for row in history(engine)] == [
        ("my query", "<", "a", "COMPLETE", 1.1, 100),
        ("my query", ">", "b", "COMPLETE", 1.1, 100),
    ]


def test_query_is_a_job_with_one_run_per_application(engine: Engine) -> None:
    store(engine, [APP, *micro_batch(2, 0, 1), *micro_batch(3, 1, 2), APP_END])
    store(engine, [event("START", 11, "app", 200), *micro_batch(12, 1, 201, app=11)])

    with reader(engine) as connection:
        job = node_called(connection, "my query")
        listed = runs_page(connection, job, Filter(), micros_of(datetime.now(UTC)), 10, None)[
            "items"
        ]
    shown = [(one["state"], one["parent"]["runId"], one["streaming"]) for one in listed]
    assert shown == [("RUNNING", run_id(11), True), ("COMPLETE", run_id(1), True)]


@pytest.mark.parametrize("how", [{}, {"live": True}, {"past": True}])
def test_query_lineage_is_found_from_the_query_and_its_tables(
    engine: Engine, how: dict[str, bool]
) -> None:
    store(engine, [APP, *micro_batch(2, 0, 1), *micro_batch(3, 1, 2)])

    for name in ("my query", "bank.a", "bank.b"):
        with reader(engine) as connection:
            asked = Question(
                node_called(connection, name), View(micros_of(datetime.now(UTC)), **how)
            )
            answer = lineage_of(connection, asked)
        assert [(edge["source"], edge["target"]) for edge in answer["edges"]] == [
            ("job:tests:my query", "dataset:hive://lake:bank.b"),
            ("dataset:hive://lake:bank.a", "job:tests:my query"),
        ]


def test_unnamed_query_is_named_by_its_sink_or_id(engine: Engine) -> None:
    unnamed = {
        "spark_jobDetails": {"jobDescription": f"\nid = {QUERY}\nrunId = {run_id(9)}\nbatch = 0"}
    }
    facets = {**below(1), **unnamed}
    store(engine, [APP, event("START", 2, "x", 1, facets=facets, inputs=[A])])

    assert live(engine) == {f"streaming_query.{QUERY}": ["< bank.a"]}

    store(engine, [event("RUNNING", 3, "x", 0.5, facets=facets, outputs=[B])])

    assert live(engine) == {"app.bank.b": ["< bank.a", "> bank.b"]}
    with reader(engine) as connection:
        names = [
            one["name"]
            for one in jobs_page(connection, Filter(), micros_of(datetime.now(UTC)), 10, None)[
                "items"
            ]
        ]
        back = lineage_of(
            connection,
            Question(node_called(connection, "bank.a"), View(micros_of(datetime.now(UTC)))),
        )
    assert names == ["app", "app.bank.b", "x"]
    assert [edge["target"] for edge in back["edges"]] == [
        "dataset:hive://lake:bank.b",
        "job:tests:app.bank.b",
    ]


def test_two_queries_under_one_name_are_both_found_by_their_source(engine: Engine) -> None:
    """The listener uses one job name for all queries; the newest must not hide others."""
    for number in (1, 2):
        details = f"query {number}\nid = {run_id(90 + number)}\nbatch = 0"
        facets = {**below(1), "spark_jobDetails": {"jobDescription": details}}
        made = dataset(f"bank.made{number}")
        store(
            engine,
            [
                event(
                    "START",
                    10 + number,
                    "app.all",
                    number,
                    facets=facets,
                    inputs=[A],
                    outputs=[made],
                )
            ],
        )

    with reader(engine) as connection:
        found = lineage_of(
            connection,
            Question(node_called(connection, "bank.a"), View(micros_of(datetime.now(UTC)))),
        )
    assert [node["name"] for node in found["nodes"] if node["type"] == "job"] == [
        "query 1",
        "query 2",
    ]


def test_micro_batches_without_a_description_belong_to_the_application(engine: Engine) -> None:
    events = micro_batch(2, 0, 1)
    store(engine, [APP, events[0], events[2]])

    assert live(engine) == {"app": ["< bank.a", "> bank.b"]}


def test_job_description_wins_over_captured_properties(engine: Engine) -> None:
    captured = {
        "spark_properties": {
            "properties": {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": "6"}
        }
    }
    first, second, third = micro_batch(2, 7, 1)
    behind = event(
        "RUNNING",
        2,
        "app.append_data.bank_b",
        9,
        facets={**below(1), **captured},
        job_facets=STREAMING,
    )
    store(engine, [APP, behind, first, second, third])

    assert rows(engine, "SELECT query_id, batch_id FROM run_queries") == [(QUERY, 7)]


def test_multi_line_job_description_is_parsed(engine: Engine) -> None:
    details = event("RUNNING", 2, "x", facets={**below(1), **described(4, line="\n")})
    store(engine, [details])

    assert rows(engine, "SELECT query_id, batch_id FROM run_queries") == [(QUERY, 4)]


def test_replayed_micro_batch_stays_with_its_query(engine: Engine) -> None:
    lost = micro_batch(2, 5, 1)[:2]
    again = micro_batch(12, 5, 20, app=11)
    store(engine, [APP, *lost, event("START", 11, "app", 15), *again])

    assert rows(
        engine,
        "SELECT DISTINCT j.name FROM run_lives l JOIN jobs j ON j.id = l.job_id WHERE query_id <> ''",
    ) == [("my query",)]


def test_observed_versions_of_a_stock_stream_are_its_data_lineage(engine: Engine) -> None:
    written = dataset("bank.b", version={"datasetVersion": "7"})
    start, running, complete = micro_batch(2, 3, 1)
    store(engine, [APP, start, running, {**complete, "outputs": [written]}])

    assert rows(
        engine, 'SELECT job, barrier_id, "table", snapshot_id FROM sink_snapshot_lineage'
    ) == [("my query", 4, "b", "7")]


def test_deltas_log_is_not_lineage(engine: Engine) -> None:
    log = dataset("/warehouse/t/_delta_log/00000000000000000003.json", "file")
    store(
        engine,
        [
            event("START", 5, "app.delta_3", facets=below(1)),
            event("COMPLETE", 5, "app.delta_3", 1, inputs=[log]),
        ],
    )

    assert history(engine) == []
    assert rows(engine, "SELECT name FROM jobs WHERE noise = 1 AND data = 0") == [("app.delta_3",)]
    assert rows(engine, "SELECT name FROM datasets") == []


def test_file_stream_reads_its_folder_rather_than_single_files(engine: Engine) -> None:
    files = [dataset(f"/landing/in/part-{n}.json", "file") for n in range(3)]
    store(
        engine, [APP, event("START", 2, "x", facets=below(1), job_facets=STREAMING, inputs=files)]
    )

    assert live(engine) == {"app": ["< /landing/in"]}


def test_edge_of_a_file_stream_comes_from_its_folder(engine: Engine) -> None:
    files = [dataset(f"/landing/in/part-{n}.json", "file") for n in range(3)]
    made = dataset(
        "bank.b",
        columnLineage=from_column("file", "/landing/in/part-1.json", "/landing/in/part-2.json"),
    )
    store(engine, [event("RUNNING", 2, job_facets=STREAMING, inputs=files, outputs=[made])])

    assert sources(engine) == [("/landing/in", 1)]
    assert rows(engine, "SELECT name FROM datasets") == [("/landing/in",), ("bank.b",)]


def test_edge_from_a_metadata_table_comes_from_the_table(engine: Engine) -> None:
    catalog = {"name": "lake", "framework": "iceberg", "type": "hive"}
    made = dataset(
        "bank.b", lineage={"inputs": [{"namespace": "hive://lake", "name": "bank.a.snapshots"}]}
    )
    store(engine, [event(inputs=[dataset("bank.a.snapshots", catalog=catalog)], outputs=[made])])

    assert sources(engine) == [("bank.a", 1)]


def from_column(namespace: str, *names: str) -> Json:
    """Column lineage of one column, from a column of each of these."""
    return {
        "fields": {
            "c": {
                "inputFields": [
                    {"namespace": namespace, "name": one, "field": "c"} for one in names
                ]
            }
        }
    }


def sources(engine: Engine) -> list[tuple[str, int]]:
    """The sources of all edges, each with the number of its edges."""
    query = "SELECT source.name, columns FROM edge_columns JOIN datasets source ON source.id = source_id"
    return [(name, len(edges_in(expand(columns)))) for name, columns in rows(engine, query)]


def test_application_is_running_while_its_micro_batches_report(engine: Engine) -> None:
    from worlds.builders import LONG_AGO

    store(engine, [APP], received_at=LONG_AGO)
    store(engine, micro_batch(2, 0, 1))

    assert live(engine) == {"my query": ["< bank.a", "> bank.b"]}


def test_unreported_application_is_running_while_its_micro_batches_report(engine: Engine) -> None:
    """Its own events were sent before the collector was running."""
    began, _, ended = micro_batch(2, 0, 1)
    store(engine, [began, ended])
    now = micros_of(datetime.now(UTC))
    silent = now + 2 * 86_400 * 10**6

    assert live(engine) == {"app": ["< bank.a", "> bank.b"]}
    assert states(engine, View(now, live=True)) == {("RUNNING", True)}
    assert states(engine, View(now)) == {("RUNNING", True)}
    assert states(engine, View(silent)) == {("LOST", False)}
    assert states(engine, View(silent, live=True)) == set()

    store(engine, [APP_END])

    assert states(engine, View(now)) == {("COMPLETE", False)}


def test_application_without_started_micro_batches_has_no_state(engine: Engine) -> None:
    store(
        engine,
        [event(None, 2, "app.x", facets=below(1), job_facets=STREAMING, inputs=[A], outputs=[B])],
    )

    assert states(engine, View(micros_of(datetime.now(UTC)))) == {("NONE", False)}


def states(engine: Engine, seen: View) -> set[tuple[str, bool]]:
    """Return the marks of bank.b's edges and their jobs."""
    with reader(engine) as connection:
        answer = lineage_of(connection, Question(node_called(connection, "bank.b"), seen))
    marked = [*answer["edges"], *(node for node in answer["nodes"] if node["type"] == "job")]
    return {(one["state"], one["running"]) for one in marked}
