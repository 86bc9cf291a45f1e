"""What is wrong now: stale tables, failed and lost runs, skipped barriers, dead letters, versions blocked by a stopped job,
jobs that never join at their pace.

A trouble has a key, so that it is reported once when it begins and once when it is over.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from strandline.core.openlineage.facets import JOB
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.run_states import FAIL
from strandline.core.versions.delays import Staleness, staleness
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model
from strandline.core.versions.pace import never_joins
from strandline.core.versions.strong_weak import ago, held_by
from strandline.store.ingest.unread import unread_count
from strandline.store.lineage.facets import value_of
from strandline.store.lineage.run_state import StateColumns
from strandline.store.lineage.table_labels import labels_of
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
    run: str | None = None

    @property
    def key(self) -> str:
        """What makes it the same trouble as before."""
        return f"{self.rule}|{self.about}" + (f":{self.run}" if self.run else "")


@dataclass(frozen=True, slots=True)
class PassedBarriers:
    """Barriers that a table went past without a snapshot."""

    table: Table
    barriers: tuple[int, ...]


TableTrouble = Staleness | PassedBarriers


def model_troubles(
    model: Model, bound: float | None, now: float
) -> tuple[list[Trouble], list[TableTrouble]]:
    """What is wrong by the model at `now`; and with which tables, whose names the store has.

    Those that are staler than the
    bound, and those that skipped barriers.
    """
    ages = (staleness(model, table, now) for table in sorted(model.components) if bound is not None)
    stale = [age for age in ages if bound is not None and age.seconds > bound]
    return [*_held(model, now), *_never_joining(model)], [*stale, *_aborted(model)]


def store_troubles(
    connection: Connection, of_tables: Collection[TableTrouble], now: float
) -> list[Trouble]:
    """What is wrong by the store at `now`.

    And what is wrong with tables in words, which call them as Spark does.
    """
    found = [
        *_failed(connection, now),
        *_silent(connection, now),
        *_dead(connection, now),
        *_unread(connection),
    ]
    labels = labels_of(connection, {one.table for one in of_tables})
    return found + [_of_table(connection, one, labels[one.table]) for one in of_tables]


def _of_table(connection: Connection, one: TableTrouble, label: str) -> Trouble:
    about = ":".join(one.table)
    if isinstance(one, PassedBarriers):
        barriers = ", ".join(map(str, one.barriers))
        return Trouble(
            "skipped", about, f"{label} went past barriers {barriers} without a snapshot"
        )
    words = f"{label} is {ago(one.seconds)} behind: barrier {one.barrier} is missing"
    culprit = (
        f"; the bottleneck is job {one.job[1]}{_owner(connection, one.job)}" if one.job else ""
    )
    return Trouble("staleness", about, words + culprit)


def _owner(connection: Connection, job: Job) -> str:
    ownership = value_of(connection, JOB, [id_of("job", *job)], "ownership")
    names = ", ".join(owner.name for owner in (ownership and ownership.owners) or ())
    return f" (owner: {names})" if names else ""


def _failed(connection: Connection, now: float) -> Iterable[Trouble]:
    """Jobs whose latest run failed, within a day."""
    newer = runs.alias("newer")
    query = (
        select(jobs.c.namespace, jobs.c.name, runs.c.run_id, runs.c.ended_at)
        .join(jobs, jobs.c.id == runs.c.job_id)
        .where(
            runs.c.newest_at > round((now - DAY) * MICRO),
            runs.c.state == FAIL,
            ~select(newer.c.id)
            .where(newer.c.job_id == runs.c.job_id, newer.c.newest_at > runs.c.newest_at)
            .exists(),
        )
        .limit(MOST)
    )
    for row in connection.execute(query):
        yield Trouble(
            "failed", f"{row.namespace}:{row.name}", f"job {row.name} failed (run {row.run_id})"
        )


def _silent(connection: Connection, now: float) -> Iterable[Trouble]:
    """Yield the runs that announced a heartbeat timeout and were lost within a day."""
    state = StateColumns.of(connection.dialect.name)
    announced = runs.join(jobs, jobs.c.id == runs.c.job_id)
    announced = announced.join(run_leases, run_leases.c.run_id == runs.c.id)
    silent_at = state.silence.c.silent_at.label("at")
    query = (
        select(jobs.c.namespace, jobs.c.name, runs.c.run_id, silent_at)
        .select_from(state.joined(announced))
        .where(
            runs.c.newest_at > round((now - DAY) * MICRO),
            runs.c.ended_at.is_(None),
            state.is_lost(round(now * MICRO)),
        )
        .limit(MOST)
    )
    for row in connection.execute(query):
        words = f"job {row.name} is lost: silent beyond its heartbeat timeout for {ago(now - row.at / MICRO)} (run {row.run_id})"
        yield Trouble("lost", f"{row.namespace}:{row.name}", words, row.run_id)


def _dead(connection: Connection, now: float) -> Iterable[Trouble]:
    letters = select(func.count()).where(dead_letters.c.received_at > round((now - HOUR) * MICRO))
    count = connection.execute(letters).scalar_one()
    if count:
        yield Trouble(
            "dead_letters",
            "last hour",
            f"{count} dead letters in the last hour: strandline replay --help",
        )


def _unread(connection: Connection) -> Iterable[Trouble]:
    if count := unread_count(connection):
        words = f"{count} events wait for a Strandline that can read them: the log has the fault; update and start it anew"
        yield Trouble("unread_events", "all", words)


def _never_joining(model: Model) -> Iterable[Trouble]:
    for job in sorted(model.places):
        why = never_joins(model, job)
        if why is not None:
            yield Trouble("never_joins", f"{job[0]}:{job[1]}", why)


def _aborted(model: Model) -> Iterable[PassedBarriers]:
    for table in sorted(model.components):
        done, domain = model.done[table], model.domain(model.domain_of[table])
        if done.last is None or done.of[done.last].derived:
            continue  # a plain stream goes past barriers as it pleases
        recent = [
            b
            for b in domain.order[-RECENT_BARRIERS:]
            if done.last is not None and done.order[0] < b < done.last
        ]
        missing = [barrier for barrier in recent if barrier not in done]
        if missing:
            yield PassedBarriers(table, tuple(missing))


def _held(model: Model, now: float) -> Iterable[Trouble]:
    seen: set[str] = set()
    for component in {id(one): one for one in model.components.values()}.values():
        for holder in held_by(model, [next(iter(component.tables))]):
            about = f"{holder.namespace}:{holder.name}"
            if holder.state == "STOPPED" and about not in seen:
                seen.add(about)
                yield Trouble("blocked", about, f"a version is blocked by {holder.reason(now)}")
