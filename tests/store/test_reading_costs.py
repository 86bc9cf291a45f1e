"""The cost of a walk depends on its answer only, counted in SQLite VM steps."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, select

from strandline.alerts.conditions import store_troubles
from strandline.core.walk import Direction
from strandline.store.catalog.runs import newest_run_ids, runs_called
from strandline.store.ingest.take import Record
from strandline.store.lineage import job_steps, known_jobs
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.job_steps import Leave
from strandline.store.lineage.known_jobs import KnownJob, load_jobs
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.relations import RECENT_RUNS
from strandline.store.lineage.run_state import View, rows_of_runs
from strandline.store.lineage.sightings import LAST_BATCHES
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.questions.impact import Removal, impact_of
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.schema.snapshot_tables import job_barriers
from strandline.store.versions.fact_log import RUN, VersionNews
from strandline.store.versions.facts_from_rows import facts_of
from worlds.builders import QUERY
from worlds.scenarios.bank import FACET, bank
from worlds.scenarios.plain import columns as columns_from
from worlds.scenarios.plain import parent, run
from worlds.scenarios.taking import fill, reader, view

NOW = view("2026-11-20T13:00:00Z")
BEFORE = view("2026-11-20T12:04:00Z", past=True, runs=5)
UP = Direction.UPSTREAM
Walk = Callable[[Connection], object]


@pytest.fixture
def engine(own_sqlite_engine: Engine) -> Engine:
    """Use a file of the test's own: it is analysed, and steps of its plans are counted."""
    return own_sqlite_engine


@pytest.mark.postgres
@pytest.mark.parametrize(
    "question",
    [
        lambda connection: rows_of_runs(
            connection, connection.scalars(select(runs.c.id).limit(20))
        ),
        lambda connection: runs_called(connection, "j3-57"),
        lambda connection: newest_run_ids(connection, list(connection.scalars(select(jobs.c.id)))),
        lambda connection: lineage_of(
            connection, Question(node_called(connection, "of j3"), replace(NOW, live=True), UP)
        ),
        lambda connection: lineage_of(
            connection, Question(node_called(connection, "of j3"), BEFORE, UP)
        ),
    ],
    ids=["states", "by name", "newest", "live", "past"],
)
def test_postgresql_looks_up_run_ends_without_scanning_the_views(
    postgres_engine: Engine, question: Walk
) -> None:
    """This holds with planner statistics too: the views exceed its join reordering limit."""
    each = [(f"j{job}", at, parent("app", str(at))) for at in range(300) for job in range(10)]
    fill(
        postgres_engine,
        [
            run("COMPLETE", at, job, [f"for {job}"], [f"of {job}"], run_id=str(at), of_run=app)
            for job, at, app in each
        ],
    )
    with postgres_engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    with reader(postgres_engine) as connection:
        before = rows_read(connection)

        assert question(connection)
        assert rows_read(connection) - before < len(each) / 2


def rows_read(connection: Connection) -> int:
    """Count the rows of runs that PostgreSQL has read in this transaction."""
    read = (
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'runs'"
    )
    return int(connection.exec_driver_sql(read).scalar_one())


def test_each_level_of_a_walk_takes_no_statement(engine: Engine) -> None:
    """The jobs of all levels are found with one statement and read together."""
    fill(engine, [run("COMPLETE", at, f"j{at}", [f"t{at}"], [f"t{at + 1}"]) for at in range(6)])

    one, four = (len(statements_of(engine, depth)) for depth in (1, 4))

    assert four == one


def test_impact_reads_each_job_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its walks between tables and between columns share them."""
    made = [columns_from(f"t{at + 1}", id=(f"t{at}", "id")) for at in range(6)]
    fill(engine, [run("COMPLETE", at, f"j{at}", [f"t{at}"], [made[at]]) for at in range(6)])
    read: list[int] = []

    def counted(connection: Connection, seen: View, names: Collection[int]) -> dict[int, KnownJob]:
        read.extend(names)
        return load_jobs(connection, seen, names)

    monkeypatch.setattr(known_jobs, "load_jobs", counted)
    with reader(engine) as connection:
        node = node_called(connection, "t1")
        affected = impact_of(connection, Removal(node, None, NOW, None, 100))["affected"]

    assert affected == {"columns": 5, "datasets": 5, "jobs": 5}
    assert len(read) == len(set(read)) == 5


def statements_of(engine: Engine, depth: int) -> list[str]:
    """Return the statements for the sources of the last table."""
    asked: list[str] = []
    with reader(engine) as connection:
        event.listen(connection, "before_cursor_execute", lambda *what: asked.append(what[2]))
        lineage_of(connection, Question(node_called(connection, "t6"), NOW, UP, depth))
    return asked


def test_job_of_many_inputs_and_outputs_makes_only_the_steps_that_leave(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of inputs times outputs would have 10,000 steps here, and a million of 1,000."""
    reads, writes = ([f"{side}{number}" for number in range(100)] for side in ("in", "out"))
    fill(engine, [run("COMPLETE", 1, "wide", reads, writes)])
    made: list[Any] = []

    class CountedReason(job_steps.Reason):
        def __new__(cls, *args: Any) -> Any:
            made.append(args)
            return super().__new__(cls, *args)

    monkeypatch.setattr(job_steps, "Reason", CountedReason)
    with reader(engine) as connection:
        question = Question(node_called(connection, "in1"), NOW, Direction.BOTH, 1)
        answer = lineage_of(connection, question)

    assert (len(answer["nodes"]), len(answer["edges"]), answer["complete"]) == (102, 101, True)
    assert len(made) == 100


