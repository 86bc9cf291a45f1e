"""Inputs that no column names (filters, lookups, foreachBatch) stay sources."""

from itertools import permutations

import pytest
from sqlalchemy import Engine

from store.test_stated_edges import column_lineage, columns, declared, entry, lineage, origin
from strandline.core.walk import Direction
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from worlds.builders import Json, dataset, event, job_event, store, symlink
from worlds.scenarios.taking import reader, view

A, B, C = dataset("a"), dataset("b"), dataset("c")
NOW = view("2026-11-20T13:00:00Z")
STANDS_ALONE = {
    "jobType": {
        "processingType": "STREAMING",
        "integration": "SPARK",
        "emissionPattern": "COMPLETE_SNAPSHOT",
    }
}
AIRFLOW = {"jobType": {"processingType": "BATCH", "integration": "AIRFLOW", "jobType": "TASK"}}
FLINK = {"jobType": {"processingType": "STREAMING", "integration": "FLINK", "jobType": "JOB"}}


def made(name: str = "t", **origins: str) -> Json:
    """A dataset of which columns come from these tables."""
    return dataset(name, columnLineage=columns(**origins))


def rules(engine: Engine, sink: str) -> dict[str, str]:
    """By which rule each source is one of a sink's."""
    with reader(engine) as connection:
        answer = lineage_of(
            connection, Question(node_called(connection, sink), NOW, Direction.UPSTREAM, 1)
        )
    sources = [edge for edge in answer["edges"] if edge["source"].startswith("dataset:")]
    return {edge["source"].rpartition(":")[2]: edge["rule"] for edge in sources}


def test_each_source_names_its_rule(engine: Engine) -> None:
    store(engine, [event("COMPLETE", inputs=[A, B], outputs=[made(n="b")])])

    assert rules(engine, "t") == {"a": "allSources", "b": "columnLineage"}
    assert lineage(engine, "a") == ["a -> etl", "etl -> t"]
    assert column_lineage(engine) == ["a -> t", "b:x -> t:n"]


def test_row_filtering_source_is_named(engine: Engine) -> None:
    filtered = columns(n="b") | {"dataset": [origin("a")]}
    store(
        engine, [event("COMPLETE", inputs=[A, B], outputs=[dataset("t", columnLineage=filtered)])]
    )

    assert rules(engine, "t") == {"a": "columnLineage", "b": "columnLineage"}


def test_a_source_under_another_name_is_named(engine: Engine) -> None:
    path = dataset("/wh/b", symlinks=symlink("b"))
    store(engine, [event("COMPLETE", inputs=[A, path], outputs=[made(n="b")])])

    assert lineage(engine, "t") == ["/wh/b -> etl", "a -> etl", "etl -> t"]
    assert rules(engine, "t") == {"a": "allSources", "/wh/b": "columnLineage"}


def test_source_of_one_sinks_column_is_not_added_to_another_sink(engine: Engine) -> None:
    store(
        engine,
        [
            event(
                "COMPLETE",
                inputs=[A, B, C],
                outputs=[made("t", n="a"), made("u", n="b"), dataset("v")],
            )
        ],
    )

    assert (rules(engine, "t"), rules(engine, "u")) == (
        {"a": "columnLineage", "c": "allSources"},
        {"b": "columnLineage", "c": "allSources"},
    )
    assert rules(engine, "v") == dict.fromkeys("abc", "allSources")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_sources_include_all_events_of_the_run(engine: Engine, order: tuple[int, ...]) -> None:
    """In stock Spark, RUNNING has no input and the last event names one more."""
    events = [
        event("START", inputs=[A, B], outputs=[made(n="b")]),
        event("RUNNING", seconds=1, inputs=[], outputs=[made(n="b")]),
        event("COMPLETE", seconds=2, inputs=[C], outputs=[made(n="b", m="c")]),
    ]
    for place in order:
        store(engine, [events[place]])

    assert rules(engine, "t") == {"a": "allSources", "b": "columnLineage", "c": "columnLineage"}


