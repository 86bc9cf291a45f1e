"""Which jobs read and write which datasets: known (each job's newest relations) or live, now or as of a moment.

Asked level by level: the jobs that touch these datasets, then all that those jobs touch. What is known now is found by
`job_relations`, whose size is the graph's; what runs, and the past, by `relations`, one row a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Connection, FromClause, Select, and_, column, func, or_, select, table

from strandline.core import states
from strandline.store.among import among
from strandline.store.tables import datasets, job_relations, relations, run_parents, runs

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


def jobs_touching(
    connection: Connection, view: View, dataset_ids: Sequence[int], direction: int, limit: int
) -> list[int]:
    """Jobs, as named by their events, that read (direction 0) or wrote (1) these datasets."""
    base = job_relations if view.by_job else relations
    touching = (
        select(_job(view))
        .distinct()
        .select_from(base if view.by_job else base.join(runs, runs.c.id == relations.c.run_id))
        .join(datasets, datasets.c.id == base.c.dataset_id)
        .where(among(datasets.c.canonical_id, dataset_ids), base.c.direction == direction)
        .limit(limit)
    )
    return list(connection.scalars(touching))


def jobs_under(connection: Connection, job_id: int) -> list[int]:
    """The jobs, as named by their events, whose relations count as this job's: itself, and those of its micro-batches."""
    children = select(run_parents.c.run_id).where(run_parents.c.parent_job_id == job_id)
    under = (
        select(runs.c.job_id)
        .distinct()
        .join(run_owners, run_owners.c.run_id == runs.c.id)
        .where(run_owners.c.job_id == job_id, or_(runs.c.id.in_(children), runs.c.streaming == 1))
    )
    return [job_id, *(other for other in connection.scalars(under) if other != job_id)]


def relations_of(connection: Connection, view: View, job_ids: Sequence[int]) -> list[Related]:
    """All relations of these jobs, each under the job that it belongs to."""
    query = _related(view).where(among(_job(view), job_ids), *_valid(view))
    return [
        Related(*row) for row in connection.execute((query if view.live else _newest(query)).limit(MOST_ROWS))
    ]  # fmt: skip


def _job(view: View) -> ColumnElement[int]:
    return job_relations.c.job_id if view.by_job else runs.c.job_id


def _related(view: View) -> Select[Any]:
    rows = select(
        run_owners.c.job_id.label("job"),
        relations.c.direction,
        datasets.c.canonical_id.label("dataset"),
        relations.c.dataset_id.label("named"),
        relations.c.run_id.label("run"),
        run_owners.c.owner_id.label("owner"),
        relations.c.first_at.label("since"),
    ).select_from(_joined(view))
    return rows if view.live else rows.add_columns(_heard(view).label("at"))


def _heard(view: View) -> ColumnElement[int]:
    return relations.c.first_at if view.past else relations.c.newest_at


def _joined(view: View) -> FromClause:
    key = ("run_id", "direction", "dataset_id")
    newest = job_relations.join(relations, and_(*(job_relations.c[name] == relations.c[name] for name in key)))
    joined = (
        (newest if view.by_job else relations)
        .join(runs, runs.c.id == relations.c.run_id)
        .join(run_owners, run_owners.c.run_id == relations.c.run_id)
        .join(datasets, datasets.c.id == relations.c.dataset_id)
    )
    if not view.live:
        return joined
    return joined.join(owners, owners.c.id == run_owners.c.owner_id).join(
        run_silences, run_silences.c.run_id == run_owners.c.owner_id
    )


def _valid(view: View) -> list[ColumnElement[bool]]:
    """What a CREATE TABLE AS that failed or was canceled would have made is no table; a streaming job's is kept."""
    failed = and_(relations.c.creates == 1, runs.c.streaming == 0, runs.c.state.in_((states.ABORT, states.FAIL)))
    valid = [~(failed if view.by_job else failed & (runs.c.ended_at <= view.at))]
    valid += [] if view.by_job else [relations.c.first_at <= view.at]
    return valid + (_running(view.at) if view.live else [])


def _running(at: int) -> list[ColumnElement[bool]]:
    return [
        func.coalesce(owners.c.started_at, runs.c.started_at) <= at,
        or_(owners.c.ended_at.is_(None), owners.c.ended_at > at),
        run_silences.c.silent_at >= at,
    ]


def _newest(query: Select[Any]) -> Select[Any]:
    """Of each job and direction the relations of the owner that was heard of last."""
    rows = query.subquery("rows")
    last = func.first_value(rows.c.owner).over(
        partition_by=(rows.c.job, rows.c.direction), order_by=(rows.c.at.desc(), rows.c.owner.desc())
    )
    ranked = select(rows, last.label("last_owner")).subquery("ranked")
    return select(*(ranked.c[name] for name in Related._fields)).where(ranked.c.owner == ranked.c.last_owner)