def test_sink_sources_take_linear_work_in_a_level() -> None:
    """A hub's level has thousands of nodes; scanning them for each sink would be quadratic."""
    nodes = Unlisted(range(5_000))

    left = Leave(nodes, Direction.DOWNSTREAM).sources(-1, {7: "", 9_000: ""}.keys())

    assert list(left) == [7]


class Unlisted(frozenset[int]):
    """A set that nobody goes through."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("all nodes were looked at")


def stream(connection: Connection) -> object:
    return lineage_of(connection, Question(node_called(connection, "q"), NOW, UP))


def micro_batches(number: int) -> list[Record]:
    """Runs of one streaming query below one application, as the stock listener has them."""
    of_app = [
        parent("app")
        | {"spark_jobDetails": FACET | {"jobDescription": f"q\nid = {QUERY}\nbatch = {turn}"}}
        for turn in range(number)
    ]
    return [
        run("COMPLETE", turn, "app.append", ["a"], ["b"], run_id=str(turn), of_run=facets)
        for turn, facets in enumerate(of_app)
    ]


def facts(connection: Connection) -> object:
    """Return the facts of two commits in the log of versions."""
    marks = connection.execute(select(job_barriers.c.run_id, job_barriers.c.barrier).limit(2))
    return facts_of(
        connection, [VersionNews(number, RUN, *mark) for number, mark in enumerate(marks)]
    )


def tables(connection: Connection) -> object:
    return lineage_of(connection, Question(node_called(connection, "dataset:db:c"), NOW, UP))


def past_tables(connection: Connection) -> object:
    return lineage_of(
        connection, Question(node_called(connection, "dataset:db:c"), replace(NOW, past=True), UP)
    )


def columns(connection: Connection) -> object:
    return column_lineage_of(connection, Question(node_called(connection, "dataset:db:c"), NOW, UP))


def snapshots(connection: Connection) -> object:
    return snapshot_lineage_of(connection, node_called(connection, "bank.balance"), "405", NOW, UP)


def times(number: int) -> list[Record]:
    """Runs of two jobs, one after the other."""
    found = []
    for turn in range(number):
        found.append(run("COMPLETE", turn, "one", ["a"], ["b"], run_id=str(turn)))
        found.append(run("COMPLETE", turn, "two", ["b"], ["c"], run_id=str(turn)))
    return found


def cost_after(engine: Engine, walk: Walk, events: list[Record]) -> int:
    """Steps that a walk takes when the events are stored."""
    fill(engine, events)
    with reader(engine) as connection, counting(connection) as steps:
        walk(connection)
    return len(steps)


@pytest.mark.parametrize("kind", ["START", "FAIL"])
def test_each_trouble_of_a_job_costs_the_same_however_many_of_its_runs_were_good(
    engine: Engine, kind: str
) -> None:
    lease = {"strandline_heartbeat": FACET | {"timeoutSeconds": 60}}

    def look(connection: Connection) -> None:
        assert len(store_troubles(connection, [], NOW.at / 1e6)) == 1

    def bad(numbers: range) -> list[Record]:
        return [run(kind, 2000 + at, "etl", run_id=f"bad-{at}", of_run=lease) for at in numbers]

    fill(engine, [run("COMPLETE", 0, "etl", run_id="good")])
    before = cost_after(engine, look, bad(range(1)))
    of_twenty = cost_after(engine, look, bad(range(1, 21))) - before
    before = cost_after(
        engine, look, [run("COMPLETE", at, "etl", run_id=f"{at}") for at in range(1000)]
    )
    of_twenty_more = cost_after(engine, look, bad(range(21, 41))) - before

    assert of_twenty_more < 2 * of_twenty


@contextmanager
def counting(connection: Connection) -> Iterator[list[None]]:
    """Grows by one with each step."""
    steps: list[None] = []
    raw = connection.connection.dbapi_connection
    assert raw is not None
    raw.set_progress_handler(lambda: steps.append(None), 1)
    yield steps
    raw.set_progress_handler(None, 0)


@pytest.mark.parametrize(
    ("walk", "few", "many"),
    [
        (tables, times(RECENT_RUNS + 1), times(300)),
        (past_tables, times(RECENT_RUNS + 1), times(300)),
        (columns, times(RECENT_RUNS + 1), times(300)),
        (
            tables,
            times(1),
            [run("COMPLETE", 1, f"j{i}", [f"s{i}"], [f"t{i}"]) for i in range(500)],
        ),
        (snapshots, bank(10), bank(400)),
        (facts, bank(10), bank(400)),
        (stream, micro_batches(LAST_BATCHES), micro_batches(5 * LAST_BATCHES)),
    ],
    ids=[
        "old runs, now",
        "old runs, in the past",
        "old runs, by column",
        "unrelated jobs",
        "old barriers",
        "old commits of a stream",
        "old micro-batches",
    ],
)
def test_rows_outside_the_answer_do_not_slow_it_down(
    engine: Engine, walk: Walk, few: list[Record], many: list[Record]
) -> None:
    few_steps = cost_after(engine, walk, few)
    many_steps = cost_after(engine, walk, many)

    assert many_steps < 1.5 * few_steps