@pytest.mark.parametrize("order", [1, -1])
def test_last_complete_snapshot_event_decides_sources(engine: Engine, order: int) -> None:
    first = event("RUNNING", inputs=[A, B], outputs=[made(n="b")], job_facets=STANDS_ALONE)
    last = event(
        "RUNNING", seconds=1, inputs=[B, C], outputs=[made(n="b")], job_facets=STANDS_ALONE
    )
    store(engine, [first, last][::order])

    assert rules(engine, "t") == {"b": "columnLineage", "c": "allSources"}


@pytest.mark.parametrize("order", [1, -1])
def test_columns_that_name_every_input_add_no_other_source(engine: Engine, order: int) -> None:
    first = event("RUNNING", inputs=[A, B], outputs=[dataset("t")], job_facets=STANDS_ALONE)
    last = event("RUNNING", seconds=1, inputs=[B], outputs=[made(n="b")], job_facets=STANDS_ALONE)
    store(engine, [first, last][::order])

    assert rules(engine, "t") == {"b": "columnLineage"}


@pytest.mark.parametrize(("said", "sources"), [(["b"], {"b": "lineage"}), ([], {})])
def test_explicit_lineage_is_complete(
    engine: Engine, said: list[str], sources: dict[str, str]
) -> None:
    """This holds beside columns too; an empty list means no source."""
    facet = {"inputs": [origin(one) for one in said]}
    sink = dataset("t", lineage=facet, columnLineage=columns(n="b"))
    store(engine, [event("COMPLETE", inputs=[A, B], outputs=[sink])])

    assert rules(engine, "t") == sources


def test_declaration_for_one_sink_keeps_the_sources_of_another(engine: Engine) -> None:
    store(
        engine,
        [
            event(
                "COMPLETE",
                inputs=[A, B, C],
                outputs=[dataset("t"), made("u", n="b")],
                job_facets=declared(entry("t", "a")),
            )
        ],
    )

    assert (rules(engine, "t"), rules(engine, "u")) == (
        {"a": "lineage"},
        {"b": "columnLineage", "c": "allSources"},
    )


def test_a_job_event_has_the_same_sources(engine: Engine) -> None:
    store(engine, [job_event(inputs=[A, B], outputs=[made(n="b")])])

    assert rules(engine, "t") == {"a": "allSources", "b": "columnLineage"}


def test_columns_of_another_run_do_not_count(engine: Engine) -> None:
    """The first of two runs has columns for a source that the second has as a whole."""
    store(engine, [event("COMPLETE", 1, inputs=[A, B], outputs=[made(n="a", m="b")])])
    store(engine, [event("COMPLETE", 2, seconds=9, inputs=[A, B], outputs=[made("u", n="b")])])

    assert rules(engine, "t") == dict.fromkeys("ab", "columnLineage")
    assert rules(engine, "u") == {"a": "allSources", "b": "columnLineage"}


@pytest.mark.parametrize("kind", [AIRFLOW, FLINK])
def test_columns_arriving_after_the_datasets_are_used(engine: Engine, kind: Json) -> None:
    """Airflow parses the SQL at the end; Flink's last event has neither inputs nor outputs."""
    store(
        engine,
        [
            event("START", inputs=[A, B], outputs=[dataset("t")], job_facets=kind),
            event("RUNNING", seconds=1, inputs=[B], outputs=[made(n="b")], job_facets=kind),
            event("COMPLETE", seconds=2, job_facets=kind),
        ],
    )

    assert rules(engine, "t") == {"a": "allSources", "b": "columnLineage"}


@pytest.mark.parametrize(
    "job_facets", [{}, STANDS_ALONE], ids=["one of several events", "stands for itself"]
)
def test_columns_overridden_by_a_lineage_facet_are_ignored(
    engine: Engine, job_facets: Json
) -> None:
    """`t` explicitly has no source, so its columns' inputs are sources of the other sink."""
    overridden = dataset("t", columnLineage=columns(n="b"), lineage={"inputs": []})
    store(
        engine,
        [
            event(
                "COMPLETE",
                inputs=[A, B],
                outputs=[overridden, made("u", n="a")],
                job_facets=job_facets,
            )
        ],
    )

    assert rules(engine, "t") == {}
    assert rules(engine, "u") == {"a": "columnLineage", "b": "allSources"}
