"""Edges stated by facets: which ones count, and for which sinks."""

import re
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from worlds.builders import Json, dataset, event, job_event, rows, store, symlink
from worlds.producers import dataset_event
from worlds.scenarios.taking import arrows, reader, view

NOW = view("2026-11-20T13:00:00Z")
A, B = dataset("a"), dataset("b")
GONE = {"_deleted": True}


def origin(name: str) -> Json:
    """A dataset, or a column of it, that a facet names as a source."""
    return {"namespace": "hive://lake", "name": name, "type": "DATASET", "field": "x"}


def columns(**origins: str) -> Json:
    """A columnLineage facet: of each column the table that it comes from, '' for a constant."""
    return {
        "fields": {
            column: {"inputFields": [origin(one)] if one else []} for column, one in origins.items()
        }
    }


def declared(*entries: Json) -> Json:
    """A job facet `lineage`."""
    return {"lineage": {"entries": list(entries)}}


def entry(name: str, *sources: str, **more: Any) -> Json:
    """Of it the entry for a dataset."""
    inputs = [origin(one) for one in sources]
    return {"namespace": "hive://lake", "name": name, "type": "DATASET", "inputs": inputs} | more


def lineage(engine: Engine, node: str = "job:tests:etl") -> list[str]:
    """The lineage of a node, in short."""
    with reader(engine) as connection:
        answer = lineage_of(connection, Question(node_called(connection, node), NOW))
    return sorted(
        arrow.replace("dataset:hive://lake:", "").replace("job:tests:", "")
        for arrow in arrows(answer)
    )


def column_lineage(engine: Engine) -> list[str]:
    """The same of columns."""
    with reader(engine) as connection:
        answer = column_lineage_of(
            connection, Question(node_called(connection, "job:tests:etl"), NOW)
        )
    return sorted(re.sub("(dataset|column):hive://lake:", "", arrow) for arrow in arrows(answer))


def names(engine: Engine) -> list[str]:
    """The datasets that are known."""
    return [name for (name,) in rows(engine, "SELECT name FROM datasets")]


@pytest.mark.parametrize("said", [columns(), columns(n=""), columns(n="", m="")])
def test_columns_without_origin_do_not_remove_table_sources(engine: Engine, said: Json) -> None:
    """Trino reports columns of constants and count(*) without origin; the table has sources."""
    store(engine, [event("COMPLETE", inputs=[A], outputs=[dataset("t", columnLineage=said)])])

    assert lineage(engine) == ["a -> etl", "etl -> t"]
    assert lineage(engine, "a") == ["a -> etl", "etl -> t"]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("said", [columns(), columns(n="")])
def test_columns_without_origin_keep_earlier_columns(
    engine: Engine, said: Json, order: int
) -> None:
    start = event("START", inputs=[A, B], outputs=[dataset("t", columnLineage=columns(c="a"))])
    end = event("COMPLETE", seconds=1, outputs=[dataset("t", columnLineage=said)])
    store(engine, [start, end][::order])

    assert lineage(engine, "t") == ["a -> etl", "b -> etl", "etl -> t"]
    assert column_lineage(engine) == ["a:x -> t:c", "b -> t"]


def test_lineage_field_without_origin_does_not_remove_table_sources(engine: Engine) -> None:
    t, u = (
        dataset("t", lineage={"fields": {"n": {"inputs": []}}}),
        dataset("u", lineage={"inputs": []}),
    )
    store(engine, [event("COMPLETE", inputs=[A], outputs=[t, u])])

    assert lineage(engine, "t") == ["a -> etl", "etl -> t"]
    assert lineage(engine, "u") == ["etl -> u"]


@pytest.mark.parametrize(("inputs", "outputs"), [(None, None), ([], []), ([], [dataset("t")])])
def test_declared_lineage_overrides_inputs_and_outputs(
    engine: Engine, inputs: Any, outputs: Any
) -> None:
    store(engine, [job_event(inputs=inputs, outputs=outputs, job_facets=declared(entry("t", "a")))])

    assert lineage(engine) == ["a -> etl", "etl -> t"]
    assert lineage(engine, "a") == ["a -> etl", "etl -> t"]


def test_declared_sink_counts_without_being_an_output(engine: Engine) -> None:
    store(
        engine,
        [
            event(
                "START", inputs=[A, B], outputs=[], job_facets=declared(entry("t", "a"), entry("u"))
            )
        ],
    )

    assert lineage(engine, "t") == ["a -> etl", "etl -> t"]
    assert lineage(engine, "u") == ["etl -> u"]
    assert rows(engine, 'SELECT "table" FROM sink_job_lineage') == [("t",), ("u",)]


