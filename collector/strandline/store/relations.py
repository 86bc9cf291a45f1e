"""Which jobs read and write which datasets: known (each job's newest relations) or live, now or as of a moment.

Asked level by level: the jobs that touch these datasets, then all that those jobs touch. What is known now is found by
`job_relations`, whose size is the graph's; what runs, and the past, by `relations`, one row a run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    column,
    exists,
    func,
    or_,
    select,
    table,
)

from strandline.core import states
from strandline.core.reading import SINK
from strandline.store.among import among_given
from strandline.store.tables import datasets, job_relations, relations, run_parents, run_queries, runs

UNDONE = (states.ABORT, states.FAIL)
MOMENT = bindparam("moment", type_=BigInteger)
MOST_ROWS = 100_000  # of one level: what follows is cut

run_owners = table(
    "run_owners", column("run_id", BigInteger), column("owner_id", BigInteger), column("job_id", BigInteger)
)
run_silences = table("run_silences", column("run_id", BigInteger), column("silent_at", BigInteger))
owners = runs.alias("owners")


class Related(NamedTuple):
    """A job's relation with a dataset: canonical, and `named` as the run called it; `owner` is the run that shows it.

    newest: of the job's newest in this direction; else a source of what it wrote last, which a later run does not read.
    """

    job: int
    direction: int
    dataset: int
    named: int
    run: int
    owner: int
    since: int
    newest: bool = True


@dataclass(frozen=True, slots=True)
class View:
    """What is asked for: `live` or known, at a moment in microseconds; `past`: the moment is not now."""

    at: int
    live: bool = False
    past: bool = False

    @property
    def by_job(self) -> bool:
        """Whether each job's newest relations are the answer."""
        return not self.live and not self.past


def jobs_touching(connection: Connection, dataset_ids: Sequence[int], direction: int, limit: int) -> list[int]:
    """Jobs, as named by their events, that ever read (direction 0) or wrote (1) these datasets."""
    names = list(connection.scalars(_names(), {"dataset_ids": list(dataset_ids)}))
    return list(connection.scalars(_touching(), {"names": names, "direction": direction, "most": limit}))


@cache
def _names() -> Select[Any]:
    return select(datasets.c.id).where(among_given(datasets.c.canonical_id, "dataset_ids"))


@cache
def _touching() -> Select[Any]:
    return (
        select(job_relations.c.job_id)
        .distinct()
        .where(among_given(job_relations.c.dataset_id, "names"), job_relations.c.direction == bindparam("direction"))
        .limit(bindparam("most", type_=Integer))
    )


def jobs_under(connection: Connection, job_id: int) -> list[int]:
    """The jobs, as named by their events, whose relations count as this job's: itself, and those of its micro-batches."""
    children = select(run_parents.c.run_id).where(run_parents.c.parent_job_id == job_id)
    batches = select(run_queries.c.run_id).where(run_queries.c.job_id == job_id)
    under = (
        select(runs.c.job_id)
        .distinct()
        .join(run_owners, run_owners.c.run_id == runs.c.id)
        .where(run_owners.c.job_id == job_id, runs.c.id.in_(children.union(batches)))
    )
    return [job_id, *(other for other in connection.scalars(under) if other != job_id)]


def relations_of(connection: Connection, view: View, job_ids: Sequence[int]) -> list[Related]:
    """All relations of these jobs, each under the job that it belongs to."""
    if view.by_job:
        return _known(connection, job_ids)
    names = {*job_ids, *connection.scalars(_named_later(), {"job_ids": list(job_ids)})}
    rows = connection.execute(_relations_of(view.live, view.past), {"job_ids": list(names), "moment": view.at})
    return [Related(*row) for row in rows]


@cache
def _named_later() -> Select[Any]:
    """What the runs that began under these names are called in the end: stock Spark renames jobs on the way."""
    named = job_relations.join(runs, runs.c.id == job_relations.c.run_id)
    return select(runs.c.job_id).distinct().select_from(named).where(among_given(job_relations.c.job_id, "job_ids"))


class Owner(NamedTuple):
    """Whom a run's relations belong to, and whether a table that it was to create is none."""

    run: int
    job: int
    undone: bool


Owned = dict[int, Owner]  # by run
Last = dict[tuple[int, int], tuple[int, int, int]]  # by job and direction: when heard, when first told, and the owner


