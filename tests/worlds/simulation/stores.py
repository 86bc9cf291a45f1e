"""Load for real processes over real connections, and the check of their stores."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import Engine

from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import moment_of
from strandline.history.compare import differences
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.sql.engine import make_engine
from worlds.builders import encode
from worlds.scenarios.bank import bank
from worlds.simulation.histories import history

# What a job was ever named with may hold a job too many, by who came first: its module says so.
BY_ORDER = {"job_relations"}


def arrivals(seed: int, slices: int) -> list[bytes]:
    """The bank, and jobs that start, end, fail and rename in any order: each event once."""
    now = datetime.now(UTC)
    found = [one.value for one in bank(3 * slices)]
    for number in range(2 * slices):
        chance = random.Random(1000 * seed + number)
        for one, _ in history(chance, now):
            one["job"]["namespace"] = f"story {number}"
            one["run"]["runId"] = f"{number:08x}{one['run']['runId'][8:]}"
            found.append(encode(one))
    random.Random(seed).shuffle(found)
    return found


@contextmanager
def one_by_one(engine: Engine, url: str) -> Iterator[Engine]:
    """A store that took what this one has, each event once, in the order of receipt, in one process."""
    with engine.connect() as connection:
        records = [Record(one.body, moment_of(one.received_at)) for one in events_of(connection)]
    reference, caches = make_engine(url), Caches()
    with reference.begin() as connection:
        take(connection, sorted(records, key=lambda one: one.received_at), caches)
    yield reference
    reference.dispose()


def check(engine: Engine, bodies: Sequence[bytes], url: str) -> None:
    """Everything that was sent is there once, and every row is what one process makes of it."""
    with engine.connect() as connection:
        stored = sorted(one.hash for one in events_of(connection))
        dead = connection.exec_driver_sql(
            "SELECT count(*) FROM set_aside WHERE kind = 'dead'"
        ).scalar()
    assert stored == sorted(map(content_hash, bodies))
    assert dead == 0
    with one_by_one(engine, url) as reference:
        found = differences(reference, engine)
    assert {table: count for table, count in found.items() if table not in BY_ORDER} == {}
