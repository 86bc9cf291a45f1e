"""Sets of facets for repeated statements about a job or dataset.

Its names, its place and the words that find it are as if each facet had a row.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, select

from strandline.core.openlineage.times import micros_of
from strandline.history.compare import differences
from strandline.store.ingest.labels import relabel
from strandline.store.ingest.retention import expire
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.lineage.dropped import dropped_at
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs
from strandline.store.versions.consumed import batch_jobs
from worlds.builders import (
    LONG_AGO,
    NOON,
    Json,
    counts,
    dataset,
    encode,
    event,
    rows,
    store,
    store_plainly,
    symlink,
    until_waiting,
)
from worlds.sought_words import sought

DATASETS: dict[str, list[Json]] = {
    "catalog": [{"framework": "iceberg", "type": "hive", "name": name} for name in ("lake", "sea")],
    "symlinks": [symlink("bank.a"), symlink("bank.b"), {"_deleted": True}],
    "schema": [{"fields": [{"name": name, "type": "int"}]} for name in ("balance", "owner")],
    "tags": [{"tags": [{"key": key}]} for key in ("gold", "silver")],
    "lifecycleStateChange": [{"lifecycleStateChange": "DROP"}, {"lifecycleStateChange": "CREATE"}],
    "version": [{"datasetVersion": str(number)} for number in range(9)],
}
JOBS: dict[str, list[Json]] = {
    "sql": [{"query": "SELECT balance"}, {"query": "SELECT owner"}],
    "jobType": [
        {"processingType": kind, "integration": "SPARK"} for kind in ("BATCH", "STREAMING")
    ],
    "tags": [{"tags": [{"key": "nightly"}]}, {"_deleted": True}],
}


def named_history(chance: Random) -> list[Json]:
    """Events of a few jobs and tables that say one thing or another of them, some of it again and again."""

    def some(of: dict[str, list[Json]], share: float) -> Json:
        return {
            key: contents[0] if chance.random() < share else chance.choice(contents)
            for key, contents in of.items()
        }

    found = []
    for number in range(40):
        share = chance.choice((1.0, 1.0, 0.6))
        tables = [
            dataset(f"/t{place}", "s3://lake", **some(DATASETS, share))
            for place in chance.sample(range(3), 2)
        ]
        job = f"job{chance.randrange(2)}"
        found.append(
            event(
                "COMPLETE",
                number,
                job,
                chance.randrange(30),
                tables[:1],
                tables[1:],
                job_facets=some(JOBS, share),
            )
        )
    return found


def words(engine: Engine) -> Any:
    with engine.connect() as connection:
        return sought(connection)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_jobs_and_datasets_have_the_names_places_and_words_that_single_rows_give_them(
    engine: Engine, plain_engine: Engine, seed: int
) -> None:
    """Two writers in turns, so that what one of them stored last is news to the other."""
    chance = Random(seed)
    events = named_history(chance)
    shuffled = chance.sample(events, len(events))
    store_plainly(plain_engine, events, received_at=NOON)
    writers = [Caches(), Caches()]
    for start in range(0, len(shuffled), 2):
        store(engine, shuffled[start : start + 2], NOON, writer=writers[start % 6 > 2])

    assert counts(engine, "facet_uses")["facet_uses"] > 3
    assert differences(engine, plain_engine) == {}
    with engine.connect() as connection:
        assert relabel(connection) == 0
    assert words(engine) == words(plain_engine)
    with engine.connect() as connection, plain_engine.connect() as plain:
        ids = connection.scalars(select(datasets.c.canonical_id)).all()
        moment = micros_of(NOON + timedelta(days=1))
        assert dropped_at(connection, ids, moment) == dropped_at(plain, ids, moment)
        job_ids = connection.scalars(select(jobs.c.id)).all()
        assert batch_jobs(connection, job_ids) == batch_jobs(plain, job_ids)


def test_repeated_facets_of_a_job_and_its_tables_are_stored_once(
    engine: Engine, plain_engine: Engine
) -> None:
    table = dataset("/a", "s3://lake", **{key: contents[0] for key, contents in DATASETS.items()})
    events = [
        event(
            "COMPLETE",
            run,
            seconds=run,
            outputs=[table],
            job_facets={key: one[0] for key, one in JOBS.items()},
        )
        for run in range(9)
    ]
    store(engine, events, received_at=NOON, size=1)
    store_plainly(plain_engine, events, received_at=NOON, size=1)

    assert counts(engine, "facet_uses", "facet_sets", "facets") == {
        "facet_uses": 2,
        "facet_sets": 8,
        "facets": 9,
    }
    assert rows(engine, "SELECT DISTINCT at FROM facet_uses") == [
        (micros_of(NOON + timedelta(seconds=8)),)
    ]
    assert differences(engine, plain_engine) == {}


def test_two_writers_do_not_decide_about_one_dataset_at_once(postgres_engine: Engine) -> None:
    """The second waits for the first, and then sees what it stored, though it is in a row that was not there before."""
    writers = {"lake": Caches(), "sea": Caches()}

    def record(name: str, second: float) -> Record:
        catalog = {"framework": "iceberg", "type": "hive", "name": name}
        table = dataset(
            "/w/db/t", "s3://lake", catalog=catalog, documentation={"description": name}
        )
        return Record(encode(event("COMPLETE", str(second), seconds=second, outputs=[table])), NOON)

    for second, name in enumerate(
        ("lake", "sea", "lake", "lake")
    ):  # sea is known to its writer, and no set of it is stored
        with postgres_engine.begin() as connection:
            take(connection, [record(name, second)], writers[name])
        writers[name].commit()
    with ThreadPoolExecutor(1) as pool:
        with postgres_engine.begin() as connection:
            take(connection, [record("sea", 10)], writers["sea"])
            waiting = pool.submit(_take_alone, postgres_engine, record("lake", 11), writers["lake"])
            until_waiting(postgres_engine, waiting)
        waiting.result()

    assert rows(postgres_engine, "SELECT catalog FROM datasets WHERE named = 1") == [("lake",)]


def _take_alone(engine: Engine, record: Record, writer: Caches) -> None:
    with engine.begin() as connection:
        take(connection, [record], writer)


def test_retention_takes_sets_that_newer_ones_overtake(
    engine: Engine, plain_engine: Engine
) -> None:
    def told(text: str, second: int, **more: Json) -> Json:
        table = dataset("a", schema={"fields": []}, documentation={"description": text})
        table["facets"] |= more
        return event("COMPLETE", second, seconds=second, outputs=[table])

    events = [
        told("one", 1),
        told("one", 2),
        told("two", 3),
        told("two", 4),
        told("two", 5, tags={"tags": []}),
    ]
    events += [told("two", 6, tags={"tags": []}), told("three", 7), told("three", 8)]
    store(engine, events, received_at=NOON, size=1)
    store_plainly(plain_engine, events, received_at=NOON, size=1)
    for each in (engine, plain_engine):
        with each.begin() as connection:
            expire(connection, LONG_AGO)

    assert counts(engine, "facet_uses", "facet_sets") == {
        "facet_uses": 2,
        "facet_sets": 5,
    }  # two with tags, and three
    assert differences(engine, plain_engine) == {}
