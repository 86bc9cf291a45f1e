"""The thread that looks at the store twice a minute, so that a scrape never waits for the database.

What it found stays until it looks again; `strandline_store_sample_timestamp_seconds` says how old
that is.
"""

import time
from collections.abc import Callable
from heapq import nlargest

from sqlalchemy import Engine

from strandline.core.versions.delays import staleness
from strandline.core.versions.members import versions
from strandline.core.versions.model import Model
from strandline.metrics import StoreGauges
from strandline.runtime.follower import Follower
from strandline.runtime.periodic import Turns
from strandline.store.catalog.gauges import run_counts, store_size, target_states
from strandline.store.sql.engine import read_from
from strandline.store.versions.fact_log import waiting_after

LOOK_SECONDS = 30.0
MOST_GROUPS = 100  # a streaming job outside any group is a group of its own
MICRO = 1_000_000


def sampling(
    engine: Engine,
    follower: Follower,
    gauges: StoreGauges,
    retention_days: int | None,
    complain: Callable[[str], None],
) -> Turns:
    """Look at once, and again until stopped."""
    gauges.retention_days.set(retention_days or 0)

    def look() -> None:
        sample(engine, follower, gauges, time.time())

    return Turns("sampling", look, LOOK_SECONDS, complain, at_once=True)


def sample(engine: Engine, follower: Follower, gauges: StoreGauges, now: float) -> None:
    """Set all gauges to what the store holds at this moment."""
    _sample_store(engine, gauges, now)
    _sample_follower(engine, follower, gauges, now)
    with follower.model() as model:
        _sample_groups(model, gauges, now)
    gauges.looked_at.set(now)


def _sample_store(engine: Engine, gauges: StoreGauges, now: float) -> None:
    with read_from(engine) as connection:
        runs, size = run_counts(connection, round(now * MICRO)), store_size(connection)
        targets = target_states(connection)
    gauges.export_behind.clear()
    gauges.export_failures.clear()
    for target in targets:
        gauges.export_behind.labels(target.name).set(target.behind)
        gauges.export_failures.labels(target.name).set(target.failures)
    for state, number in (("running", runs.running), ("lost", runs.lost), ("failed", runs.failed)):
        gauges.runs.labels(state).set(number)
    gauges.dead_letters.set(size.dead_letters)
    gauges.unread_events.set(size.unread_events)
    gauges.database_bytes.set(size.database_bytes)
    gauges.oldest_event.set((size.oldest_event or 0) / MICRO)
    gauges.newest_event.set((size.newest_event or 0) / MICRO)


def _sample_follower(engine: Engine, follower: Follower, gauges: StoreGauges, now: float) -> None:
    with read_from(engine) as connection:
        waiting = waiting_after(connection, follower.seq)
    gauges.behind_facts.set(waiting.facts)
    gauges.delay_seconds.set(
        0 if waiting.oldest_at is None else max(0.0, now - waiting.oldest_at / MICRO)
    )
    gauges.news.set(waiting.news)


def _sample_groups(model: Model, gauges: StoreGauges, now: float) -> None:
    """Sample the groups that are most behind; of too many the others are left out."""
    samples = {
        name: _group(model, name, now) for name, group in model.groups.items() if group.newest
    }
    gauges.barrier.clear()
    gauges.staleness.clear()
    for name in nlargest(MOST_GROUPS, samples, key=lambda name: (samples[name][1], name)):
        strong, age = samples[name]
        gauges.barrier.labels(name, "newest").set(model.groups[name].newest or 0)
        gauges.barrier.labels(name, "strong").set(strong)
        gauges.staleness.labels(name).set(age)


def _group(model: Model, name: str, now: float) -> tuple[int, float]:
    """Return a group's strong barrier, and the age of the first barrier that a table lacks.

    The strong barrier is 0 if there is none; the age is None if no table lacks one.
    """
    tables = [
        table for table, of in model.group_of.items() if of == name and model.is_tracked(table)
    ]
    barriers = [barrier for barrier in versions(model, tables).values() if barrier is not None]
    strong = min(barriers, default=0)
    return strong, max((staleness(model, table, now).seconds for table in tables), default=0.0)
