"""The last runs of jobs, with what they touched: as much as answers what is known now, however many runs there were.

`job_relations` leads to the run that touched each dataset last; the newest runs of each job come beside, then all below
its newest application (up to MOST_BELOW). Of the micro-batches of one owner the last few stand for all.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Integer,
    Select,
    bindparam,
    exists,
    false,
    func,
    literal,
    not_,
    null,
    or_,
    select,
    union_all,
)

from strandline.store.lineage.hidden_nodes import seen_jobs
from strandline.store.lineage.touches import (
    Touch,
    is_undone,
    made_nothing,
    run_owners,
    touched,
    touched_some,
    touching,
    windows_of,
)
from strandline.store.schema.tables import job_relations, jobs, relations, run_parents, run_queries, runs
from strandline.store.sql.each import for_each
from strandline.store.sql.id_lists import among_given

MOST_BELOW = 1_000  # runs of one name below the newest application
LAST_BATCHES = 200  # children of one owner, of which the micro-batches are read

run = runs.alias("run")


def last_touches(connection: Connection, names: Collection[int], known_runs: int) -> list[Touch]:
    """What the last runs touched that belong to the jobs of these names, or to those that runs of these names belong to."""
    last = _last_runs(connection, names, known_runs)
    jobs_asked = seen_jobs(connection, last.jobs.union(names))
    if jobs_asked != set(names):
        last = _last_runs(connection, jobs_asked, known_runs)
    touches = [one for one in last.touches if one.job in jobs_asked]
    found, owners = last.found, last.owners
    if last.mixed:
        found = found | _newest(connection, last.mixed, known_runs + 1, own=True)
        owners = owners | _owners_of(connection, found - last.found)
    touches += _of(connection, (found | _batches(connection, owners)) - last.found, jobs_asked)
    touches += _in_place_of_idle(connection, touches, found, jobs_asked, known_runs + 1)
    applications = _applications(connection, touches, known_runs)
    if applications:
        below = _newest(connection, jobs_asked, MOST_BELOW, applications, within=True)
        before = _newest(connection, jobs_asked, known_runs + 1, applications, within=False)
        touches += _touches(connection, (below | before) - found, jobs_asked)
        touches += _in_place_of_idle(connection, touches, before | found, jobs_asked, known_runs + 1, applications)
    return touches


@dataclass(slots=True)
class _Last:
    """Runs that touched a dataset last, and the newest of each name, with what they touched.

    jobs: those that the former belong to. owners: of micro-batches among them, or that touched nothing themselves.
    mixed: names of runs that are another job's.
    """

    found: set[int] = field(default_factory=set)
    jobs: set[int] = field(default_factory=set)
    owners: set[int] = field(default_factory=set)
    mixed: set[int] = field(default_factory=set)
    touches: list[Touch] = field(default_factory=list)


def _last_runs(connection: Connection, names: Collection[int], known_runs: int) -> _Last:
    given = {"names": list(names), "most": known_runs + 1}
    last = _Last()
    for *columns, is_undone_, has_touched_last, name in connection.execute(
        _last_of_names(connection.dialect.name), given
    ).all():
        one = Touch._make(columns)
        last.found.add(one.run)
        if has_touched_last:
            last.jobs.add(one.job)
        if one.owner != one.run or one.named is None:
            last.owners.add(one.owner)
        if one.job != name:
            last.mixed.add(name)
        if one.dataset is not None and not is_undone_:
            last.touches.append(one)
    return last


def _in_place_of_idle(
    connection: Connection,
    touches: Sequence[Touch],
    found: Collection[int],
    jobs_asked: Collection[int],
    most: int,
    applications: Collection[int] = (),
) -> list[Touch]:
    """What other runs touched where some of those that were found own nothing and took the place of such that do."""
    idle = set(found).difference(one.owner for one in touches)
    names = set(connection.scalars(_names_of(), {"runs": list(idle)})) if idle else set()
    names &= {one.job for one in touches}
    owning = _newest(connection, names, most, applications, own=True) if names else set()
    return _touches(connection, owning.difference(found), jobs_asked)


def touches_of(connection: Connection, owners: Collection[int], jobs_asked: Collection[int]) -> list[Touch]:
    """What these owning runs of these jobs touched: themselves, and in their last micro-batches."""
    found = {*owners, *connection.scalars(_named(), {"names": list(jobs_asked)}).all()}
    return [one for one in _touches(connection, found, jobs_asked) if one.owner in owners]


def _applications(connection: Connection, touches: Sequence[Touch], known_runs: int) -> set[int]:
    """The newest application of each job, where it has runs below it."""
    if not any(one.may_have_below for one in touches):
        return set()
    newest = {window.newest for window in windows_of(touches, known_runs).values()}
    found = {one.application for one in touches if one.may_have_below and one.owner in newest}
    return set(connection.scalars(_with_children(), {"runs": list(found)})) if found else set()


def _touches(connection: Connection, found: set[int], jobs_asked: Collection[int]) -> list[Touch]:
    """What these runs touched, and the last micro-batches of their owners."""
    return _of(connection, found | _batches(connection, _owners_of(connection, found)), jobs_asked)


def _of(connection: Connection, found: Collection[int], jobs_asked: Collection[int]) -> list[Touch]:
    if not found:
        return []
    given = {"runs": list(found), "jobs": list(jobs_asked)}
    return list(map(Touch._make, connection.execute(_of_runs(), given).all()))


def _newest(
    connection: Connection,
    names: Collection[int],
    most: int,
    applications: Collection[int] = (),
    *,
    within: bool = False,
    own: bool = False,
) -> set[int]:
    """The newest runs of each name that own something; `within` these applications, or else without them.

    own: only those that own what they or their micro-batches touched. Micro-batches of another job's query may have the
    same name, a query's may have turned out to be none, and a CREATE TABLE AS that failed made nothing.
    """
    query = _newest_runs(connection.dialect.name, bool(applications), within, own)
    given = {"names": list(names), "most": most, "applications": list(applications)}
    return set(connection.scalars(query, given).all())


def _batches(connection: Connection, owners: Collection[int]) -> set[int]:
    """The last micro-batches of these runs."""
    if not owners:
        return set()
    given, dialect = {"owners": list(owners)}, connection.dialect.name
    of_queries = connection.scalars(_last_of_queries(dialect), given).all()
    return {*of_queries, *connection.scalars(_last_batches(dialect), given).all()}


def _owners_of(connection: Connection, found: Collection[int]) -> set[int]:
    """Runs that own others: of which micro-batches are among these runs, or which touched nothing themselves."""
    return set(connection.scalars(_owners(), {"runs": list(found)}).all()) if found else set()


@cache
def _last_of_names(dialect: str) -> CompoundSelect[Any]:
    """The runs that touched a dataset last, and the newest of each name, once each; with what they touched, if anything.

    Asked as one: of a few jobs there are few rows, and each statement costs more than they do.
    """
    named = select(job_relations.c.run_id.label("id"), literal(1).label("last"))
    newest = _newest_runs(dialect, bounded=False, within=False, own=False).add_columns(literal(0).label("last"))
    every = union_all(named.where(among_given(job_relations.c.job_id, "names")), newest).subquery("every")
    found = select(every.c.id, func.max(every.c.last).label("last")).group_by(every.c.id).cte("found")
    owned = found.join(runs, runs.c.id == found.c.id).join(run_owners, run_owners.c.run_id == runs.c.id)
    more = is_undone(relations, runs).label("undone"), found.c.last, runs.c.job_id.label("name")
    some = touching(made_nothing(relations, runs)).add_columns(*more).select_from(touched(owned))
    return union_all(some, _touched_nothing(owned, found.c.last))


def _touched_nothing(owned: FromClause, last: ColumnElement[int]) -> Select[Any]:
    """Those of the runs that touched nothing, in the same columns."""
    columns_of = {"job": run_owners.c.job_id, "run": runs.c.id, "owner": run_owners.c.owner_id}
    columns = [columns_of.get(name, null()).label(name) for name in Touch._fields]
    own = exists().where(relations.c.run_id == runs.c.id)
    return select(*columns, false(), last, runs.c.job_id).select_from(owned).where(not_(own))


@cache
def _named() -> Select[Any]:
    return select(job_relations.c.run_id).distinct().where(among_given(job_relations.c.job_id, "names"))


@cache
def _names_of() -> Select[Any]:
    return select(runs.c.job_id).distinct().where(among_given(runs.c.id, "runs"))


@cache
def _with_children() -> Select[Any]:
    child = exists().where(run_parents.c.parent_run_id == runs.c.id)
    return select(runs.c.id).where(among_given(runs.c.id, "runs"), child)


@cache
def _owners() -> Select[Any]:
    others = or_(run_owners.c.owner_id != run_owners.c.run_id, not_(touched_some(run_owners.c.run_id)))
    return select(run_owners.c.owner_id).distinct().where(among_given(run_owners.c.run_id, "runs"), others)


@cache
def _of_runs() -> Select[Any]:
    return (
        touching(made_nothing(relations, runs))
        .select_from(touched(runs.join(run_owners, run_owners.c.run_id == runs.c.id)))
        .where(among_given(runs.c.id, "runs"), among_given(run_owners.c.job_id, "jobs"), ~is_undone(relations, runs))
    )


@cache
def _newest_runs(dialect: str, bounded: bool, within: bool, own: bool) -> Select[Any]:
    below = exists().where(run_parents.c.run_id == run.c.id, among_given(run_parents.c.parent_run_id, "applications"))
    owns = or_(
        touched_some(run.c.id),
        exists().where(run_parents.c.parent_run_id == run.c.id),
        run.c.query == 1,
    )
    wanted: list[ColumnElement[bool]] = [run.c.job_id == jobs.c.id, run.c.newest_at.is_not(None), owns]
    if own:
        wanted.append(_owns_some())
    if bounded:
        wanted.append(below if within else not_(below))
    last = select(run.c.id).where(*wanted).order_by(run.c.newest_at.desc(), run.c.id.desc())
    return for_each(dialect, jobs.c.id, "names", last.limit(bindparam("most", type_=Integer)))


def _owns_some() -> ColumnElement[bool]:
    """Whether the run owns what it touched, or what one of its micro-batches did."""
    touch = runs.join(relations, relations.c.run_id == runs.c.id).join(run_owners, run_owners.c.run_id == runs.c.id)
    owned = select(runs.c.id).where(run_owners.c.owner_id == run.c.id, ~is_undone(relations, runs)).correlate(run)
    itself = owned.select_from(touch).where(runs.c.id == run.c.id)
    of_query = owned.select_from(touch.join(run_queries, run_queries.c.run_id == runs.c.id))
    of_parent = owned.select_from(touch.join(run_parents, run_parents.c.run_id == runs.c.id))
    return or_(
        itself.exists(),
        of_query.where(run_queries.c.owner_id == run.c.id).exists(),
        of_parent.where(run_parents.c.parent_run_id == run.c.id).exists(),
    )


@cache
def _last_of_queries(dialect: str) -> Select[Any]:
    batch = run_queries.alias("batch")
    of_owner = select(batch.c.run_id.label("id")).where(batch.c.owner_id == runs.c.id)
    return for_each(dialect, runs.c.id, "owners", of_owner.order_by(batch.c.at.desc()).limit(LAST_BATCHES))


@cache
def _last_batches(dialect: str) -> Select[Any]:
    child = run_parents.alias("child")
    of_owner = select(child.c.run_id.label("id")).where(child.c.parent_run_id == runs.c.id)
    last = for_each(dialect, runs.c.id, "owners", of_owner.order_by(child.c.at.desc()).limit(LAST_BATCHES))
    batch = runs.alias("batch")
    return select(batch.c.id).where(
        batch.c.id.in_(last), batch.c.streaming == 1, batch.c.spark == 1, batch.c.announced == 0
    )
