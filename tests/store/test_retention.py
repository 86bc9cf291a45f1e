"""Retention removes old rows by whole days and keeps what answers still need."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from sqlalchemy import Engine

from strandline.cli import main
from strandline.core.openlineage.facets import DATASET
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.times import micros_of
from strandline.errors import RefusedError
from strandline.runtime.expiring import expire_old
from strandline.store.ingest import retention
from strandline.store.ingest.labels import relabel
from strandline.store.ingest.retention import Expired, clock_of, expire, keep_writers_out
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.facets import merged_facets
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.schema.archive_tables import archive_batches
from strandline.store.sql.shared_settings import agree
from worlds.builders import (
    Json,
    batch,
    dataset,
    event,
    history,
    live,
    parent,
    rows,
    run_id,
    snapshot,
    store,
    until_waiting,
)
from worlds.scenarios.taking import arrows, reader

NOW = datetime.now(UTC)
A, B = dataset("bank.a", own=snapshot("1")), dataset("bank.b", own=snapshot("2"))


def day(days: float, *events: Json) -> list[Json]:
    """The events as of so many days ago."""
    at = (NOW - timedelta(days=days)).isoformat()
    return [{**one, "eventTime": at} for one in events]


def store_ago(engine: Engine, days: float, *events: Json) -> None:
    store(engine, day(days, *events), received_at=NOW - timedelta(days=days))


def drop(engine: Engine, days: int) -> Expired:
    """Drop what is older than so many days."""
    with engine.begin() as connection:
        return expire(connection, NOW - timedelta(days=days))


def know_the_newest_alone(engine: Engine) -> None:
    with engine.begin() as connection:
        agree(connection, "recent_runs", "0")


def finished(run: int, job: str = "etl") -> tuple[Json, Json]:
    return event("START", run, job, inputs=[A]), event("COMPLETE", run, job, outputs=[B])


STREAMING = {"jobType": {"processingType": "STREAMING", "integration": "SPARK"}}


def column_from(source: str) -> Json:
    """Return the facet that says that `total` is made of a column of bank.a."""
    origin = {"namespace": "hive://lake", "name": "bank.a", "field": source}
    return {"fields": {"total": {"inputFields": [origin]}}}


def lineage(engine: Engine, table: str) -> Json:
    with reader(engine) as connection:
        return lineage_of(
            connection, Question(node_called(connection, table), View(micros_of(NOW)))
        )


def test_retention_removes_old_runs_but_keeps_each_jobs_newest(engine: Engine) -> None:
    know_the_newest_alone(engine)
    store_ago(
        engine,
        30,
        *finished(1),
        *finished(9, "yearly"),
        batch(1, 5, inputs=[A]),
        event("START", 6, "dag", inputs=[A]),
    )
    store_ago(engine, 20, *finished(2))
    store_ago(engine, 1, *finished(3))
    store_ago(engine, 0, batch(2, 5, inputs=[A]), event("RUNNING", 6, "dag"))

    gone = drop(engine, 10)

    days = [f"raw_events_{NOW - timedelta(days=ago):%Y%m%d}" for ago in (30, 20)]
    assert gone.partitions == (tuple(days) if engine.dialect.name == "postgresql" else ())
    assert rows(engine, "SELECT count(*) FROM raw_events") == [(4,)]
    assert rows(engine, "SELECT count(*) FROM event_keys") == [(4,)]
    runs = "SELECT name, count(*) FROM runs JOIN jobs ON jobs.id = runs.job_id GROUP BY name"
    assert rows(engine, runs) == [("dag", 1), ("etl", 1), ("stream", 1), ("yearly", 1)]
    assert live(engine)["dag"] == ["< bank.a"]
    assert rows(engine, "SELECT count(*) FROM snapshot_uses") == [(3,)]  # of the last day
    assert rows(engine, "SELECT barrier FROM job_barriers") == [(2,)]


def test_expired_run_takes_its_quarantined_facets_along(engine: Engine) -> None:
    know_the_newest_alone(engine)
    bad = dataset("bank.a", own={"inputStatistics": 5, "schema": 5})
    store_ago(
        engine,
        30,
        event("START", 1, inputs=[bad], facets={"nominalTime": 5}),
        event("COMPLETE", 1, seconds=1),
    )
    store_ago(engine, 1, event("COMPLETE", 2, inputs=[A]))

    assert rows(engine, "SELECT count(*) FROM facets WHERE problem <> ''") == [(3,)]
    drop(engine, 10)

    assert rows(engine, "SELECT count(*) FROM runs") == [(1,)]
    assert rows(engine, "SELECT count(*) FROM facets WHERE problem <> ''") == [(0,)]


def test_expired_run_takes_the_id_of_its_spark_application_along(engine: Engine) -> None:
    know_the_newest_alone(engine)
    for run, days in ((1, 30), (2, 1)):
        facets = {"spark_applicationDetails": {"applicationId": f"local-{run}"}}
        store_ago(engine, days, event("COMPLETE", run, facets=facets))

    drop(engine, 10)

    assert rows(engine, "SELECT texts FROM search_texts") == [("local-2",)]


def test_table_that_took_a_renamed_ones_name_stays_apart_when_its_writes_expire(
    engine: Engine,
) -> None:
    know_the_newest_alone(engine)
    change = {
        "lifecycleStateChange": "RENAME",
        "previousIdentifier": {"namespace": A["namespace"], "name": A["name"]},
    }
    renamed = dataset("bank.archive", lifecycleStateChange=change)
    store_ago(engine, 30, event("COMPLETE", 1, "rename", outputs=[renamed]))
    store_ago(engine, 29, event("COMPLETE", 2, outputs=[A]))
    store_ago(engine, 1, event("COMPLETE", 3, outputs=[B]))

    drop(engine, 10)

    with engine.begin() as connection:
        assert relabel(connection) == 0
    ((joined,),) = rows(engine, "SELECT name FROM datasets WHERE canonical_id <> id")
    assert joined.startswith("bank.a (renamed to bank.archive at ")


def test_parents_of_a_kept_run_are_kept(engine: Engine) -> None:
    told = day(
        30, event("COMPLETE", 1, "dag"), event("COMPLETE", 2, "app", facets=parent(1, "dag"))
    )
    of_app = parent(2, "app")
    told += day(
        29,
        event("COMPLETE", 3, "app.q", facets=of_app, job_facets=STREAMING, inputs=[A], outputs=[B]),
    )
    store(engine, told, received_at=NOW - timedelta(days=29))
    drop(engine, 10)

    assert sorted(row[:4] for row in history(engine)) == [
        ("app", "<", "a", "COMPLETE"),
        ("app", ">", "b", "COMPLETE"),
    ]
    assert arrows(lineage(engine, "bank.b")) == [
        "job:tests:app -> dataset:hive://lake:bank.b",
        "dataset:hive://lake:bank.a -> job:tests:app",
    ]


def test_parent_known_only_by_reference_expires_with_its_child(engine: Engine) -> None:
    know_the_newest_alone(engine)
    store_ago(engine, 30, event("COMPLETE", 1, facets=parent(2, "app"), inputs=[A]))
    store_ago(engine, 20, event("COMPLETE", 3, facets=parent(4, "app"), inputs=[A]))

    drop(engine, 10)

    assert rows(engine, "SELECT run_id FROM runs") == [(run_id(3),), (run_id(4),)]


def test_lineage_of_a_run_without_its_application_is_still_shown(engine: Engine) -> None:
    store(
        engine,
        [
            event(
                "COMPLETE",
                3,
                "q",
                facets=parent(2, "app"),
                job_facets=STREAMING,
                inputs=[A],
                outputs=[B],
            )
        ],
    )
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM runs WHERE newest_at IS NULL")

    assert len(lineage(engine, "bank.b")["edges"]) == 2


def test_last_successful_create_is_kept_while_newer_ones_fail(engine: Engine) -> None:
    made = dataset("bank.t", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    for days, run, kind in (
        (40, 1, "COMPLETE"),
        (30, 2, "COMPLETE"),
        (20, 3, "FAIL"),
        (15, 4, "FAIL"),
    ):
        store_ago(engine, days, event(kind, run, inputs=[A], outputs=[made]))
    with engine.begin() as connection:
        agree(connection, "recent_runs", "2")

    drop(engine, 10)

    assert rows(engine, "SELECT run_id FROM runs") == [(run_id(2),), (run_id(3),), (run_id(4),)]
    assert len(lineage(engine, "bank.t")["edges"]) == 2


def shown(engine: Engine, table: str) -> Json:
    """The graph around a table without the count of what is older than known: that goes."""
    return {key: value for key, value in lineage(engine, table).items() if key != "hidden"}


def test_recent_lineage_is_the_same_before_and_after_expiry(engine: Engine) -> None:
    """A table read once, long ago, does not reappear when later runs expire."""
    gone = dataset("bank.gone")
    store_ago(engine, 100, event("COMPLETE", 100, inputs=[gone], outputs=[B]))
    for days in range(15, 40):
        store_ago(
            engine,
            days,
            *finished(days),
            event("COMPLETE", 200 + days, "app.q", facets=parent(300 + days, "app")),
        )
    before = [shown(engine, table) for table in ("bank.a", "bank.b", "bank.gone")]

    drop(engine, 10)

    assert [shown(engine, table) for table in ("bank.a", "bank.b", "bank.gone")] == before
    assert rows(engine, "SELECT count(*) FROM run_relations") == [(2 * 11,)]
    assert len(before[1]["edges"]) == 2


@pytest.mark.postgres
def test_concurrent_expiry_on_two_servers_does_not_block(postgres_engine: Engine) -> None:
    store_ago(postgres_engine, 30, *finished(1))
    store_ago(postgres_engine, 0, *finished(2))

    with ThreadPoolExecutor(1) as pool, postgres_engine.begin() as connection:
        keep_writers_out(connection)
        other = pool.submit(expire_old, postgres_engine, 10)
        until_waiting(postgres_engine, other)
        expire(connection, NOW - timedelta(days=10))
        connection.commit()

        assert other.result() is None


def test_retention_drops_whole_days_only(engine: Engine) -> None:
    store_ago(engine, 10.5, *finished(1))
    store_ago(engine, 0, *finished(2))

    assert expire_old(engine, 10) is None
    assert expire_old(engine, 9) is not None
    assert expire_old(engine, 9) is None


def set_clock(monkeypatch: pytest.MonkeyPatch, ahead: timedelta) -> None:
    """Let the database's clock be ahead."""
    moment = str(micros_of(NOW + ahead))
    monkeypatch.setattr(retention, "NOW", {"sqlite": moment, "postgresql": moment})


