"""What is wrong now: stale tables, failed and lost runs, aborted barriers, dead letters, versions held by a stopped job,
jobs that never join at their pace.

A trouble has a key, so that it is reported once when it begins and once when it is over.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from strandline.core.openlineage.facets import JOB
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.run_states import FAIL
from strandline.core.versions.delays import Staleness, staleness
from strandline.core.versions.facts import Job
from strandline.core.versions.model import Model
from strandline.core.versions.pace import never_joins
from strandline.core.versions.strong_weak import ago, held_by
from strandline.store.ingest.unread import unread_count
from strandline.store.lineage.facets import value_of
from strandline.store.lineage.relations import run_ends, run_silences
from strandline.store.schema.tables import dead_letters, jobs, run_leases, runs

MICRO = 1_000_000
DAY = 86_400
HOUR = 3600
RECENT_BARRIERS = 20
MOST = 1000


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong, in words."""

    rule: str
    about: str
    text: str

    @property
    def key(self) -> str:
        """What makes it the same trouble as before."""
        return f"{self.rule}|{self.about}"


def model_troubles(model: Model, bound: float | None, now: float) -> tuple[list[Trouble], list[Staleness]]:
    """What is wrong by the model at `now`; and which tables are staler than the bound."""
    found = [*_aborted(model), *_held(model, now), *_never_joining(model)]
    if bound is None:
        return found, []
    ages = (staleness(model, table, now) for table in sorted(model.components))
    return found, [age for age in ages if age.seconds > bound]


def store_troubles(connection: Connection, stale: Iterable[Staleness], now: float) -> list[Trouble]:
    """What is wrong by the store at `now`; and the stale tables in words, with whoever owns the bottleneck."""
    found = [*_failed(connection, now), *_silent(connection, now), *_dead(connection, now), *_unread(connection)]
    return found + [_stale(connection, age) for age in stale]


def _stale(connection: Connection, age: Staleness) -> Trouble:
    namespace, name = age.table
    words = f"{name} is {ago(age.seconds)} behind: barrier {age.barrier} is missing"
    culprit = f"; the bottleneck is job {age.job[1]}{_owner(connection, age.job)}" if age.job else ""
    return Trouble("staleness", f"{namespace}:{name}", words + culprit)


def _owner(connection: Connection, job: Job) -> str:
    ownership = value_of(connection, JOB, [id_of("job", *job)], "ownership")
    names = ", ".join(owner.name for owner in (ownership and ownership.owners) or ())
    return f" (owner: {names})" if names else ""


def _failed(connection: Connection, now: float) -> Iterable[Trouble]:
    """Jobs whose newest run failed, within a day."""
    newer = runs.alias("newer")
    query = (
        select(jobs.c.namespace, jobs.c.name, runs.c.run_id, runs.c.ended_at)
        .join(jobs, jobs.c.id == runs.c.job_id)
        .where(
            runs.c.newest_at > round((now - DAY) * MICRO),
            runs.c.state == FAIL,
            ~select(newer.c.id).where(newer.c.job_id == runs.c.job_id, newer.c.newest_at > runs.c.newest_at).exists(),
        )
        .limit(MOST)
    )
    for row in connection.execute(query):
        yield Trouble("failed", f"{row.namespace}:{row.name}", f"job {row.name} failed (run {row.run_id})")


def _silent(connection: Connection, now: float) -> Iterable[Trouble]:
    """Runs that announced a lease, did not end, by themselves or with the run above, and are silent for longer, within a day."""
    query = (
        select(jobs.c.namespace, jobs.c.name, runs.c.run_id, run_silences.c.silent_at.label("at"))
        .join(jobs, jobs.c.id == runs.c.job_id)
        .join(run_leases, run_leases.c.run_id == runs.c.id)
        .join(run_silences, run_silences.c.run_id == runs.c.id)
        .join(run_ends, run_ends.c.run_id == runs.c.id)
        .where(
            runs.c.newest_at > round((now - DAY) * MICRO),
            runs.c.ended_at.is_(None),
            run_ends.c.ended_at.is_(None),
            run_silences.c.silent_at < round(now * MICRO),
        )
        .limit(MOST)
    )
    for row in connection.execute(query):
        words = f"job {row.name} is lost: silent beyond its lease for {ago(now - row.at / MICRO)} (run {row.run_id})"
        yield Trouble("lost", f"{row.namespace}:{row.name}:{row.run_id}", words)


def _dead(connection: Connection, now: float) -> Iterable[Trouble]:
    letters = select(func.count()).where(dead_letters.c.received_at > round((now - HOUR) * MICRO))
    count = connection.execute(letters).scalar_one()
    if count:
        yield Trouble("dead_letters", "last hour", f"{count} dead letters in the last hour: strandline replay --help")


def _unread(connection: Connection) -> Iterable[Trouble]:
    if count := unread_count(connection):
        words = (
            f"{count} events wait for a Strandline that can read them: the log has the fault; update and start it anew"
        )
        yield Trouble("unread_events", "all", words)


def _never_joining(model: Model) -> Iterable[Trouble]:
    for job in sorted(model.places):
        why = never_joins(model, job)
        if why is not None:
            yield Trouble("never_joins", f"{job[0]}:{job[1]}", why)


def _aborted(model: Model) -> Iterable[Trouble]:
    for table in sorted(model.components):
        done, domain = model.done[table], model.domain(model.domain_of[table])
        if done.last is None or done.of[done.last].derived:
            continue  # a plain stream goes past barriers as it pleases
        recent = [b for b in domain.order[-RECENT_BARRIERS:] if done.last is not None and done.order[0] < b < done.last]
        missing = [barrier for barrier in recent if barrier not in done]
        if missing:
            words = f"{table[1]} went past barriers {', '.join(map(str, missing))} without a snapshot"
            yield Trouble("aborted", f"{table[0]}:{table[1]}", words)


def _held(model: Model, now: float) -> Iterable[Trouble]:
    seen: set[str] = set()
    for component in {id(one): one for one in model.components.values()}.values():
        for holder in held_by(model, [next(iter(component.tables))]):
            about = f"{holder.namespace}:{holder.name}"
            if holder.state == "STOPPED" and about not in seen:
                seen.add(about)
                yield Trouble("held", about, f"a version is held back by {holder.reason(now)}")
