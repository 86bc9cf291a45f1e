"""The lineage tables in Spark SQL show the rows of a real collector."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from pyspark.errors import PySparkException

from fixtures.emitter.recording import recording_server
from fixtures.servers import SETTINGS, serving
from fixtures.spark_lake import catalog_properties
from fixtures.versions_server.events import EPOCH, committed, ended, started
from strandline.execution.iceberg_tables import IcebergTables
from strandline.execution.published_tables import publish
from strandline.store.api_keys import add_key
from strandline.store.catalog.proposal_tables import TABLES, columns_of, rows_of
from strandline.store.catalog.proposal_tables import WITH_HISTORY as WITH_HISTORY_THERE
from strandline.store.sql.engine import make_engine
from strandline_spark import lineage_tables
from strandline_spark.conf_keys import COLLECTOR_TOKEN, COLLECTOR_URL
from strandline_spark.consistency.collector import ConfigurationError
from strandline_spark.sources.lineage_columns import COLUMNS, WITH_HISTORY, values_of
from strandline_spark.sources.lineage_columns import columns_of as columns_here

BIG = "9007199254740993"  # a double has no place for it


def etl(job: str, at: float, sources: dict[str, str], sink: dict[str, str]) -> list[dict[str, Any]]:
    """A job that ran through barrier 1, as PIP-5's example has them."""
    return [
        started(job, at, [*sources], [*sink], group="lake"),
        committed(job, at + 1, 1, sources, sink, group="lake"),
    ]


PIP5 = [
    *etl("ETL 1", 0, {"db.t2": "13", "db.t3": "12"}, {"db.t5": "9"}),
    *etl("ETL 2", 5, {"db.t2": "13", "db.t3": "12"}, {"db.t6": BIG}),
    *etl("ended", 8, {"db.t5": "9"}, {"db.t7": "none of 64 bits"}),
    ended("ended", 10),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Any) -> Iterator[Any]:
    """A collector that wants keys, and knows PIP-5's two jobs, and one that has ended."""
    file = tmp_path_factory.mktemp("lineage") / "strandline.db"
    file.write_bytes(sqlite_template.read_bytes())
    engine = make_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        key = add_key(connection, "all", datetime.now(UTC), ["ingest", "read"], ["*"])
    with serving(engine, replace(SETTINGS, auth="required", silent_seconds=10**9)) as url:
        for event in PIP5:
            httpx.post(
                f"{url}/api/v1/lineage", json=event, headers={"Authorization": f"Bearer {key}"}
            ).raise_for_status()
        yield url, key, engine
    engine.dispose()


@pytest.fixture(scope="module")
def session(lake: Any, world: Any) -> Iterator[Any]:
    """A session whose conf names the collector."""
    url, key, _ = world
    spark = lake.newSession()
    spark.conf.set(COLLECTOR_URL, url)
    spark.conf.set(COLLECTOR_TOKEN, key)
    yield spark
    for view in spark.catalog.listTables():
        if view.isTemporary:
            spark.catalog.dropTempView(view.name)


@pytest.fixture(scope="module")
def tables(session: Any) -> Any:
    """The session with the views."""
    lineage_tables(session)
    return session


def test_the_columns_are_those_of_the_collector(world: Any) -> None:
    with world[2].connect() as connection:
        there = {
            (table, state): columns_of(connection, table, history=state == "history")
            for table in TABLES
            for state in ("running", "history")
        }
    here = {
        (table, state): [
            column.split(" ")[0].strip("`") for column in columns_here(table, state).split(", ")
        ]
        for table in COLUMNS
        for state in ("running", "history")
    }

    assert here == there
    assert set(WITH_HISTORY) == set(WITH_HISTORY_THERE)


@pytest.mark.spark
@pytest.mark.parametrize("state", ["running", "history"])
def test_each_table_has_the_collectors_rows(tables: Any, world: Any, state: str) -> None:
    wanted, found = {}, {}
    with world[2].connect() as connection:
        for table in COLUMNS:
            view = f"{table}_history" if state == "history" and table in WITH_HISTORY else table
            found[table] = sorted(map(repr, map(tuple, tables.table(view).collect())))
            columns = columns_here(table, state if view != table else "running")
            rows = rows_of(connection, table, history=view != table)
            naive = [tuple(map(local, values_of(row, columns))) for row in rows]
            wanted[table] = sorted(map(repr, naive))

    assert found == wanted
    assert sum(map(len, found.values())) > 10


def local(value: Any) -> Any:
    """A time as Spark gives it to Python: in the machine's zone, without saying so."""
    return value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value


@pytest.mark.spark
def test_pip_5_query_finds_what_was_made_from_a_snapshot(tables: Any) -> None:
    query = """
        SELECT k.snapshot_id FROM sink_snapshot_lineage k
          JOIN source_snapshot_lineage s ON s.job = k.job AND s.barrier_id = k.barrier_id
         WHERE s.job = 'ETL 2' AND s.`table` = 't2' AND s.snapshot_id = 13"""
    assert [tuple(row) for row in tables.sql(query).collect()] == [(int(BIG),)]


@pytest.mark.slow
@pytest.mark.spark
def test_pip_5_query_over_two_catalogs_runs_on_published_tables(lake: Any, world: Any) -> None:
    with world[2].connect() as connection:
        published = list(
            publish(connection, IcebergTables({"lake": catalog_properties(lake)}), "lake")
        )
    query = """
        SELECT k.snapshot_id FROM lake.strandline.sink_snapshot_lineage k
          JOIN lake.strandline.source_snapshot_lineage s ON s.job = k.job AND s.barrier_id = k.barrier_id
         WHERE s.job = 'ETL 1' AND s.snapshot_id = 12"""

    assert [tuple(row) for row in lake.sql(query).collect()] == [(9,)]
    assert {one.name: one.rows for one in published} == {
        one.name: lake.table(one.name).count() for one in published
    }