def events_in(engine: Engine) -> int:
    ((count,),) = rows(engine, "SELECT count(*) FROM raw_events")
    return int(count)


def test_old_rows_expire_even_without_events(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_the_newest_alone(engine)
    store_ago(engine, 30, *finished(1), *finished(2))
    assert expire_old(engine, 31) is None
    store(engine, [b"no event"], received_at=NOW - timedelta(days=29))
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM raw_events")

    set_clock(monkeypatch, timedelta(0))
    assert expire_old(engine, 31) is None
    set_clock(monkeypatch, timedelta(days=1))
    gone = expire_old(engine, 10)

    assert gone is not None
    assert (gone.rows["set_aside"], gone.rows["runs"]) == (1, 1)
    assert expire_old(engine, 10) is None


def test_clock_31_days_ahead_drops_no_event(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest event is of today, so nothing is older than ten days."""
    for days in range(10):
        store_ago(engine, days, event("COMPLETE", days + 1))
    set_clock(monkeypatch, timedelta(days=31))

    assert expire_old(engine, 30) is None
    assert events_in(engine) == 10


def test_archived_event_counts_as_the_newest_one(engine: Engine) -> None:
    store_ago(engine, 40, event("COMPLETE", 1))
    store_ago(engine, 0, event("COMPLETE", 2))
    with engine.begin() as connection:
        left = {"id": "b", "target": "t", "day": 1, "newest_at": micros_of(NOW), "count": 1}
        connection.execute(archive_batches.insert().values(left | {"done": 1, "events": b"\x90"}))
        moment = micros_of(NOW - timedelta(days=1))
        connection.exec_driver_sql(f"DELETE FROM raw_events WHERE received_at > {moment}")
        assert clock_of(connection).newest_event == micros_of(NOW)


def with_an_event_of_a_clock_that_is_ahead(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store ten events of the last ten days, and one that a clock 31 days ahead received."""
    for days in range(10):
        store_ago(engine, days, event("COMPLETE", days + 1))
    set_clock(monkeypatch, timedelta(days=31))
    store(engine, [event("COMPLETE", 11)], received_at=NOW + timedelta(days=31))


def test_dropping_more_than_half_of_the_events_waits_for_a_day(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_an_event_of_a_clock_that_is_ahead(engine, monkeypatch)

    with pytest.raises(RefusedError, match="10 of 11 events are older than 20 days"):
        expire_old(engine, 20)
    set_clock(monkeypatch, timedelta(days=31, hours=23))
    with pytest.raises(RefusedError, match="strandline retention --execute"):
        expire_old(engine, 20)
    assert events_in(engine) == 11

    set_clock(monkeypatch, timedelta(days=32))
    gone = expire_old(engine, 20)

    assert gone is not None
    assert events_in(engine) == 1


def test_clock_that_is_set_right_again_ends_the_wait(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_an_event_of_a_clock_that_is_ahead(engine, monkeypatch)
    with pytest.raises(RefusedError):
        expire_old(engine, 20)

    set_clock(monkeypatch, timedelta(0))
    assert expire_old(engine, 20) is None
    set_clock(monkeypatch, timedelta(days=40))
    with pytest.raises(RefusedError):
        expire_old(engine, 20)

    assert events_in(engine) == 11


def test_retention_command_counts_and_then_drops_at_once(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in range(1, 4):
        store_ago(engine, 40, event("COMPLETE", run))
    store_ago(engine, 0, event("COMPLETE", 4))
    url = engine.url.render_as_string(hide_password=False)
    command = ["retention", "--database-url", url]

    assert main(command, {"STRANDLINE_RETENTION_DAYS": "30"}) == 0
    assert "3 events of 4 came before" in capsys.readouterr().out
    assert events_in(engine) == 4
    assert main([*command, "--execute"], {"STRANDLINE_RETENTION_DAYS": "30"}) == 0
    assert "3 rows of event_keys dropped" in capsys.readouterr().out
    assert events_in(engine) == 1
    assert main(command, {}) == 2
    assert "STRANDLINE_RETENTION_DAYS (--retention-days) is not set" in capsys.readouterr().err


def test_event_key_expires_together_with_its_event(engine: Engine) -> None:
    cutoff = datetime(2026, 1, 10, 12, tzinfo=UTC)
    for run, hours in enumerate(
        (100, 50, 6, 1, -1), 1
    ):  # PostgreSQL keeps the whole of the last day
        store(engine, [event("COMPLETE", run)], received_at=cutoff - timedelta(hours=hours))

    with engine.begin() as connection:
        expire(connection, cutoff)

    keys, events = (
        rows(engine, "SELECT hash FROM event_keys"),
        rows(engine, "SELECT hash FROM raw_events"),
    )
    assert sorted(keys) == sorted(events)
    assert len(events) == (3 if engine.dialect.name == "postgresql" else 1)


def test_columns_and_facets_of_runs_that_stay_survive(engine: Engine) -> None:
    """Sets of columns and large facets are stored once for many runs.

    They go with the last of these, and not before.
    """
    know_the_newest_alone(engine)
    schema = {
        "fields": [{"name": name, "type": "bigint"} for name in ("total", *map(str, range(100)))]
    }
    in_use = dataset(
        "bank.b", schema=schema, columnLineage=column_from("amount"), own=snapshot("2")
    )
    replaced = dataset("bank.b", schema=schema, columnLineage=column_from("tax"), own=snapshot("1"))
    store_ago(engine, 40, event("COMPLETE", 1, inputs=[A], outputs=[replaced]))
    store_ago(engine, 30, event("COMPLETE", 2, inputs=[A], outputs=[in_use]))
    assert rows(engine, "SELECT count(*) FROM edge_columns") == [(2,)]

    drop(engine, 10)

    assert rows(engine, "SELECT run_id FROM runs") == [(run_id(2),)]
    with reader(engine) as connection:
        columns = column_lineage_of(
            connection, Question(node_called(connection, "bank.b"), View(micros_of(NOW)))
        )
        facets = merged_facets(connection, DATASET, [id_of("dataset", "hive://lake", "bank.b")])
    assert [(edge["source"], edge["target"]) for edge in columns["edges"]] == [
        ("column:hive://lake:bank.a:amount", "column:hive://lake:bank.b:total")
    ]
    assert json.loads(orjson.dumps(facets))["schema"] == schema
    assert rows(engine, "SELECT count(*) FROM edge_columns") == [(1,)]


def test_repeated_event_after_expiry_starts_no_edge(engine: Engine) -> None:
    store_ago(engine, 30, *finished(1), *finished(2))
    drop(engine, 10)

    store(engine, day(30, finished(1)[0]), received_at=NOW - timedelta(days=30))

    assert live(engine) == {}


def test_quarantined_facet_is_shown_after_expiry_of_older_ones(engine: Engine) -> None:
    """Large bodies are stored once beside their facets, including bad ones."""
    large = {"fields": "x" * 5000}
    store_ago(engine, 30, *finished(1))
    store_ago(engine, 1, event("COMPLETE", 2, inputs=[dataset("bank.bad", schema=large)]))
    bodies = rows(engine, "SELECT hash FROM facet_bodies")
    drop(engine, 10)

    assert rows(engine, "SELECT hash FROM facet_bodies") == bodies
    assert len(bodies) == 1
    with reader(engine) as connection:
        shown = merged_facets(connection, DATASET, [id_of("dataset", "hive://lake", "bank.bad")])
    assert json.loads(orjson.dumps(shown)) == {"schema": large}
