"""Several jobs that report one run id have a run each; a job that was renamed has one."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.cli.commands.lists import RUN_COLUMNS
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.details import job_detail
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.runs import SHARED_RUN_ID, runs_page
from strandline.store.ingest.take import Caches
from strandline.store.lineage.lookup import job_of
from worlds.builders import dataset, event, parent, rows, store

NOW = micros_of(datetime.now(UTC))
A, B, C, D = (dataset(f"bank.{name}") for name in "abcd")
START_FIRST = event("START", job="first", inputs=[A])
END_FIRST = event("COMPLETE", job="first", seconds=1, outputs=[B])
START_SECOND = event("START", job="second", seconds=2, inputs=[C])
END_SECOND = event("COMPLETE", job="second", seconds=3, outputs=[D])
CHILD = event("COMPLETE", 2, "child", 4, inputs=[B], facets=parent(1, "first"))


def runs_of(engine: Engine) -> list[tuple[Any, ...]]:
    """Return job, state and what was read and written of each run that had an event."""
    query = """
SELECT job.name, run.state, relation.direction, dataset.name
  FROM runs run
  JOIN jobs job ON job.id = run.job_id
  LEFT JOIN run_relations relation ON relation.run_id = run.id
  LEFT JOIN datasets dataset ON dataset.id = relation.dataset_id
 WHERE run.first_at IS NOT NULL"""
    return rows(engine, query)


def parents_of(engine: Engine) -> list[tuple[str, str]]:
    """Return the jobs of the runs and of their parents' runs."""
    query = """
SELECT own.name, above.name
  FROM run_parents link
  JOIN runs run ON run.id = link.run_id
  JOIN jobs own ON own.id = run.job_id
  JOIN runs parent ON parent.id = link.parent_run_id
  JOIN jobs above ON above.id = parent.job_id"""
    return rows(engine, query)


def notices(engine: Engine) -> list[tuple[str, str | None]]:
    """Return the job and the notice of each run that is listed."""
    with engine.connect() as connection:
        page = runs_page(connection, None, Filter(), NOW, 100, None)
    return sorted((run["job"]["name"], run.get("notice")) for run in page["items"])


BOTH = [
    ("first", 4, 0, "bank.a"),
    ("first", 4, 1, "bank.b"),
    ("second", 4, 0, "bank.c"),
    ("second", 4, 1, "bank.d"),
]


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_each_job_has_the_run_that_it_reported(
    sqlite_engine: Engine, order: Sequence[int], size: int
) -> None:
    events = [START_FIRST, END_FIRST, START_SECOND, END_SECOND]

    store(sqlite_engine, [events[place] for place in order], size=size)

    assert runs_of(sqlite_engine) == BOTH
    assert notices(sqlite_engine) == [("first", SHARED_RUN_ID), ("second", SHARED_RUN_ID)]
    with sqlite_engine.connect() as connection:
        page = runs_page(connection, None, Filter(), NOW, 100, None)
    assert {RUN_COLUMNS["REASON"](run) for run in page["items"]} == {SHARED_RUN_ID}
    with sqlite_engine.connect() as connection:
        detail = job_detail(connection, job_of(connection, "tests", "first"), NOW)
    assert detail["writes"] == ["dataset:hive://lake:bank.b"]


@pytest.mark.parametrize("order", list(permutations(range(2))), ids=str)
def test_a_start_alone_under_another_name_is_of_the_renamed_job(
    engine: Engine, order: Sequence[int]
) -> None:
    events = [START_FIRST, END_SECOND]

    store(engine, [events[place] for place in order], size=1)

    assert runs_of(engine) == [("second", 4, 0, "bank.a"), ("second", 4, 1, "bank.d")]
    assert notices(engine) == [("second", None)]


def test_the_later_name_counts_although_its_clock_is_behind(engine: Engine) -> None:
    late_start = event("START", job="first", seconds=60, inputs=[A])

    store(engine, [late_start, END_SECOND])

    assert {job for job, *_ in runs_of(engine)} == {"second"}


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_a_run_below_goes_with_the_job_that_it_names(
    sqlite_engine: Engine, order: Sequence[int]
) -> None:
    events = [START_FIRST, END_FIRST, END_SECOND, CHILD]

    store(sqlite_engine, [events[place] for place in order], size=1)

    assert parents_of(sqlite_engine) == [("child", "first")]


def test_another_writer_learns_which_runs_are_shared(engine: Engine) -> None:
    first, second = Caches(), Caches()
    store(engine, [START_FIRST], writer=first)
    store(engine, [START_SECOND], writer=second)

    store(engine, [END_FIRST, END_SECOND], writer=first)

    assert runs_of(engine) == BOTH


def test_what_a_rolled_back_transaction_found_is_found_again(engine: Engine) -> None:
    writer = Caches()
    store(engine, [START_FIRST, END_FIRST], writer=writer)
    writer.share_runs([1])
    writer.discard()

    assert not writer.memory.shared_runs


def test_run_without_stored_events_keeps_its_rows(engine: Engine) -> None:
    store(engine, [START_FIRST, END_FIRST])
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM raw_events")

    store(engine, [START_SECOND])
    store(engine, [END_SECOND])

    found = runs_of(engine)
    assert ("second", 4, 1, "bank.d") in found
    assert any(row[3] == "bank.b" for row in found)
