"""Facets shared by many runs are stored once and behave as if each run had its own."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson
import pytest
from sqlalchemy import Engine, delete

from strandline.core.openlineage.facets import RUN
from strandline.core.openlineage.names import run_id_of
from strandline.history.compare import differences
from strandline.store.forgetting.forget import Requester, forget
from strandline.store.forgetting.subjects import Subject
from strandline.store.ingest.forget import forget_secret
from strandline.store.ingest.retention import expire
from strandline.store.ingest.take import Caches
from strandline.store.lineage.facets import facets_of, value_of
from strandline.store.lineage.failures import failures
from strandline.store.marquez.facet_values import all_facets
from strandline.store.schema.dataset_tables import facet_sets
from worlds.builders import (
    LONG_AGO,
    NOON,
    Json,
    counts,
    dataset,
    event,
    newest_facets,
    run_id,
    store,
    store_plainly,
)

ENGINE = {"processing_engine": {"name": "spark", "version": "4.1.4"}}
PROPERTIES = {"spark_properties": {"properties": {"spark.master": "yarn"}}}
LONG = {"environment": {"text": "x" * 2000}}
BANK = dataset("bank.a", schema={"fields": []}, documentation={"description": "accounts"})


def runs(count: int, **more: Any) -> list[Json]:
    """Runs of a job that have the same facets."""
    return [
        event("COMPLETE", run, seconds=run, facets=ENGINE | PROPERTIES | LONG, **more)
        for run in range(1, count + 1)
    ]


def of_run(number: int, job: str = "etl") -> int:
    return run_id_of(run_id(number), "tests", job)


def test_facets_shared_by_runs_are_stored_once(engine: Engine, plain_engine: Engine) -> None:
    store(engine, runs(20), received_at=NOON, size=6)
    store_plainly(plain_engine, runs(20), received_at=NOON, size=6)

    assert counts(engine, "facet_sets", "facet_uses", "facets", "facet_bodies") == {
        "facet_sets": 3, "facet_uses": 18, "facets": 6, "facet_bodies": 1,
    }  # fmt: skip
    assert counts(plain_engine, "facet_sets", "facet_uses", "facets") == {
        "facet_sets": 0,
        "facet_uses": 0,
        "facets": 60,
    }
    assert differences(engine, plain_engine) == {}
    ids = [of_run(number) for number in range(1, 21)]
    found = []
    for each in (engine, plain_engine):
        with each.connect() as connection:
            groups = {id_: id_ for id_ in ids}
            answers = facets_of(connection, RUN, ids), all_facets(connection, RUN, groups)
            found.append(
                [orjson.loads(orjson.dumps(one, option=orjson.OPT_NON_STR_KEYS)) for one in answers]
            )
            assert value_of(connection, RUN, ids[5:6], "processing_engine").version == "4.1.4"
    assert found[0] == found[1]
    assert found[0][0][str(ids[-1])] == ENGINE | PROPERTIES | LONG


def test_difference_within_a_set_is_found(engine: Engine, plain_engine: Engine) -> None:
    store(engine, runs(4), received_at=NOON)
    store_plainly(plain_engine, runs(4), received_at=NOON)
    with engine.begin() as connection:
        connection.execute(delete(facet_sets).where(facet_sets.c.key == "processing_engine"))

    assert differences(engine, plain_engine) == {"facets": 2}


POOL: dict[str, list[Json | str]] = {
    "processing_engine": [{"version": "1"}, {"_deleted": True}],
    "spark_properties": [{"properties": {"a": "b"}}, {"properties": "not as specified"}],
    "environment": [{"text": "x" * 2000}, {"text": "y" * 2000}],
    "errorMessage": [{"message": "m", "programmingLanguage": "java"}],
    "nominalTime": [{"nominalStartTime": "2026-11-20T12:00:00Z"}],
}


def history(chance: Random) -> list[Json]:
    """Events of a few runs with facets of a few contents, several of them at one moment."""
    found = []
    for number in range(50):
        own: Json = {
            key: chance.choice(some) for key, some in POOL.items() if chance.random() < 0.8
        }
        if chance.random() < 0.3:
            own["counter"] = {"value": number}
        kind = chance.choice(("START", "RUNNING", "COMPLETE"))
        found.append(event(kind, chance.randrange(1, 6), seconds=chance.randrange(8), facets=own))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_order_and_repetition_leave_what_single_rows_leave(
    engine: Engine, plain_engine: Engine, seed: int
) -> None:
    chance = Random(seed)
    events = history(chance)
    store_plainly(plain_engine, events, received_at=NOON)
    store(engine, events, received_at=NOON, size=chance.choice((1, 3, 11)))
    with engine.connect() as connection, plain_engine.connect() as plain:
        assert newest_facets(connection) == newest_facets(plain)
        assert {row[7] == "" for row in newest_facets(connection)} == {
            True,
            False,
        }  # some are quarantined
    assert counts(engine, "facet_uses")["facet_uses"] > 0

    again = [*events, *events]
    chance.shuffle(again)
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM event_keys")
        connection.exec_driver_sql("DELETE FROM raw_events")
        for table in ("facets", "facet_uses") if seed % 2 else ():
            connection.exec_driver_sql(f"DELETE FROM {table}")
    store(engine, again, NOON, size=9)
    assert differences(engine, plain_engine) == {}


def test_later_smaller_set_keeps_earlier_facets(engine: Engine) -> None:
    """A newer set does not remove facets that only an older one has; `_deleted` does."""
    gone = {"spark_properties": {"_deleted": True}}
    events = [event("START", run, facets=ENGINE | PROPERTIES | LONG) for run in (1, 2, 3)]
    events += [event("COMPLETE", run, seconds=9, facets=ENGINE | gone) for run in (1, 2, 3)]
    store(engine, events, size=1)

    with engine.connect() as connection:
        found = orjson.loads(orjson.dumps(facets_of(connection, RUN, [of_run(3)])[of_run(3)]))
    assert counts(engine, "facet_uses") == {"facet_uses": 2}
    assert found == ENGINE | LONG


def test_failure_reason_may_be_in_a_set(engine: Engine) -> None:
    why = {"errorMessage": {"message": "no space left", "programmingLanguage": "java"}}
    store(engine, [event("FAIL", run, facets=ENGINE | why) for run in range(1, 5)])

    with engine.connect() as connection:
        assert failures(connection, [of_run(4), of_run(1)]) == dict.fromkeys(
            (of_run(4), of_run(1)), "no space left"
        )


def test_retention_removes_unused_sets(engine: Engine) -> None:
    old, new = (
        runs(4),
        [event("COMPLETE", run, "other", facets=ENGINE | PROPERTIES) for run in range(11, 15)],
    )
    store(engine, old, received_at=LONG_AGO)
    store(engine, new)
    for one in old:
        one["eventTime"] = "2020-01-01T00:00:00Z"
    store(engine, old, received_at=LONG_AGO)
    before = counts(engine, "facet_sets", "facet_uses", "facet_bodies")

    with engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE runs SET newest_at = 0 WHERE received_at < 1700000000000000"
        )
        expire(connection, datetime.now(UTC) - timedelta(days=1))

    assert before == {"facet_sets": 5, "facet_uses": 4, "facet_bodies": 1}
    assert counts(engine, "facet_sets", "facet_uses", "facet_bodies") == {
        "facet_sets": 2,
        "facet_uses": 2,
        "facet_bodies": 0,
    }
    with engine.connect() as connection:
        assert facets_of(connection, RUN, [of_run(14, "other")]).keys() == {of_run(14, "other")}


def test_writer_stores_a_set_again_after_retention_removed_it(engine: Engine) -> None:
    caches = Caches()

    def taken(first: int, received_at: datetime) -> None:
        events = [
            event("COMPLETE", run, f"job{run}", facets=ENGINE | LONG)
            for run in range(first, first + 4)
        ]
        store(engine, events, received_at, writer=caches)

    taken(1, LONG_AGO)
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM facet_uses")
        connection.exec_driver_sql("DELETE FROM facets")
        expire(connection, NOON - timedelta(days=9999))
    assert counts(engine, "facet_sets", "facet_bodies") == {"facet_sets": 0, "facet_bodies": 0}

    taken(5, NOON)
    assert counts(engine, "facet_sets", "facet_uses", "facet_bodies") == {
        "facet_sets": 2,
        "facet_uses": 4,
        "facet_bodies": 1,
    }
    with engine.connect() as connection:
        assert (
            orjson.loads(
                orjson.dumps(facets_of(connection, RUN, [of_run(8, "job8")])[of_run(8, "job8")])
            )
            == ENGINE | LONG
        )


@pytest.mark.parametrize(
    "subject",
    [
        Subject("run", id=run_id(7)),
        Subject("job", "tests", "etl"),
        Subject("dataset", "hive://lake", "bank.a"),
    ],
    ids=["run", "job", "dataset"],
)
def test_forgetting_removes_a_subjects_facets_and_keeps_shared_ones(
    engine: Engine, plain_engine: Engine, subject: Subject
) -> None:
    others = [
        event("COMPLETE", run, "other", inputs=[BANK], facets=ENGINE | PROPERTIES | LONG)
        for run in range(21, 25)
    ]
    events = [*runs(8, outputs=[BANK]), *others]
    store(engine, events, received_at=NOON, size=5)
    store_plainly(plain_engine, events, received_at=NOON, size=5)

    done = [
        forget(each, subject, Requester(NOON, "tests"), execute=True)
        for each in (engine, plain_engine)
    ]

    assert done[0].gone == done[1].gone
    assert done[0].changed == done[1].changed
    assert done[0].gone["facets"] >= 2
    assert differences(engine, plain_engine) == {}
    with engine.connect() as connection:
        assert (facets_of(connection, RUN, [of_run(7)]) == {}) == (subject.kind != "dataset")
        assert facets_of(connection, RUN, [of_run(24, "other")])[of_run(24, "other")].keys() == {
            *ENGINE,
            *PROPERTIES,
            *LONG,
        }


def test_secret_is_removed_from_sets(engine: Engine) -> None:
    secret = {"environment": {"text": "of zzoddword"}}
    store(engine, [event("COMPLETE", run, facets=ENGINE | secret) for run in range(1, 5)])

    found = forget_secret(engine, "zzoddword", execute=True)

    assert found["facet_sets"] == 1
    with engine.connect() as connection:
        held = orjson.loads(orjson.dumps(facets_of(connection, RUN, [of_run(4)])[of_run(4)]))
    assert held == ENGINE | {"environment": {"text": "of [redacted]"}}
