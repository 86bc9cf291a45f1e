"""Trouble that there is now.

Stale tables, failed and lost runs, skipped barriers, dead letters, and versions blocked by a
stopped job. A trouble has a key, so that it is reported once when it begins and once when it is
over.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, Subquery, func, or_, select

from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.run_states import COMPLETE, FAIL
from strandline.core.versions.delays import Staleness, staleness
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.members import pipeline
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import ago, held_by
from strandline.store.catalog.owners import owners_of_jobs
from strandline.store.ingest.set_aside import count_set_aside
from strandline.store.lineage.hierarchy import topmost_runs
from strandline.store.lineage.lookup import labels_of
from strandline.store.lineage.nested_commands import IS_NAMED_AS_INNER, nested_runs
from strandline.store.lineage.run_state import StateColumns
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.schema.version_tables import alerts
from strandline.store.sql.id_lists import among

MICRO = 1_000_000
DAY = 86_400
HOUR = 3600
SILENT_DAYS = 8  # how much longer ago a run that is lost now may have spoken last
RECENT_BARRIERS = 20
MOST = 1000


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong, in words.

    `job` and `table` are what it is about, if it is about one; `run_row` is the row of the run.
    """

    rule: str
    about: str
    text: str
    run: str | None = None
    job: Job | None = None
    table: Table | None = None
    run_row: int | None = None
    count: int = 1

    @property
    def key(self) -> str:
        """Return the key under which the same trouble is known from one look to the next."""
        return f"{self.rule}|{self.about}"


@dataclass(frozen=True, slots=True)
class PassedBarriers:
    """Barriers that a table went past without a snapshot."""

    table: Table
    barriers: tuple[int, ...]


TableTrouble = Staleness | PassedBarriers


def model_troubles(
    model: Model, bound: float | None, now: float
) -> tuple[list[Trouble], list[TableTrouble]]:
    """Return the faults of the model at `now`, and the tables that they concern.

    These are staler than the bound, or skipped barriers; only the store knows their labels.
    """
    tables = sorted(filter(model.is_tracked, model.done))
    ages = (staleness(model, table, now) for table in tables if bound is not None)
    stale = [age for age in ages if bound is not None and age.seconds > bound]
    return [*_held(model, tables, now)], [*stale, *_aborted(model, tables)]


def store_troubles(
    connection: Connection, of_tables: Collection[TableTrouble], now: float
) -> list[Trouble]:
    """Return the faults of the store at `now`, and those of the given tables in words."""
    troubles = [
        *_failed(connection, now),
        *_silent(connection, now),
        *_dead(connection, now),
        *_unread(connection),
    ]
    labels = labels_of(connection, {trouble.table for trouble in of_tables})
    return troubles + [
        _of_table(connection, trouble, labels[trouble.table]) for trouble in of_tables
    ]


def _of_table(connection: Connection, table_trouble: TableTrouble, label: str) -> Trouble:
    about = ":".join(table_trouble.table)
    if isinstance(table_trouble, PassedBarriers):
        barriers = ", ".join(map(str, table_trouble.barriers))
        return Trouble(
            "skipped",
            about,
            f"{label} went past barriers {barriers} without a snapshot",
            table=table_trouble.table,
        )
    delay = ago(table_trouble.seconds)
    words = f"{label} is {delay} behind: barrier {table_trouble.barrier} is missing"
    culprit = ""
    if table_trouble.job:
        owners = owners_of(connection, table_trouble.job)
        culprit = f"; the bottleneck is job {table_trouble.job[1]}"
        culprit += f" (owner: {', '.join(owners)})" if owners else ""
    return Trouble(
        "staleness", about, words + culprit, job=table_trouble.job, table=table_trouble.table
    )


def owners_of(connection: Connection, job: Job) -> list[str]:
    """Return the owners of a job, or of its nearest parent that has some."""
    id_ = id_of("job", *job)
    return owners_of_jobs(connection, [id_]).get(id_) or []


