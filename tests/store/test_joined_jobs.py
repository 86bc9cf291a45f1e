"""Jobs whose names differ in a date or an id can be one job, whenever they are joined."""

import random

import pytest
from sqlalchemy import Engine

from strandline.core.openlineage.names import id_of, run_id_of
from strandline.errors import NotFoundError, RefusedError
from strandline.store.catalog.details import job_detail
from strandline.store.forgetting.forget import Requester, Subject, forget
from strandline.store.ingest.job_names import apply_families, planned_families
from strandline.store.ingest.replay import replay
from strandline.store.ingest.take import Caches
from strandline.store.lineage.hidden_nodes import deleted_jobs
from strandline.store.lineage.lookup import job_called, job_of, node_called
from strandline.store.lineage.run_state import View
from strandline.store.marquez.annotations import TAG, Author, Note, annotate, annotations_of
from strandline.store.schema.annotation_tables import DELETED
from strandline.store.search.finding import JOB_NAME, found_by_name
from worlds.builders import (
    NOON,
    Json,
    batch,
    dataset,
    event,
    folded_rows,
    job_event,
    parent,
    rows,
    store,
)

PATTERN = "daily_{date}"
A, B = dataset("bank.a"), dataset("bank.b")
DAYS = ("2026-11-26", "2026-11-27", "2026-11-28")
NOW = 10**18


def events_of(number: int, day: str) -> list[Json]:
    """The events of a day: a run of the job, one below it, a renamed one, a design, a stream."""
    job = f"daily_{day}"
    run, second = 10 * number, 100 * number
    code = {"sql": {"query": f"SELECT {number}"}}
    return [
        event("START", run + 1, job, second, inputs=[A]),
        event("COMPLETE", run + 1, job, second + 1, outputs=[B], job_facets=code),
        event("COMPLETE", run + 2, "child", second + 2, inputs=[B], facets=parent(run + 1, job)),
        event("START", run + 3, job, second + 3, inputs=[A]),
        event("COMPLETE", run + 3, "renamed", second + 4, outputs=[B]),
        event("COMPLETE", "1", job, second + 5, inputs=[B]),  # no UUID: of this job only
        event("COMPLETE", run + 5, "orphan", second + 6, facets=parent(run + 6, job)),
        job_event(job, 7, inputs=[A], outputs=[B]),
        batch(1, run + 7, f"daily_{day}.stream", second + 8, inputs=[A], query=f"q{number}"),
    ]


HISTORY = [one for number, day in enumerate(DAYS, 1) for one in events_of(number, day)]
PATTERNS = [PATTERN, "daily_{date}.stream"]


def join(engine: Engine, *patterns: str) -> int:
    """Join the jobs of these names; gives how many there were."""
    with engine.begin() as connection:
        return apply_families(connection, "tests", patterns or PATTERNS)


def names_of_jobs(engine: Engine) -> set[str]:
    """The names of all jobs."""
    return {name for (name,) in rows(engine, "SELECT name FROM jobs")}


@pytest.mark.parametrize("seed", range(8))
def test_the_moment_of_joining_and_the_order_of_events_do_not_matter(
    engine: Engine, plain_engine: Engine, seed: int
) -> None:
    chance = random.Random(seed)
    events = chance.sample(HISTORY, len(HISTORY))
    join(plain_engine)
    store(plain_engine, HISTORY, NOON)

    first, second = Caches(), Caches()
    moment = chance.randrange(len(events) + 1)
    for place, one in enumerate(events):
        if place == moment:
            join(engine)
        store(engine, [one], NOON, writer=chance.choice((first, second)))
    if moment == len(events):
        join(engine)

    with engine.connect() as connection, plain_engine.connect() as other:
        assert folded_rows(connection) == folded_rows(other)


def test_runs_stay_apart(engine: Engine) -> None:
    store(engine, HISTORY)
    before = rows(engine, "SELECT id, run_id FROM runs")

    assert join(engine, PATTERN) == 3

    assert rows(engine, "SELECT id, run_id FROM runs") == before
    assert names_of_jobs(engine).isdisjoint({f"daily_{day}" for day in DAYS})
    with engine.connect() as connection:
        detail = job_detail(connection, job_of(connection, "tests", PATTERN), NOW)
    assert detail["latestRun"] is not None


def test_a_joined_job_is_found_by_each_of_its_names(engine: Engine) -> None:
    store(engine, HISTORY[:2])
    join(engine)

    with engine.connect() as connection:
        for name in (PATTERN, "daily_2026-11-26", "daily_2031-01-01"):
            assert job_of(connection, "tests", name).name == PATTERN
            assert job_called(connection, name).name == PATTERN
            assert node_called(connection, name).name == PATTERN
        with pytest.raises(NotFoundError):
            job_of(connection, "other", "daily_2026-11-26")
        assert [hit.id for hit in found_by_name(connection, JOB_NAME, "daily", None)] == [
            id_of("job", "tests", PATTERN)
        ]