def _known(connection: Connection, job_ids: Sequence[int]) -> list[Related]:
    """Of each job and direction the relations of the owner that was heard of last, and what the last to write has read.

    `job_relations` leads to that owner; all that its runs there were heard to touch is the answer, for another run may
    have touched some of it since. Questions of a few tables each: PostgreSQL takes longer to plan one of eight than to
    answer them.
    """
    owned: Owned = {}
    heard = _heard(connection, job_ids, owned)
    renamed = {owner.job for owner in owned.values()}.difference(job_ids)
    heard += _heard(connection, renamed, owned) if renamed else []
    newest = {owner for *_, owner in _last(heard, owned).values()}
    found = {run for run, *_ in heard if owned[run].run in newest}
    return _related(_standing(connection.execute(_of_runs(), {"runs": list(found)}).all(), owned), owned)


def _heard(connection: Connection, job_ids: Iterable[int], owned: Owned) -> list[Any]:
    """When the runs that `job_relations` names were last heard to read or write; notes whose they are.

    In the place of one that failed to create its table comes the one before it, which did.
    """
    rows = connection.execute(_last_heard(by_job=True), {"job_ids": list(job_ids)}).all()
    owned |= _owners(connection, {run for run, *_ in rows})
    standing = _standing(rows, owned)
    if len(standing) < len(rows):
        before = [run for run in connection.scalars(_before(), {"job_ids": list(job_ids)}) if run is not None]
        owned |= _owners(connection, before)
        standing += _standing(connection.execute(_last_heard(by_job=False), {"runs": before}), owned)
    return standing


def _standing(rows: Iterable[Any], owned: Owned) -> list[Any]:
    return [row for row in rows if not (row[2] and owned[row[0]].undone)]  # creates, run_id


def _last(rows: Iterable[Any], owned: Owned) -> Last:
    last: Last = {}
    for run, direction, _, newest_at, first_at in rows:
        owner, job, _ = owned[run]
        key, heard = (job, direction), (newest_at, first_at, owner)
        if key not in last or heard > last[key]:
            last[key] = heard
    return last


def _related(rows: Sequence[Any], owned: Owned) -> list[Related]:
    """The relations of the owners that were heard of last; each dataset once, from the run that touched it last."""
    last = _last((row[:5] for row in rows), owned)
    found: dict[tuple[int, int, int, int], tuple[tuple[int, int], Related]] = {}
    for run, direction, _, newest_at, first_at, named, dataset in rows:
        owner, job, _ = owned[run]
        newest = last[job, direction][2] == owner
        if newest or last.get((job, SINK), (0, 0, None))[2] == owner:
            key, heard = (job, direction, named, owner), (newest_at, run)
            if key not in found or heard > found[key][0]:
                found[key] = heard, Related(job, direction, dataset, named, run, owner, first_at, newest)
    return [related for _, related in found.values()]


@cache
def _last_heard(*, by_job: bool) -> Select[Any]:
    key = (relations.c.run_id, relations.c.direction, relations.c.creates)
    times = (func.max(relations.c.newest_at), func.max(relations.c.first_at))
    asked = among_given(job_relations.c.job_id, "job_ids") if by_job else among_given(relations.c.run_id, "runs")
    source = job_relations.join(relations, _same(relations)) if by_job else relations
    return select(*key, *times).select_from(source).where(asked).group_by(*key).limit(MOST_ROWS)


@cache
def _of_runs() -> Select[Any]:
    """The columns of `_last_heard`, and which dataset it was."""
    of = relations.c
    return (
        select(of.run_id, of.direction, of.creates, of.newest_at, of.first_at, of.dataset_id, datasets.c.canonical_id)
        .join(datasets, datasets.c.id == relations.c.dataset_id)
        .where(among_given(relations.c.run_id, "runs"))
        .limit(MOST_ROWS)
    )


def _same(other: FromClause, key: Sequence[str] = ("run_id", "direction", "dataset_id")) -> ColumnElement[bool]:
    return and_(*(job_relations.c[name] == other.c[name] for name in key))


@cache
def _before() -> Select[Any]:
    return runs_before().where(among_given(job_relations.c.job_id, "job_ids"))


