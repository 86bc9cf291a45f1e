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
    column,
    func,
    or_,
    select,
    table,
)

from strandline.core import states
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
    """A job's relation with a dataset: canonical, and `named` as the run called it; `owner` is the run that shows it."""

    job: int
    direction: int
    dataset: int
    named: int
    run: int
    owner: int
    since: int


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
    rows = connection.execute(_relations_of(view.live), {"job_ids": list(job_ids), "moment": view.at})
    return [Related(*row) for row in rows]


class Owner(NamedTuple):
    """Whom a run's relations belong to, and whether a table that it was to create is none."""

    run: int
    job: int
    undone: bool


def _known(connection: Connection, job_ids: Sequence[int]) -> list[Related]:
    """Of each job and direction the relations of the owner that was heard of last.

    Two questions of a few tables each: PostgreSQL takes longer to plan one of eight than to answer both.
    """
    rows = connection.execute(_newest_named(), {"job_ids": list(job_ids)}).all()
    owned = _owners(connection, {row.run_id for row in rows})
    found = [(row, owned[row.run_id]) for row in rows if not (row.creates and owned[row.run_id].undone)]
    last: dict[tuple[int, int], tuple[int, int]] = {}
    for row, owner in found:
        key, heard = (owner.job, row.direction), (row.newest_at, owner.run)
        last[key] = max(last.get(key, heard), heard)
    return [
        Related(owner.job, row.direction, row.canonical_id, row.dataset_id, row.run_id, owner.run, row.first_at)
        for row, owner in found
        if last[owner.job, row.direction][1] == owner.run
    ]


@cache
def _newest_named() -> Select[Any]:
    key = ("run_id", "direction", "dataset_id")
    same = and_(*(job_relations.c[name] == relations.c[name] for name in key))
    return (
        select(relations, datasets.c.canonical_id)
        .select_from(job_relations.join(relations, same).join(datasets, datasets.c.id == relations.c.dataset_id))
        .where(among_given(job_relations.c.job_id, "job_ids"))
        .limit(MOST_ROWS)
    )


def _owners(connection: Connection, run_ids: Iterable[int]) -> dict[int, Owner]:
    rows = connection.execute(_owned(), {"runs": list(run_ids)})
    return {run: Owner(owner, job, not streaming and state in UNDONE) for run, owner, job, streaming, state in rows}


@cache
def _owned() -> Select[Any]:
    whose = (run_owners.c.run_id, run_owners.c.owner_id, run_owners.c.job_id)
    joined = run_owners.join(runs, runs.c.id == run_owners.c.run_id)
    return select(*whose, runs.c.streaming, runs.c.state).select_from(joined).where(among_given(runs.c.id, "runs"))


@cache
def _relations_of(live: bool) -> Select[Any]:
    """Made once: to build it takes longer than to answer it."""
    query = _related(live).where(among_given(runs.c.job_id, "job_ids"), *_valid(live))
    return (query if live else _newest(query)).limit(MOST_ROWS)


def _related(live: bool) -> Select[Any]:
    rows = select(
        run_owners.c.job_id.label("job"),
        relations.c.direction,
        datasets.c.canonical_id.label("dataset"),
        relations.c.dataset_id.label("named"),
        relations.c.run_id.label("run"),
        run_owners.c.owner_id.label("owner"),
        relations.c.first_at.label("since"),
    ).select_from(_joined(live))
    return rows if live else rows.add_columns(relations.c.first_at.label("at"))


def _joined(live: bool) -> FromClause:
    """For what runs, runs come first: most of a job's have ended, and their relations need no look."""
    owned = runs.join(run_owners, run_owners.c.run_id == runs.c.id)
    if live:
        owned = owned.join(owners, owners.c.id == run_owners.c.owner_id)
        owned = owned.join(run_silences, run_silences.c.run_id == run_owners.c.owner_id)
    return owned.join(relations, relations.c.run_id == runs.c.id).join(
        datasets, datasets.c.id == relations.c.dataset_id
    )


def _valid(live: bool) -> list[ColumnElement[bool]]:
    """What a CREATE TABLE AS that failed or was canceled would have made is no table; a streaming job's is kept."""
    failed = and_(relations.c.creates == 1, runs.c.streaming == 0, runs.c.state.in_(UNDONE), runs.c.ended_at <= MOMENT)
    return [~failed, relations.c.first_at <= MOMENT, *(_running() if live else ())]


def _running() -> list[ColumnElement[bool]]:
    return [
        or_(runs.c.ended_at.is_(None), runs.c.ended_at > MOMENT, run_owners.c.owner_id != runs.c.id),
        func.coalesce(owners.c.started_at, runs.c.started_at) <= MOMENT,
        or_(owners.c.ended_at.is_(None), owners.c.ended_at > MOMENT),
        run_silences.c.silent_at >= MOMENT,
    ]


def _newest(query: Select[Any]) -> Select[Any]:
    """Of each job and direction the relations of the owner that was heard of last."""
    rows = query.subquery("rows")
    last = func.first_value(rows.c.owner).over(
        partition_by=(rows.c.job, rows.c.direction), order_by=(rows.c.at.desc(), rows.c.owner.desc())
    )
    ranked = select(rows, last.label("last_owner")).subquery("ranked")
    return select(*(ranked.c[name] for name in Related._fields)).where(ranked.c.owner == ranked.c.last_owner)
