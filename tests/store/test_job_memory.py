"""Answers with jobs from memory equal those of the database byte for byte."""

import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from sqlalchemy import Connection, Engine

from fixtures.sqlite_first import database_url, own_database_url  # noqa: F401 - PostgreSQL is slow here
from store.test_any_order import CUTS, FOLDED, Arrival, fixture, histories
from strandline.runtime import job_memory
from strandline.runtime.job_memory import JobMemory
from strandline.store.ingest import take as taking
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.lineage import graph_log
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.sql.engine import reading
from strandline.store.sql.shared_settings import raise_epoch
from worlds.builders import encode
from worlds.scenarios.kept_graph import (
    MOMENT,
    PLENTY,
    different,
    follow,
    nodes,
    random_event,
    story,
)
from worlds.scenarios.plain import parent, run
from worlds.scenarios.taking import fill


def emptied(engine: Engine) -> None:
    """Let the store hold nothing."""
    with engine.begin() as connection:
        for table in (*FOLDED, "raw_events", "event_keys", "body_references"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        raise_epoch(connection)


def check(engine: Engine, history: Sequence[Arrival], cuts: Sequence[int]) -> None:
    """Ask everything after each batch of a history; fail where memory answers otherwise."""
    emptied(engine)
    follow(engine)
    memory, caches = JobMemory(PLENTY), Caches()
    records = [Record(encode(one), received) for one, received in history]
    for start, end in pairwise(
        sorted({0, len(records), *(cut % (len(records) + 1) for cut in cuts)})
    ):
        with engine.begin() as connection:
            take(connection, records[start:end], caches)
        caches.commit()
        if found := different(engine, memory):
            events = "\n".join(
                f"{orjson.dumps(event).decode()} received {at}" for event, at in history[:end]
            )
            pytest.fail(
                f"{found}\nafter {end} of {len(history)} events, cuts {cuts}:\n{events}",
                pytrace=False,
            )


@settings(fixture, max_examples=15)
@given(history=histories(), cuts=CUTS)
def test_memory_matches_sqlite_for_any_history(
    sqlite_engine: Engine, history: list[Arrival], cuts: list[int]
) -> None:
    check(sqlite_engine, history, cuts)


@pytest.mark.postgres
@pytest.mark.slow
@settings(fixture, max_examples=10)
@given(history=histories(), cuts=CUTS)
def test_memory_matches_postgresql_for_any_history(
    postgres_engine: Engine, history: list[Arrival], cuts: list[int]
) -> None:
    check(postgres_engine, history, cuts)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_memory_matches_the_database_after_any_operation(
    followed: Engine, memory: JobMemory, seed: int
) -> None:
    done = []
    for what in story(followed, random.Random(seed)):
        done.append(what)
        assert different(followed, memory) == "", done


def nothing(*_: Any) -> None:
    """Note nothing."""


def without_runs(connection: Connection, found: Sequence[graph_log.GraphNews]) -> graph_log.Changed:
    """Return no changes."""
    return graph_log.Changed()


def a_child_fails(engine: Engine) -> Iterator[str]:
    """Its last event does not say whose child it is."""
    fill(
        engine,
        [run("START", 1, "app", ["a"], ["b"]), run("START", 2, "app.one", of_run=parent("app"))],
    )
    yield "start"
    fill(engine, [run("FAIL", 3, "app.one")])
    yield "end"


def an_application_ends(engine: Engine) -> Iterator[str]:
    """End an application, and with it the runs below it."""
    fill(
        engine,
        [run("START", 1, "app"), run("START", 2, "app.one", ["a"], ["b"], of_run=parent("app"))],
    )
    yield "start"
    fill(engine, [run("COMPLETE", 3, "app")])
    yield "end"


def a_job_writes_more(engine: Engine) -> Iterator[str]:
    """A second run of a job writes another table."""
    fill(engine, [run("COMPLETE", 1, "load", ["a"], ["b"])])
    yield "first"
    fill(engine, [run("COMPLETE", 2, "load", ["a"], ["c"], run_id="2")])
    yield "second"


SCENES = (a_child_fails, an_application_ends, a_job_writes_more)


@pytest.mark.parametrize("scene", SCENES)
def test_changes_of_a_run_update_dependent_entries(
    followed: Engine, memory: JobMemory, scene: Callable[[Engine], Iterator[str]]
) -> None:
    assert [different(followed, memory) for _ in scene(followed)] == ["", ""]


@pytest.mark.parametrize(
    ("module", "name", "broken", "scene"),
    [
        (taking, "note_rows", nothing, a_job_writes_more),
        (JobMemory, "_drop", nothing, a_job_writes_more),
        (job_memory, "around", without_runs, a_job_writes_more),
    ],
)
def test_comparison_detects_missed_changes(
    sqlite_engine: Engine,
    memory: JobMemory,
    module: Any,
    name: str,
    broken: Callable[..., Any],
    scene: Callable[[Engine], Iterator[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: the comparison fails once a step from change to memory is removed."""
    follow(sqlite_engine)
    monkeypatch.setattr(module, name, broken)

    assert any(different(sqlite_engine, memory) for _ in scene(sqlite_engine))


WRITER = """
import sys
sys.path[:0] = {path!r}
from random import Random
from worlds.scenarios.kept_graph import random_event
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.engine import make_engine
batches, chance = Batches(make_engine({url!r})), Random({seed})
for step in range(60):
    batches.write([random_event(chance, step) for _ in range(chance.randint(1, 3))])
"""


@pytest.mark.slow
def test_memory_follows_writes_of_other_processes(own_engine: Engine, memory: JobMemory) -> None:
    follow(own_engine)
    fill(own_engine, [random_event(random.Random(9), 0)])
    url = own_engine.url.render_as_string(hide_password=False)
    scripts = [WRITER.format(path=sys.path, url=url, seed=seed) for seed in (1, 2)]
    writers = [subprocess.Popen([sys.executable, "-c", script]) for script in scripts]
    asked = 0
    while any(writer.poll() is None for writer in writers):
        with reading(own_engine).connect() as connection:
            for node in nodes(connection):
                shared = memory.view(connection, View(MOMENT))
                lineage_of(connection, Question(node, View(MOMENT)), shared)
                asked += shared is not None

    assert [writer.returncode for writer in writers] == [0, 0]
    assert different(own_engine, memory) == ""
    assert asked