def runs_before() -> Select[Any]:
    """Of each table that a job's newest run failed to create, the newest run of that job that did not (or NULL)."""
    made, failed, run = relations.alias("made"), runs.alias("failed"), runs.alias("run")
    good = exists().where(made.c.run_id == run.c.id, _same(made, ("direction", "dataset_id")), ~is_undone(made, run))
    before = (
        select(run.c.id)
        .where(run.c.job_id == failed.c.job_id, good.correlate(run, job_relations))
        .order_by(run.c.newest_at.desc(), run.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    named = job_relations.join(relations, _same(relations)).join(failed, failed.c.id == job_relations.c.run_id)
    return select(before).select_from(named).where(is_undone(relations, failed))


def is_undone(made: FromClause, run: FromClause) -> ColumnElement[bool]:
    """What a CREATE TABLE AS that failed or was canceled would have made is no table; a streaming job's is kept."""
    return and_(made.c.creates == 1, run.c.streaming == 0, run.c.state.in_(UNDONE))


def _owners(connection: Connection, run_ids: Iterable[int]) -> Owned:
    rows = connection.execute(_owned(), {"runs": list(run_ids)}).all()
    return {run: Owner(owner, job, not streaming and state in UNDONE) for run, owner, job, streaming, state in rows}


@cache
def _owned() -> Select[Any]:
    whose = (run_owners.c.run_id, run_owners.c.owner_id, run_owners.c.job_id)
    joined = run_owners.join(runs, runs.c.id == run_owners.c.run_id)
    return select(*whose, runs.c.streaming, runs.c.state).select_from(joined).where(among_given(runs.c.id, "runs"))


@cache
def _relations_of(live: bool, past: bool) -> Select[Any]:
    """Made once: to build it takes longer than to answer it."""
    query = _of_jobs(live).where(among_given(runs.c.job_id, "job_ids"), *_valid(live, past))
    return (query if live else _newest(query)).limit(MOST_ROWS)


def _of_jobs(live: bool) -> Select[Any]:
    rows = select(
        run_owners.c.job_id.label("job"),
        relations.c.direction,
        datasets.c.canonical_id.label("dataset"),
        relations.c.dataset_id.label("named"),
        relations.c.run_id.label("run"),
        run_owners.c.owner_id.label("owner"),
        relations.c.first_at.label("since"),
    ).select_from(_joined(live))
    heard = case((relations.c.newest_at > MOMENT, MOMENT), else_=relations.c.newest_at)  # not what came after
    return rows if live else rows.add_columns(heard.label("at"))


def _joined(live: bool) -> FromClause:
    """For what runs, runs come first: most of a job's have ended, and their relations need no look."""
    owned = runs.join(run_owners, run_owners.c.run_id == runs.c.id)
    if live:
        owned = owned.join(owners, owners.c.id == run_owners.c.owner_id)
        owned = owned.join(run_silences, run_silences.c.run_id == run_owners.c.owner_id)
    return owned.join(relations, relations.c.run_id == runs.c.id).join(
        datasets, datasets.c.id == relations.c.dataset_id
    )


def _valid(live: bool, past: bool) -> list[ColumnElement[bool]]:
    """Now what has begun or ended has done so, also by a clock that is ahead; of the past it is asked whether by then."""
    failed = is_undone(relations, runs)
    if past:
        failed = and_(failed, runs.c.ended_at <= MOMENT)
    begun = [relations.c.first_at <= MOMENT] if past else []
    return [~failed, *begun, *(_running(past) if live else ())]


def _running(past: bool) -> list[ColumnElement[bool]]:
    started = func.coalesce(owners.c.started_at, runs.c.started_at)
    return [
        or_(_not_ended(runs, past), run_owners.c.owner_id != runs.c.id),
        started <= MOMENT if past else started.is_not(None),
        _not_ended(owners, past),
        run_silences.c.silent_at >= MOMENT,
    ]


def _not_ended(run: FromClause, past: bool) -> ColumnElement[bool]:
    ended = run.c.ended_at
    return or_(ended.is_(None), ended > MOMENT) if past else ended.is_(None)


def _newest(query: Select[Any]) -> Select[Any]:
    """Of each job and direction the relations of the owner that was heard of last, and what the last to write has read."""
    rows = query.subquery("rows")
    heard = (rows.c.at.desc(), rows.c.since.desc(), rows.c.owner.desc())
    last = func.first_value(rows.c.owner).over(partition_by=(rows.c.job, rows.c.direction), order_by=heard)
    writer = func.first_value(rows.c.owner).over(partition_by=rows.c.job, order_by=(rows.c.direction.desc(), *heard))
    ranked = select(rows, last.label("last_owner"), writer.label("writer")).subquery("ranked")
    newest = ranked.c.owner == ranked.c.last_owner
    return select(*(ranked.c[name] for name in Related._fields[:-1]), newest.label("newest")).where(
        or_(newest, ranked.c.owner == ranked.c.writer)
    )