def _looked_at_since(connection: Connection, now: float) -> int:
    """Return the moment from which on runs are looked at: a day ago, or before the oldest alert.

    An alert must not end because its run is old: it ends when the job is well again.
    """
    oldest = connection.scalar(select(func.min(alerts.c.since)))
    day_ago = round((now - DAY) * MICRO)
    return day_ago if oldest is None else min(day_ago, oldest - DAY * MICRO)


def _failed(connection: Connection, now: float) -> Iterable[Trouble]:
    """Yield the jobs whose newest ended run failed, with the number of failures in a row.

    A run that is still running says nothing: a retry may fail too.
    """
    newer = runs.alias("newer")
    failed_jobs = (
        select(runs.c.job_id)
        .distinct()
        .join(jobs, jobs.c.id == runs.c.job_id)
        .where(
            runs.c.newest_at > _looked_at_since(connection, now),
            runs.c.state == FAIL,
            ~select(newer.c.id)
            .where(
                newer.c.job_id == runs.c.job_id,
                newer.c.newest_at > runs.c.newest_at,
                newer.c.ended_at.is_not(None),
            )
            .exists(),
        )
        .limit(MOST)
    )
    failures = _failures_since_well(connection.scalars(failed_jobs).all())
    yield from _failures_by_job(connection, failures)


def topmost_failures(connection: Connection, troubles: Collection[Trouble]) -> list[Trouble]:
    """Return the troubles, those of failed jobs without the failures below another of them.

    An application and its query that failed have failed once. A job all of whose failures are
    below others is no trouble of its own.
    """
    failed_jobs = [
        id_of("job", *trouble.job)
        for trouble in troubles
        if trouble.job and trouble.rule == "failed"
    ]
    failures = _failures_since_well(failed_jobs)
    nested = nested_runs(connection, list(connection.scalars(failures.where(IS_NAMED_AS_INNER))))
    topmost = topmost_runs(connection, failures.where(~among(runs.c.id, nested)))
    others = [trouble for trouble in troubles if trouble.rule != "failed"]
    once = select(runs.c.id).where(among(runs.c.id, topmost))
    return [*_failures_by_job(connection, once), *others]


def _failures_since_well(job_ids: Sequence[int]) -> Select[tuple[int]]:
    """Select the runs of these jobs (their ids) that failed since the job last completed."""
    well = _well(job_ids)
    return (
        select(runs.c.id)
        .join(jobs, jobs.c.id == runs.c.job_id)
        .outerjoin(well, well.c.job_id == runs.c.job_id)
        .where(
            among(runs.c.job_id, job_ids),
            runs.c.state == FAIL,
            runs.c.ended_at >= func.coalesce(well.c.ended_at, 0),
        )
    )


def _well(job_ids: Sequence[int]) -> Subquery:
    """Select the last end, and the last begin, of completed runs of each of these jobs."""
    last_end, last_begin = func.max(runs.c.ended_at), func.max(runs.c.first_at)
    return (
        select(runs.c.job_id, last_end.label("ended_at"), last_begin.label("began_at"))
        .where(among(runs.c.job_id, job_ids), runs.c.state == COMPLETE)
        .group_by(runs.c.job_id)
        .subquery()
    )


def _failures_by_job(connection: Connection, failures: Select[tuple[int]]) -> Iterable[Trouble]:
    """Yield the job of each of these failed runs, with its newest one and their number."""
    chosen = failures.subquery()
    rows = (
        select(
            jobs.c.namespace,
            jobs.c.name,
            runs.c.run_id,
            runs.c.id,
            runs.c.newest_at,
            func.count().over(partition_by=runs.c.job_id).label("failures"),
            func.row_number()
            .over(partition_by=runs.c.job_id, order_by=(runs.c.newest_at.desc(), runs.c.id))
            .label("place"),
        )
        .select_from(runs.join(chosen, chosen.c.id == runs.c.id))
        .join(jobs, jobs.c.id == runs.c.job_id)
        .subquery()
    )
    newest = select(rows).where(rows.c.place == 1).order_by(rows.c.newest_at.desc(), rows.c.id)
    for row in connection.execute(newest):
        times = f" {row.failures} times" if row.failures > 1 else ""
        yield Trouble(
            "failed",
            f"{row.namespace}:{row.name}",
            f"job {row.name} failed{times} (run {row.run_id})",
            job=(row.namespace, row.name),
            run_row=row.id,
            count=row.failures,
        )


