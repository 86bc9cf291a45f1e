"""What happens by itself as time goes on: barriers are cut, runs are lost, jobs that do not come back are retired.

Every server may do this at once. What is due is looked for without a lock and decided under the log's lock, on the newest
model, so nothing happens twice; a server that dies half-way has done nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, or_, select

from strandline.core.barriers import BarrierGivenUp, Fact, JobRetired, RunEnded
from strandline.core.model import Domain, Model
from strandline.core.naming import id_of
from strandline.core.places import Place
from strandline.core.states import NAMES
from strandline.core.versions import ago
from strandline.store.connect import reading
from strandline.store.follower import Follower
from strandline.store.relations import run_silences
from strandline.store.roots import domains_with_interval, interval_cut
from strandline.store.tables import runs

MICRO = 1_000_000
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Intervals:
    """After how many seconds what is due."""

    barrier: float
    timeout: float | None
    resume: float


def attend(engine: Engine, follower: Follower, intervals: Intervals, now: float) -> int:
    """Do what is due at `now`; how many facts that made."""
    with follower.model() as model, reading(engine).connect() as connection:
        if not _due(connection, model, intervals, now):
            return 0

    def decide(connection: Connection, model: Model, _: float) -> tuple[Sequence[Fact], int]:
        facts = _due(connection, model, intervals, now)
        return facts, len(facts)

    return follower.decide(decide)


def _due(connection: Connection, model: Model, intervals: Intervals, now: float) -> list[Fact]:
    return [
        *_over(connection, model, now),
        *_not_back(model, intervals.resume, now),
        *_cuts(connection, model, intervals.barrier, now),
        *_given_up(model, intervals.timeout, now),
    ]


def _over(connection: Connection, model: Model, now: float) -> Iterable[Fact]:
    """Runs of managed jobs that were silent for longer than their lease, or whose end was stored but not told of."""
    running = {(id_of("job", *place.job), place.run): place for place in model.places.values() if place.ended is None}
    jobs = sorted({job for job, _ in running})
    for start in range(0, len(jobs), AT_ONCE):
        query = (
            select(runs.c.job_id, runs.c.run_id, runs.c.state, runs.c.ended_at, run_silences.c.silent_at)
            .join(run_silences, run_silences.c.run_id == runs.c.id)
            .where(
                runs.c.job_id.in_(jobs[start : start + AT_ONCE]),
                or_(runs.c.ended_at.is_not(None), run_silences.c.silent_at < round(now * MICRO)),
            )
        )
        for row in connection.execute(query):
            place = running.get((row.job_id, row.run_id))
            if place is not None:
                lost = row.ended_at is None
                at, how = (row.silent_at, "LOST") if lost else (row.ended_at, NAMES[row.state])
                yield RunEnded(place.job, place.run, at / MICRO, how, now)


def _not_back(model: Model, resume: float, now: float) -> Iterable[Fact]:
    for place in list(model.places.values()):
        if place.ended is not None and place.ended.heard + resume < now:
            yield JobRetired(place.job, now, _gone(place, now))


def _gone(place: Place, now: float) -> str:
    assert place.ended is not None
    return f"did not come back within {ago(now - place.ended.at)} after {place.ended.how}"


def _cuts(connection: Connection, model: Model, interval: float, now: float) -> Iterable[Fact]:
    for domain in domains_with_interval(model):
        newest = domain.newest
        if newest is None or domain.births[newest] + interval <= now:
            yield from interval_cut(connection, model, domain, now)


def _given_up(model: Model, timeout: float | None, now: float) -> Iterable[Fact]:
    """Barriers that are too old and not completed by everybody: whoever is behind takes a newer one, if there is one."""
    for domain in model.domains.values():
        for barrier in _open(model, domain)[:AT_ONCE]:
            if timeout is not None and domain.births[barrier] + timeout < now:
                yield BarrierGivenUp(domain.name, barrier, now)


def _open(model: Model, domain: Domain) -> list[int]:
    """The barriers after the least version of the domain's components that are not given up."""
    components = {
        id(model.components[table]): model.components[table]
        for place in model.places.values()
        if place.domain == domain.name
        for table in place.admitted
        if table in model.components
    }
    versions = [component.version for component in components.values()]
    if not versions or domain.newest is None:
        return []
    least = min((version for version in versions if version is not None), default=None)
    first = None if None in versions else least
    return [
        barrier
        for barrier in domain.order[domain.order.index(first) + 1 if first in domain.order else 0 :]
        if barrier not in domain.given_up
    ]