@pytest.mark.spark
def test_flip_276_query_finds_the_tables_made_from_a_table(tables: Any) -> None:
    query = """
        SELECT T.table_name FROM __META_ETL_SOURCE S JOIN __META_ETL_SINK T ON S.job_id = T.job_id
         WHERE S.table_name LIKE '%t2' ORDER BY 1"""
    assert [row.table_name for row in tables.sql(query).collect()] == [
        row.table_name for row in tables.table("__META_ETL_SINK").orderBy("table_name").collect()
    ]
    assert tables.sql(query).count() == 2


@pytest.mark.spark
def test_numeric_ids_are_bigint_and_other_ids_are_null(tables: Any) -> None:
    types = dict(tables.table("sink_snapshot_lineage").dtypes)
    made = {row.table: row.snapshot_id for row in tables.table("sink_snapshot_lineage").collect()}

    assert (types["barrier_id"], types["snapshot_id"]) == ("bigint", "bigint")
    assert made == {"t5": 9, "t6": int(BIG), "t7": None}


@pytest.mark.slow
@pytest.mark.spark
def test_past_edges_have_their_times(tables: Any) -> None:
    (row,) = tables.sql("SELECT * FROM sink_job_lineage_history WHERE job = 'ended'").collect()

    assert (row.state, row.table) == ("COMPLETE", "t7")
    assert (row.valid_from.astimezone(UTC) - EPOCH).total_seconds() == 8
    assert (row.valid_to.astimezone(UTC) - EPOCH).total_seconds() == 10
    assert "ended" not in {row.job for row in tables.table("sink_job_lineage").collect()}


@pytest.mark.spark
def test_each_query_reads_the_collector_again(tables: Any, world: Any) -> None:
    url, key, _ = world
    before = tables.table("sink_job_lineage").count()
    frame = tables.table("sink_job_lineage")
    new = started("new", 20, [], ["db.new"], group=None)
    httpx.post(
        f"{url}/api/v1/lineage", json=new, headers={"Authorization": f"Bearer {key}"}
    ).raise_for_status()

    assert (frame.count(), tables.table("sink_job_lineage").count()) == (before + 1, before + 1)
    over = ended("new", 21)
    httpx.post(
        f"{url}/api/v1/lineage", json=over, headers={"Authorization": f"Bearer {key}"}
    ).raise_for_status()
    assert frame.count() == before


@pytest.mark.slow
@pytest.mark.spark
def test_spark_finds_the_source_by_its_name_alone(lake: Any, sqlite_url: str) -> None:
    engine = make_engine(sqlite_url)
    with serving(engine) as url:
        httpx.post(f"{url}/api/v1/lineage", json=PIP5[0]).raise_for_status()
        spark = lake.newSession()
        spark.sql(
            f"CREATE TEMPORARY VIEW sinks USING strandline_lineage OPTIONS (url '{url}', table 'sink_job_lineage')"
        )
        rows = spark.sql("SELECT job, `table` FROM sinks").collect()
        spark.catalog.dropTempView("sinks")
    engine.dispose()

    assert [tuple(row) for row in rows] == [("ETL 1", "t5")]


@pytest.mark.slow
@pytest.mark.spark
def test_configured_key_is_sent_to_the_configured_address_only(tables: Any) -> None:
    source = tables.read.format("strandline_lineage").option("table", "catalog_options")
    with recording_server() as server, pytest.raises(PySparkException) as error:
        source.option("url", server.url).load().collect()

    assert "is no collector: GET /api/v2/tables/catalog_options?state=running gives no rows" in str(
        error.value
    )

    ((path, headers, _),) = server.requests
    assert path == "/api/v2/tables/catalog_options?state=running"
    assert "authorization" not in {key.lower() for key in headers}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "which table? Give the option table"),
        ({"table": "sinks"}, "table: 'sinks' is none of catalog_options, source_job_lineage"),
        (
            {"table": "catalog_options", "state": "past"},
            "state: 'past' is neither 'running' nor 'history'",
        ),
        (
            {"table": "catalog_options", "url": "ftp://x"},
            "'ftp://x' is not an http or https address",
        ),
        (
            {"table": "catalog_options", "url": "http://127.0.0.1:1"},
            "the collector at http://127.0.0.1:1 does not answer",
        ),
    ],
)
def test_a_failed_read_says_why(tables: Any, options: dict[str, str], reason: str) -> None:
    with pytest.raises(PySparkException) as error:
        tables.read.format("strandline_lineage").options(**options).load().collect()

    assert reason in str(error.value)


@pytest.mark.slow
@pytest.mark.spark
def test_wrong_key_is_reported(lake: Any, world: Any) -> None:
    spark = lake.newSession()
    spark.conf.set(COLLECTOR_URL, world[0])
    spark.conf.set(COLLECTOR_TOKEN, "wrong")
    lineage_tables(spark)
    with pytest.raises(PySparkException) as error:
        spark.table("catalog_options").collect()

    assert "ConfigurationError" in str(error.value)
    assert "401" in str(error.value)


@pytest.mark.spark
def test_missing_address_names_its_setting(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    spark = lake.newSession()
    with caplog.at_level(logging.WARNING), pytest.raises(ConfigurationError) as error:
        lineage_tables(spark)

    assert str(error.value).startswith(f"{COLLECTOR_URL} is not set")
