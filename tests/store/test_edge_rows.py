"""The edges of all jobs as rows are those that the jobs' events state."""

import random
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

from strandline.execution import edge_rows
from strandline.execution.edge_rows import column_edge_rows, job_edge_rows
from worlds.builders import dataset, event, parent, store
from worlds.scenarios.plain import run
from worlds.scenarios.random_graph import random_jobs
from worlds.scenarios.taking import fill, view

NOW = view("2026-11-20T13:00:00Z").at


def names_in(rows: list[dict[str, str | None]], *columns: str) -> list[tuple[str, ...]]:
    """Some columns of rows, nodes by their last names."""
    return sorted(
        tuple((row[column] or "").rpartition(":")[2] for column in columns) for row in rows
    )


def job_edges(connection: Connection) -> list[tuple[str, ...]]:
    return names_in(list(job_edge_rows(connection, NOW)), "source", "job", "target")


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_random_worlds_are_what_their_events_state(
    engine: Engine, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_rows, "JOBS_AT_ONCE", 2)
    jobs = random_jobs(random.Random(seed), 9, 11)
    fill(engine, [job.event() for job in jobs])

    with engine.connect() as connection:
        found = job_edges(connection)
        columns = list(column_edge_rows(connection, NOW))

    triples = {triple for job in jobs for triple in job.triples()}
    assert found == sorted(tuple(name or "" for name in triple) for triple in triples)
    stated = {edge for job in jobs for edge in job.column_edges()}
    assert names_in(
        columns, "source", "source_column", "job", "target", "target_column", "dependency"
    ) == sorted((*source, job, *target, how) for source, job, target, how in stated)
    assert stated


def test_part_of_another_command_has_no_rows_of_its_own(engine: Engine) -> None:
    outer, inner = "app.atomic_create_table_as_select.db_t", "app.append_data.lake_db_t"
    job_type = {"processingType": "BATCH", "integration": "SPARK", "jobType": "SQL_JOB"}
    facets = {"facets": parent(9, "app"), "job_facets": {"jobType": job_type}}
    ends: dict[str, Any] = {"inputs": [dataset("raw")], "outputs": [dataset("t")], **facets}
    store(
        engine,
        [
            event("START", 1, outer, 0, **ends),
            event("START", 2, inner, 10, **ends),
            event("COMPLETE", 2, inner, 20, **ends),
            event("COMPLETE", 1, outer, 30, **ends),
        ],
    )

    with engine.connect() as connection:
        assert [job for _, job, _ in job_edges(connection)] == [outer]


def test_rows_have_the_times_of_the_last_read_and_write(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 20, "etl", ["a"], ["b"])])

    with engine.connect() as connection:
        (row,) = job_edge_rows(connection, NOW)
    assert row == {
        "source": "dataset:db:a",
        "job": "job:ns:etl",
        "target": "dataset:db:b",
        "rule": "allSources",
        "read_at": "2026-11-20T12:00:20Z",
        "written_at": "2026-11-20T12:00:20Z",
    }
