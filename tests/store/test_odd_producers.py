"""Deviations of real producers from the specification and from each other."""

from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.openlineage.times import micros
from strandline.core.walk import Direction
from strandline.store.ingest.take import Outcome
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from worlds.builders import dataset, event, live, rows, store, symlink
from worlds.scenarios.taking import arrows, reader, view

Json = dict[str, Any]
GROUPS = "SELECT count(DISTINCT canonical_id) FROM datasets"
QUARANTINED = "SELECT key, problem FROM facets WHERE problem <> ''"
BUCKET = "s3://bucket"


def without(one: Json, key: str) -> Json:
    return {name: value for name, value in one.items() if name != key}


@pytest.mark.parametrize("one", [without(event(), "schemaURL"), event() | {"schemaURL": None}])
def test_event_without_a_schema_url_is_accepted(engine: Engine, one: Json) -> None:
    """Marquez's samples, Keboola and Snowflake omit it."""
    (outcome,) = store(engine, [one])

    assert outcome.kind == "stored"


def test_event_without_a_producer_is_rejected(engine: Engine) -> None:
    outcomes: list[Outcome] = store(engine, [without(event(), "producer")])

    assert [outcome.reason for outcome in outcomes] == [
        "not an OpenLineage event: producer: Field required"
    ]


@pytest.mark.parametrize("zone", ["+01:00[Europe/Berlin]", "+01:00[GMT+01:00]"])
def test_java_zone_names_are_accepted_in_times(zone: str) -> None:
    assert micros(f"2026-11-20T13:00:00.5{zone}") == micros("2026-11-20T12:00:00.5Z")


def test_databases_of_one_sql_server_are_distinct(engine: Engine) -> None:
    """Older Spark listeners have the database in the namespace alone."""
    server = "sqlserver://db.windows.net:1433"
    tables = [
        dataset("dbo.people", f"{server};database={name};user=sa;password=x")
        for name in ("sales", "hr")
    ]
    store(
        engine,
        [event(run=run, job=f"job_{run}", inputs=[table]) for run, table in enumerate(tables)],
    )

    assert rows(engine, "SELECT DISTINCT namespace FROM datasets") == [
        (f"{server};database=hr",),
        (f"{server};database=sales",),
    ]


def test_in_memory_flink_tables_do_not_merge_topics(engine: Engine) -> None:
    called = symlink("default_database.orders", "flink://")
    topics = [
        dataset(name, "kafka://broker:9092", symlinks=called) for name in ("orders_eu", "orders_us")
    ]
    store(
        engine,
        [event(run=run, job=f"job_{run}", inputs=[topic]) for run, topic in enumerate(topics)],
    )

    assert rows(engine, "SELECT name FROM datasets") == [("orders_eu",), ("orders_us",)]


def test_google_airflow_operators_symlink_facet_is_accepted(engine: Engine) -> None:
    external = dataset("p.d.ext", "bigquery", symlink=symlink("landing/day", "gs://bucket", "file"))
    store(
        engine,
        [
            event(run=1, inputs=[external]),
            event(run=2, outputs=[dataset("landing/day", "gs://bucket")]),
        ],
    )

    assert rows(engine, GROUPS) == [(1,)]


def test_athena_folders_are_not_tables(engine: Engine) -> None:
    table = dataset(
        "Cat.DB.T", "awsathena://athena.eu", symlinks=symlink("/data/v1.0/path/", BUCKET)
    )
    store(engine, [event(run=1, job="a", inputs=[table])])
    store(engine, [event(run=2, job="b", outputs=[dataset("data/v1.0/path", BUCKET)])])

    assert rows(engine, GROUPS) == [(1,)]
    assert live(engine) == {"a": ["< DB.T"], "b": ["> DB.T"]}


def test_table_of_a_bucket_catalog_is_recognized(engine: Engine) -> None:
    """Spark's listener names a catalog by its warehouse."""
    table = dataset("wh/db/t", BUCKET, symlinks=symlink("db.t", "s3://bucket/wh"))
    store(engine, [event(job="a", inputs=[table])])

    assert live(engine) == {"a": ["< db.t"]}


def test_bad_symlink_identifier_does_not_affect_the_others(engine: Engine) -> None:
    good = symlink("good", "file", "LOCATION")["identifiers"]
    bad = [
        {"namespace": "s3://b", "name": None, "type": "LOCATION"},
        {"namespace": "", "name": "", "type": "LOCATION"},
    ]
    tables = [
        dataset("bank.a", symlinks={"identifiers": [*bad, *good]}),
        dataset("bank.b", symlinks={"identifiers": bad}),
    ]
    store(engine, [event(inputs=tables)])

    assert rows(engine, "SELECT name FROM datasets") == [("bank.a",), ("bank.b",), ("good",)]
    assert rows(engine, GROUPS) == [(2,)]


def test_exception_without_a_message_is_accepted(engine: Engine) -> None:
    error = {"programmingLanguage": "JAVA", "stackTrace": "java.lang.NullPointerException"}
    store(engine, [event("FAIL", facets={"errorMessage": error})])

    assert rows(engine, QUARANTINED) == []


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("reused", [False, True])
def test_renamed_table_has_the_sources_that_its_previous_name_had(
    engine: Engine, listed: bool, reused: bool
) -> None:
    """Also once the old name is written again, which is another table then."""
    before = {"namespace": "file", "name": "/t/old"}
    change = {"lifecycleStateChange": "RENAME", "previousIdentifier": before}
    old, new = dataset("/t/old", "file"), dataset("/t/new", "file", lifecycleStateChange=change)
    inputs = [old] if listed else []
    store(engine, [event("COMPLETE", 1, "load", outputs=[old])])
    store(engine, [event("COMPLETE", 2, "rename", 1, inputs=inputs, outputs=[new])])
    if reused:
        store(engine, [event("COMPLETE", 3, "load", 2, outputs=[old])])

    with reader(engine) as connection:
        node = node_called(connection, "dataset:file:/t/new")
        answer = lineage_of(
            connection, Question(node, view("2026-11-20T13:00:00Z"), direction=Direction.UPSTREAM)
        )
    assert sorted(arrows(answer)) == ["job:tests:load -> dataset:file:/t/new"]


def test_change_other_than_a_rename_has_no_source(engine: Engine) -> None:
    change = {
        "lifecycleStateChange": "ALTER",
        "previousIdentifier": {"namespace": "file", "name": "/t/old"},
    }
    store(engine, [event(outputs=[dataset("/t/new", "file", lifecycleStateChange=change)])])

    assert rows(engine, "SELECT name FROM datasets") == [("/t/new",)]