def test_inputs_declared_for_the_job_are_its_reads(engine: Engine) -> None:
    own = {"type": "JOB", "inputs": [origin("a")]}
    same = own | {"namespace": "tests", "name": "etl", "inputs": [origin("b")]}
    other = own | {"namespace": "tests", "name": "other", "inputs": [origin("c")]}
    store(engine, [event("START", outputs=[], job_facets=declared(own, same, other))])

    assert lineage(engine) == ["a -> etl", "b -> etl"]
    assert lineage(engine, "a") == ["a -> etl"]
    assert rows(engine, 'SELECT "table" FROM source_job_lineage') == [("a",), ("b",)]


def test_job_that_only_reads_shows_its_inputs(engine: Engine) -> None:
    store(engine, [event("COMPLETE", inputs=[A], outputs=[])])

    assert lineage(engine) == ["a -> etl"]


def test_entries_for_one_dataset_are_merged(engine: Engine) -> None:
    facets = declared(entry("t", "a"), entry("t", "b"), entry("t", inputs=None))
    store(
        engine,
        [event("COMPLETE", inputs=[A, B, dataset("c")], outputs=[dataset("t")], job_facets=facets)],
    )

    assert lineage(engine, "t") == ["a -> etl", "b -> etl", "etl -> t"]


def test_declared_lineage_of_deltas_log_is_ignored(engine: Engine) -> None:
    facets = declared(
        entry("/t/_delta_log", "a"), {"type": "JOB", "inputs": [origin("/t/_delta_log")]}
    )
    store(engine, [event("COMPLETE", inputs=[A], outputs=[dataset("t")], job_facets=facets)])

    assert names(engine) == ["a", "t"]


def test_entry_may_name_a_sink_by_its_table_name(engine: Engine) -> None:
    sink = dataset("/wh/c", symlinks=symlink("db.c"))
    store(
        engine,
        [event("START", inputs=[A, B], outputs=[sink], job_facets=declared(entry("db.c", "a")))],
    )

    assert lineage(engine, "/wh/c") == ["a -> etl", "etl -> /wh/c"]
    assert column_lineage(engine) == ["a:x -> /wh/c"]
    assert rows(engine, 'SELECT "table" FROM sink_job_lineage') == [("/wh/c",)]


@pytest.mark.parametrize("order", [1, -1])
def test_columns_reported_under_another_sink_name_count(engine: Engine, order: int) -> None:
    start = event("START", inputs=[A, B], outputs=[dataset("/wh/c", symlinks=symlink("db.c"))])
    end = event("COMPLETE", seconds=1, outputs=[dataset("db.c", columnLineage=columns(n="a"))])
    store(engine, [start, end][::order])

    assert lineage(engine, "/wh/c") == ["a -> etl", "b -> etl", "etl -> /wh/c"]
    assert column_lineage(engine) == ["a:x -> /wh/c:n", "b -> /wh/c"]


@pytest.mark.parametrize("order", [1, -1])
def test_declared_lineage_ends_with_its_facet(engine: Engine, order: int) -> None:
    start = event(
        "START", inputs=[A, B], outputs=[dataset("t")], job_facets=declared(entry("t", "a"))
    )
    end = event("COMPLETE", seconds=1, outputs=[dataset("t")], job_facets={"lineage": GONE})
    store(engine, [start, end][::order])

    assert lineage(engine, "t") == ["a -> etl", "b -> etl", "etl -> t"]


@pytest.mark.parametrize(
    "facets", [{"lineage": {"inputs": [origin("a")]}}, {"columnLineage": columns(c="a")}]
)
def test_sources_named_by_a_dataset_event_are_known(engine: Engine, facets: Json) -> None:
    store(engine, [dataset_event("t", 1, facets)])

    assert names(engine) == ["a", "t"]


def test_sink_listed_twice_has_the_columns_of_both(engine: Engine) -> None:
    twice = [dataset("t", columnLineage=columns(c="a")), dataset("t", columnLineage=columns(d="b"))]
    store(engine, [event("COMPLETE", inputs=[A, B, dataset("c")], outputs=twice)])

    assert lineage(engine, "t") == ["a -> etl", "b -> etl", "c -> etl", "etl -> t"]
    assert column_lineage(engine) == ["a:x -> t:c", "b:x -> t:d", "c -> t"]


def test_sink_listed_twice_has_the_sources_of_both(engine: Engine) -> None:
    twice = [
        dataset("t", lineage={"inputs": [origin("a")]}),
        dataset("t", lineage={"inputs": [origin("b")]}),
    ]
    store(engine, [event("COMPLETE", inputs=[A, B, dataset("c")], outputs=twice)])

    assert lineage(engine, "t") == ["a -> etl", "b -> etl", "etl -> t"]
