"""The state of a run, and which runs count, are the same in SQL and in Python."""

import random
from typing import Any

import pytest
from sqlalchemy import Engine, select, text

from strandline.core.openlineage.run_states import LOST, NAMES
from strandline.store.catalog.details import job_detail
from strandline.store.catalog.filters import ALL
from strandline.store.catalog.lists import datasets_page
from strandline.store.catalog.writes import newest_writes
from strandline.store.ingest.take import Record
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.recent_runs import RECENT_RUNS_SQL, recent_runs_of
from strandline.store.lineage.run_state import StateColumns, View, rows_of_runs, run_state
from strandline.store.lineage.sightings import sightings_of
from strandline.store.questions.run_graph import run_graph
from strandline.store.schema.run_tables import runs
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import columns, creates, dataset, parent, run
from worlds.scenarios.taking import arrows, fill, ids, lineage, reader, view

MICRO = 1_000_000
BEATS = {"strandline_heartbeat": FACET | {"timeoutSeconds": 20}}
BATCH = {"jobType": FACET | {"processingType": "BATCH", "integration": "SPARK"}}


def heartbeat(of_run: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return run facets with a heartbeat timeout of 20 seconds."""
    return BEATS | (of_run or {})


def commits(table: str, snapshot: str) -> dict[str, Any]:
    """Return an output that states the snapshot that the run made."""
    facet = FACET | {"format": "iceberg", "snapshotId": snapshot}
    return dataset(table) | {"outputFacets": {"strandline_snapshot": facet}}


def any_event(chance: random.Random, seconds: int) -> Record:
    kind = chance.choice([None, *["START", "RUNNING"] * 3, "COMPLETE", "FAIL", "ABORT"])
    number = chance.randrange(8)
    above = parent("app", str(number % 2)) if number > 4 else {}
    facets = heartbeat(above) if number % 3 else above
    name = "app" if number < 2 else f"job{number}"
    return run(kind, seconds, name, ["a"], ["t"], run_id=str(number), of_run=facets)


@pytest.mark.parametrize("seed", range(6))
def test_state_of_any_run_is_the_same_in_sql_and_in_python(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    fill(engine, [any_event(chance, seconds) for seconds in range(0, 100, 8)])
    states: set[str] = set()
    with reader(engine) as connection:
        columns = StateColumns.of(connection.dialect.name)
        ids_of_runs = connection.scalars(select(runs.c.id)).all()
        rows = rows_of_runs(connection, ids_of_runs)
        for seconds in (0, 30, 60, 90, 120, 200_000):
            now = view("2026-11-20T12:00:00Z").at + seconds * MICRO
            query = select(
                runs.c.id, columns.state(now), columns.is_lost(now), columns.is_running(now)
            ).select_from(columns.joined())
            for id_, number, is_lost, is_running in connection.execute(query):
                state = run_state(rows[id_], now)
                states.add(state.state)
                assert ("LOST" if number == LOST else NAMES[number]) == state.state
                assert (bool(is_lost), bool(is_running)) == (state.state == "LOST", state.live)

    assert "LOST" in states
    assert states & {"START", "RUNNING"}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [0, 2])
def test_recent_runs_of_any_job_are_the_same_in_sql_and_in_python(
    engine: Engine, seed: int, count: int
) -> None:
    chance = random.Random(seed)
    events = []
    for seconds in range(30):
        number = chance.randrange(12)
        above = parent("app", str(number % 3)) if number % 2 else {}
        write = creates("t") if chance.random() < 0.3 else "t"
        kind = chance.choice(["START", "COMPLETE", "FAIL"])
        name, run_id = f"job{number % 2}", str(number)
        events.append(run(kind, seconds, name, ["a"], [write], run_id=run_id, of_run=above))
    fill(engine, events)

    with reader(engine) as connection:
        in_sql = set(connection.scalars(text(RECENT_RUNS_SQL), {"recent_runs": count}))
        every = connection.execute(select(runs.c.id, runs.c.job_id)).all()
        owners, jobs = ({row[place] for row in every} for place in (0, 1))
        sightings = sightings_of(connection, owners, jobs, view("2026-11-20T13:00:00Z").at)
        recent = recent_runs_of(sightings, count)

    assert in_sql == {owner for of_job in recent.values() for owner in of_job.owners}
    assert 0 < len(in_sql) < len(owners) or count


@pytest.mark.parametrize("past", [False, True])
def test_lost_append_is_no_source_of_a_table_with_snapshots(engine: Engine, past: bool) -> None:
    """The driver was killed while it appended; the table has no row of it."""
    fill(
        engine,
        [
            run("COMPLETE", 1, "etl.t", ["good"], [commits("t", "1")], of_job=BATCH),
            run("START", 2, "etl.t", ["bad"], ["t"], run_id="2", of_run=BEATS, of_job=BATCH),
        ],
    )

    running = lineage(engine, "t", view("2026-11-20T12:00:20Z", past=past))
    lost = lineage(engine, "t", view("2026-11-20T12:00:23Z", past=past))

    assert "dataset:db:bad" in ids(running)
    assert arrows(lost) == ["job:ns:etl.t -> dataset:db:t", "dataset:db:good -> job:ns:etl.t"]


def test_lost_run_wrote_what_its_snapshot_facet_states(engine: Engine) -> None:
    written = run("RUNNING", 1, "etl.t", ["a"], [commits("t", "1")], of_run=BEATS, of_job=BATCH)
    fill(engine, [written])

    answer = lineage(engine, "t", view("2026-11-20T12:10:00Z"))

    assert arrows(answer) == ["job:ns:etl.t -> dataset:db:t", "dataset:db:a -> job:ns:etl.t"]
    assert {edge["state"] for edge in answer["edges"]} == {"LOST"}


def test_lost_run_may_have_written_files(engine: Engine) -> None:
    """A dataset without snapshots shows rows of a run that did not end."""
    fill(engine, [run("START", 1, "etl", ["a"], ["files"], of_run=BEATS, of_job=BATCH)])

    answer = lineage(engine, "files", view("2026-11-20T12:10:00Z"))

    assert arrows(answer) == ["job:ns:etl -> dataset:db:files", "dataset:db:a -> job:ns:etl"]


def test_lost_create_table_as_made_no_table(engine: Engine) -> None:
    fill(engine, [run("START", 1, "etl", ["a"], [creates("t")], of_run=BEATS, of_job=BATCH)])

    assert arrows(lineage(engine, "t", view("2026-11-20T12:10:00Z"))) == []


def test_batch_that_failed_with_its_application_wrote_nothing(engine: Engine) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "app.t", ["good"], [commits("t", "1")], of_job=BATCH),
            run("START", 2, "app.t", ["bad"], ["t"], run_id="2", of_run=parent("app")),
            run("FAIL", 3, "app"),
        ],
    )

    answer = lineage(engine, "t")

    assert arrows(answer) == ["job:ns:app.t -> dataset:db:t", "dataset:db:good -> job:ns:app.t"]


def changed(table: str, change: str, **facets: Any) -> dict[str, Any]:
    """A dataset with a change of its life."""
    return dataset(table, lifecycleStateChange=FACET | {"lifecycleStateChange": change}, **facets)


def emptied(table: str) -> dict[str, Any]:
    """A table that the run leaves without rows, with the snapshot that it made."""
    facet = FACET | {"format": "iceberg", "snapshotId": "9", "numberOfRows": 0}
    return changed(table, "TRUNCATE") | {"outputFacets": {"strandline_snapshot": facet}}


MADE = ["job:ns:etl -> dataset:db:t", "dataset:db:a -> job:ns:etl"]
DEFINED = {
    "an altered one": changed("t", "ALTER"),
    "a renamed one": changed("t", "RENAME"),
    "a dropped one": changed("t", "DROP"),
    "one emptied without a snapshot": changed("t", "TRUNCATE"),
    "an emptied one": emptied("t"),
}


@pytest.mark.parametrize("table", DEFINED.values(), ids=DEFINED)
def test_run_that_only_defines_a_table_is_no_writer_of_it(
    engine: Engine, table: dict[str, Any]
) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "etl", ["a"], ["t"], of_job=BATCH),
            run("START", 2, "ddl", [], [changed("t", "ALTER")], of_job=BATCH),
            run("COMPLETE", 4, "ddl", [], [table], of_job=BATCH),
        ],
    )
    ddl = "job:ns:ddl -> dataset:db:t"

    assert arrows(lineage(engine, "t")) == MADE
    # While it runs, nobody knows what it will turn out to be.
    assert ddl in arrows(lineage(engine, "t", view("2026-11-20T12:00:03Z", past=True)))
    assert arrows(lineage(engine, "t", view("2026-11-20T12:00:05Z", past=True))) == MADE


BRINGS = {
    "reads another": (["b"], changed("t", "ALTER")),
    "has columns of another": (
        [],
        changed("t", "ALTER", **columns("t", id=("b", "id"))["facets"]),
    ),
    "makes a snapshot": ([], commits("t", "2") | {"facets": changed("t", "ALTER")["facets"]}),
}


@pytest.mark.parametrize(("reads", "table"), BRINGS.values(), ids=BRINGS)
def test_run_that_alters_a_table_and_brings_something_is_a_writer(
    engine: Engine, reads: list[str], table: dict[str, Any]
) -> None:
    fill(engine, [run("COMPLETE", 4, "ddl", reads, [table], of_job=BATCH)])

    assert "job:ns:ddl -> dataset:db:t" in arrows(lineage(engine, "t"))


@pytest.mark.parametrize("place", [0, 1])
def test_run_that_also_writes_the_table_it_alters_is_a_writer(engine: Engine, place: int) -> None:
    tables: list[Any] = ["t"]
    tables.insert(place, changed("t", "ALTER"))
    fill(
        engine,
        [
            run("RUNNING", 1, "ddl", [], tables[:1], of_job=BATCH),
            run("COMPLETE", 2, "ddl", [], tables[1:], of_job=BATCH),
        ],
    )

    assert arrows(lineage(engine, "t")) == ["job:ns:ddl -> dataset:db:t"]


@pytest.mark.parametrize("job", ["etl", "ddl"])
def test_last_write_of_a_table_is_none_that_only_altered_it(engine: Engine, job: str) -> None:
    """An application's ALTER and its INSERT are runs of one job, so both cases count."""
    fill(
        engine,
        [
            run("COMPLETE", 1, "etl", ["a"], ["t"], of_job=BATCH),
            run("COMPLETE", 2, job, [], [changed("t", "ALTER")], run_id="2", of_job=BATCH),
            run("COMPLETE", 3, "report", ["t"], [], run_id="3"),
        ],
    )
    now = view("2026-11-20T12:10:00Z").at
    with reader(engine) as connection:
        table = node_called(connection, "dataset:db:t").id
        writes = newest_writes(connection, [table], View(now))
        past = newest_writes(connection, [table], View(now, past=True))
        listed = datasets_page(connection, ALL, now, 10, None)["items"]
        detail = job_detail(connection, node_called(connection, f"job:ns:{job}"), now)
        graph = run_graph(connection, {"runId": "report-3", "depth": 1}, View(now))
        history = "SELECT job, run_id FROM sink_job_lineage_history WHERE \"table\" = 't'"
        rows = connection.execute(text(history)).all()

    assert [each[table].run.run_id for each in (writes, past)] == ["etl-1", "etl-1"]
    assert [one["latestWrite"]["runId"] for one in listed if one["name"] == "t"] == ["etl-1"]
    assert detail["writes"] == []
    assert [edge["source"] for edge in graph["edges"]] == ["run:etl-1"]
    assert [tuple(row) for row in rows] == [("etl", "etl-1")]