def test_a_replay_keeps_joined_jobs(engine: Engine, plain_engine: Engine) -> None:
    store(engine, HISTORY[:9])
    join(engine)
    store(engine, HISTORY[9:])

    with engine.connect() as source:
        replay(source, plain_engine)

    with engine.connect() as connection, plain_engine.connect() as other:
        assert folded_rows(connection) == folded_rows(other)


def test_only_the_namespace_and_patterns_that_are_named_are_joined(engine: Engine) -> None:
    others = {"namespace": "others", "name": "daily_2026-11-27", "facets": {}}
    store(engine, [*HISTORY, event("START", 99, "x") | {"job": others}])

    join(engine, PATTERN)

    assert {"daily_2026-11-27", "daily_2026-11-27.stream", PATTERN} <= names_of_jobs(engine)


@pytest.mark.parametrize("pattern", ["daily", "daily_2026-11-27", "{other}"])
def test_a_pattern_that_is_none_is_refused(engine: Engine, pattern: str) -> None:
    with engine.begin() as connection, pytest.raises(RefusedError, match="not a pattern"):
        planned_families(connection, "tests", [pattern])


def test_jobs_of_a_group_are_refused(engine: Engine) -> None:
    of_group = batch(1, 7, "daily_2026-11-26", barrier_facet={"group": "bank"})
    store(engine, [*HISTORY, of_group])

    with pytest.raises(RefusedError, match="daily_2026-11-26: is in a consistency group"):
        join(engine)

    assert PATTERN not in names_of_jobs(engine)


def test_tags_go_with_a_job_and_the_deletion_of_one_day_does_not(engine: Engine) -> None:
    store(engine, HISTORY)
    with engine.begin() as connection:
        for day, name in zip(DAYS, ("gold", "gold", "pii"), strict=True):
            id_ = id_of("job", "tests", f"daily_{day}")
            annotate(connection, Note(id_, "job", TAG, name=name), Author(NOW))
        annotate(connection, Note(id_, "job", DELETED), Author(NOW))
    join(engine)

    joined = id_of("job", "tests", PATTERN)
    with engine.connect() as connection:
        assert annotations_of(connection, {joined: joined})[joined].tags == {"": {"gold", "pii"}}
    assert rows(engine, "SELECT DISTINCT entity_id, kind FROM annotations") == [(joined, TAG)]


@pytest.mark.parametrize("count", [2, 3])
def test_a_joined_job_is_deleted_if_all_that_it_was_are(engine: Engine, count: int) -> None:
    """HISTORY has jobs of three days, and three streams beside them."""
    store(engine, HISTORY)
    ids = [id_of("job", "tests", f"daily_{day}") for day in DAYS]
    with engine.begin() as connection:
        for id_ in ids[:count]:
            annotate(connection, Note(id_, "job", DELETED), Author(NOW))
    join(engine, PATTERN)

    joined = id_of("job", "tests", PATTERN)
    with engine.connect() as connection:
        deleted = deleted_jobs(connection, [joined], View(NOW))
    assert deleted == ({joined} if count == len(ids) else set())


def test_a_joined_job_is_forgotten_under_all_its_names(engine: Engine) -> None:
    store(engine, HISTORY)
    join(engine)
    who = Requester(NOON, "somebody")
    with pytest.raises(RefusedError, match="is joined with other jobs"):
        forget(engine, Subject("job", "tests", "daily_2026-11-26"), who, execute=True)

    forget(engine, Subject("job", "tests", PATTERN), who, execute=True)

    assert PATTERN not in names_of_jobs(engine)


def test_a_run_is_forgotten_by_the_own_name_of_a_joined_job(engine: Engine) -> None:
    """Two days have a run "1", which is no UUID: each is a run of its own."""
    store(engine, [*events_of(1, DAYS[0]), *events_of(2, DAYS[1])])
    join(engine)
    run = Subject("run", "tests", f"daily_{DAYS[0]}", "1")

    forget(engine, run, Requester(NOON, "somebody"), execute=True)

    left = run_id_of("1", "tests", f"daily_{DAYS[1]}")
    assert rows(engine, "SELECT id FROM runs WHERE run_id = '1'") == [(left,)]


def test_a_forgotten_namespace_leaves_no_family(engine: Engine) -> None:
    store(engine, HISTORY)
    join(engine)

    forget(engine, Subject("namespace", "tests"), Requester(NOON, "somebody"), execute=True)

    assert rows(engine, "SELECT value FROM store_settings WHERE key = 'job_families'") == [("[]",)]
    store(engine, [event("COMPLETE", 91, "daily_2026-11-29", 900)])
    assert names_of_jobs(engine) == {"daily_2026-11-29"}