def _silent(connection: Connection, now: float) -> Iterable[Trouble]:
    """Yield the jobs with lost runs, with the number of them since the job was well.

    A run is lost that has not ended, itself or with the run above, and was silent for too long. A
    job is well again when a run that began later completes after its last sign of life.
    """
    state = StateColumns.of(connection.dialect.name)
    since = _looked_at_since(connection, now)
    silent_at = state.silence.c.silent_at
    with_job = state.joined(runs.join(jobs, jobs.c.id == runs.c.job_id))
    is_lost = (
        runs.c.newest_at > since - SILENT_DAYS * DAY * MICRO,
        runs.c.started_at.is_not(None),
        runs.c.ended_at.is_(None),
        state.is_lost(round(now * MICRO)),
        silent_at > since,
    )
    lost_jobs = select(runs.c.job_id).distinct().select_from(with_job).where(*is_lost)
    well = _well(connection.scalars(lost_jobs).all())
    lost = (
        select(
            jobs.c.namespace,
            jobs.c.name,
            runs.c.run_id,
            runs.c.id,
            silent_at.label("at"),
            func.count().over(partition_by=runs.c.job_id).label("times"),
            func.row_number()
            .over(partition_by=runs.c.job_id, order_by=(silent_at.desc(), runs.c.id))
            .label("place"),
        )
        .select_from(with_job.outerjoin(well, well.c.job_id == runs.c.job_id))
        .where(
            *is_lost,
            or_(
                runs.c.first_at >= func.coalesce(well.c.began_at, 0),
                runs.c.newest_at >= func.coalesce(well.c.ended_at, 0),
            ),
        )
        .subquery()
    )
    query = select(lost).where(lost.c.place == 1).order_by(lost.c.at.desc()).limit(MOST)
    for row in connection.execute(query):
        silent = ago(now - row.at / MICRO)
        times = f" {row.times} times" if row.times > 1 else ""
        yield Trouble(
            "lost",
            f"{row.namespace}:{row.name}",
            f"job {row.name} is lost{times}: silent beyond its heartbeat timeout for {silent} "
            f"(run {row.run_id})",
            row.run_id,
            job=(row.namespace, row.name),
            run_row=row.id,
            count=row.times,
        )


def _dead(connection: Connection, now: float) -> Iterable[Trouble]:
    count = count_set_aside(connection, "dead", round((now - HOUR) * MICRO))
    if count:
        yield Trouble(
            "dead_letters",
            "last hour",
            f"{count} dead letters in the last hour: strandline replay --help",
        )


def _unread(connection: Connection) -> Iterable[Trouble]:
    if count := count_set_aside(connection, "unread"):
        words = (
            f"{count} events could not be read because of a fault in Strandline, which the log "
            "shows: update it and restart"
        )
        yield Trouble("unread_events", "all", words)


def _aborted(model: Model, tables: Iterable[Table]) -> Iterable[PassedBarriers]:
    for table in tables:
        done, group = model.done[table], model.group(model.group_of[table])
        if done.last is None or done.of[done.last].derived:
            continue  # a plain stream goes past barriers as it pleases
        recent = [
            b
            for b in group.order[-RECENT_BARRIERS:]
            if done.last is not None and done.order[0] < b < done.last
        ]
        missing = [barrier for barrier in recent if barrier not in done]
        if missing:
            yield PassedBarriers(table, tuple(missing))


def _held(model: Model, tables: Iterable[Table], now: float) -> Iterable[Trouble]:
    seen: set[str] = set()
    looked_at: set[Table] = set()
    for table in tables:
        if table in looked_at:
            continue
        group = model.group_of[table]
        connected, _ = pipeline(model, [table], model.group(group).newest or 0)
        looked_at |= connected
        for holder in held_by(model, [table]):
            about = f"{holder.namespace}:{holder.name}"
            if holder.state == "STOPPED" and about not in seen:
                seen.add(about)
                yield Trouble(
                    "blocked",
                    about,
                    f"a version of group {group} is blocked by {holder.reason(now)}",
                    job=(holder.namespace, holder.name),
                )
