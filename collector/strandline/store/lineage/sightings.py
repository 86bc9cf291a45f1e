"""The last runs of jobs, with what they touched.

As much as answers what is known, now or then, however many runs there were.

Now `job_relations` leads to the run that touched each dataset last; the latest runs of each job
come beside, then all below its latest application (up to MOST_BELOW). Of the micro-batches of one
owner the last few stand for all. Of a past moment the runs that were under way come first, as the
newest, then the last of those that had been heard of last by then.
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
    true,
    union_all,
)

from strandline.store.lineage.empty_writes import created_nothing
from strandline.store.lineage.hidden_nodes import seen_jobs
from strandline.store.lineage.recent_runs import (
    Sighting,
    has_relations,
    recent_runs_of,
    sightings,
    with_relations,
)
from strandline.store.lineage.run_state import MOMENT, View, run_owners
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import jobs, run_parents, run_queries, runs
from strandline.store.sql.each import for_each
from strandline.store.sql.id_lists import among_given

MOST_BELOW = 1_000  # runs of one name below the latest application
LAST_BATCHES = 200  # children of one owner, of which the micro-batches are read

# Which runs of a name: all, or of a moment those that had begun; of these those heard of later, or
# not.
NOW, BEGUN, UNDER_WAY, ENDED = "now", "begun", "under way", "ended"
run = runs.alias("run")


def last_sightings(
    connection: Connection, names: Collection[int], recent_runs: int, now: int
) -> list[Sighting]:
    """Return the sightings of the last runs of jobs.

    Those are the jobs of these names, and the jobs that own runs of these names.
    """
    last = _last_runs(connection, names, recent_runs, now)
    jobs_asked = seen_jobs(connection, last.jobs.union(names))
    if jobs_asked != set(names):
        last = _last_runs(connection, jobs_asked, recent_runs, now)
    search = _RunSearch(connection, jobs_asked, jobs_asked, View(now), recent_runs)
    runs, owners = last.found, last.owners
    if last.mixed:
        runs = runs | search.newest(last.mixed, own=True)
        owners = owners | search.owners_of(runs - last.found)
    touches = [touch for touch in last.touches if touch.job in jobs_asked]
    touches += search.touched_by((runs | search.batches(owners)) - last.found)
    return search.with_applications(touches, runs)


def past_sightings(
    connection: Connection,
    names: Collection[int],
    jobs_asked: Collection[int],
    recent_runs: int,
    moment: int,
) -> list[Sighting]:
    """Return what runs of these names had touched by a moment that belong to these jobs.

    At least all that was known then.
    """
    then = _RunSearch(connection, names, jobs_asked, View(moment, past=True), recent_runs)
    runs = then.under_way() | then.newest(names)
    runs |= then.newest(then.mixed(runs).intersection(jobs_asked), own=True)
    return then.with_applications(then.touches(runs), runs)


@dataclass(slots=True)
class _Last:
    """Runs that touched a dataset last, and the newest of each name, with what they touched.

    jobs: those that the former belong to. owners: of micro-batches among them, or that touched
    nothing themselves. mixed: names of runs that are another job's.
    """

    found: set[int] = field(default_factory=set)
    jobs: set[int] = field(default_factory=set)
    owners: set[int] = field(default_factory=set)
    mixed: set[int] = field(default_factory=set)
    touches: list[Sighting] = field(default_factory=list)


def _last_runs(connection: Connection, names: Collection[int], recent_runs: int, now: int) -> _Last:
    parameters = {"names": list(names), "most": recent_runs + 1, "moment": now}
    last = _Last()
    for *columns, is_undone_, has_touched_last, name in connection.execute(
        _last_of_names(connection.dialect.name), parameters
    ).all():
        sighting = Sighting._make(columns)
        last.found.add(sighting.run)
        if has_touched_last:
            last.jobs.add(sighting.job)
        if sighting.owner != sighting.run or sighting.named is None:
            last.owners.add(sighting.owner)
        if sighting.job != name:
            last.mixed.add(name)
        if sighting.dataset is not None and not is_undone_:
            last.touches.append(sighting)
    return last


def sightings_of(
    connection: Connection, owners: Collection[int], jobs_asked: Collection[int], now: int
) -> list[Sighting]:
    """Return the sightings of these owning runs of these jobs.

    The runs count themselves, and so do their last micro-batches.
    """
    runs = {*owners, *connection.scalars(_named(), {"names": list(jobs_asked)}).all()}
    return [
        touch
        for touch in _RunSearch(connection, jobs_asked, jobs_asked, View(now)).touches(runs)
        if touch.owner in owners
    ]


@dataclass(frozen=True, slots=True)
class _RunSearch:
    """Looks runs up that have these names, and what they touched of what belongs to these jobs.

    At a past moment or now.
    """

    connection: Connection
    names: Collection[int]
    jobs: Collection[int]
    view: View
    recent_runs: int = 0

    def with_applications(self, touches: list[Sighting], runs: set[int]) -> list[Sighting]:
        """Add what else is known where these runs were found.

        All of the newest applications, themselves and below them, and before these as many.
        """
        touches = touches + self._in_place_of_idle(touches, runs)
        if applications := self._applications(touches):
            below = self.newest(self.names, applications, MOST_BELOW, within=True)
            before = self.newest(self.names, applications, within=False)
            touches += self.touches((applications | below | before) - runs)
            touches += self._in_place_of_idle(touches, before | runs, applications)
        return touches

    def newest(
        self,
        names: Collection[int],
        applications: Collection[int] = (),
        most: int | None = None,
        *,
        within: bool = False,
        own: bool = False,
    ) -> set[int]:
        """The newest runs of each name that own something.

        `within` these applications, or else without them.

        own: only those that own what they or their micro-batches touched. Micro-batches of another
        job's query may have the same name, a query's may have turned out to be none, and a CREATE
        TABLE AS that failed made nothing. Of a moment: that were heard of last by then, but within
        applications also those that were under way.
        """
        if not names:
            return set()
        when = NOW if not self.view.past else BEGUN if within else ENDED
        query = _newest_runs(self.connection.dialect.name, when, bool(applications), within, own)
        parameters = {
            "names": list(names),
            "most": most or self.recent_runs + 1,
            "applications": list(applications),
        }
        return set(self.connection.scalars(query, parameters | {"moment": self.view.at}).all())

    def under_way(self) -> set[int]:
        """Return the runs that had begun at the moment and were heard of later.

        Up to MOST_BELOW of a name.
        """
        query = _newest_runs(
            self.connection.dialect.name, UNDER_WAY, bounded=False, within=False, own=False
        )
        parameters = {"names": list(self.names), "most": MOST_BELOW}
        return set(self.connection.scalars(query, parameters | {"moment": self.view.at}).all())

    def mixed(self, runs: Collection[int]) -> set[int]:
        """Names of these runs under which some are another job's."""
        return set(self.connection.scalars(_mixed(), {"runs": list(runs)}).all()) if runs else set()

    def owners_of(self, runs: Collection[int]) -> set[int]:
        """Return the runs that own others.

        Those whose micro-batches are among these runs, or that touched nothing themselves.
        """
        return (
            set(self.connection.scalars(_owners(), {"runs": list(runs)}).all()) if runs else set()
        )

    def batches(self, owners: Collection[int]) -> set[int]:
        """The last micro-batches of these runs."""
        if not owners:
            return set()
        parameters, how = (
            {"owners": list(owners)} | {"moment": self.view.at},
            (self.connection.dialect.name, self.view.past),
        )
        of_queries = self.connection.scalars(_last_of_queries(*how), parameters).all()
        return {*of_queries, *self.connection.scalars(_last_batches(*how), parameters).all()}

    def touches(self, runs: set[int]) -> list[Sighting]:
        """Return the datasets of these runs, and the last micro-batches of their owners."""
        return self.touched_by(runs | self.batches(self.owners_of(runs)))

    def touched_by(self, runs: Collection[int]) -> list[Sighting]:
        """Return the datasets of these runs."""
        if not runs:
            return []
        parameters = {"runs": list(runs), "jobs": list(self.jobs)} | {"moment": self.view.at}
        rows = self.connection.execute(_of_runs(self.view.past), parameters).all()
        return [
            as_of(sighting, self.view.at if self.view.past else None)
            for sighting in map(Sighting._make, rows)
        ]

    def _in_place_of_idle(
        self,
        touches: Sequence[Sighting],
        runs: Collection[int],
        applications: Collection[int] = (),
    ) -> list[Sighting]:
        """Return the sightings of other runs in place of found runs that own nothing."""
        idle = set(runs).difference(touch.owner for touch in touches)
        names = set(self.connection.scalars(_names_of(), {"runs": list(idle)})) if idle else set()
        names &= {touch.job for touch in touches} if not self.view.past else set(self.jobs)
        owning = self.newest(names, applications, own=True) if names else set()
        return self.touches(owning.difference(runs))

    def _applications(self, touches: Sequence[Sighting]) -> set[int]:
        """The newest application of each job, where it has runs below it."""
        if not any(touch.may_have_below for touch in touches):
            return set()
        newest = {window.newest for window in recent_runs_of(touches, self.recent_runs).values()}
        applications = {
            touch.application for touch in touches if touch.may_have_below and touch.owner in newest
        }
        return (
            set(self.connection.scalars(_with_children(), {"runs": list(applications)}))
            if applications
            else set()
        )


def as_of(sighting: Sighting, moment: int | None) -> Sighting:
    """Return what came after the moment was not heard yet."""
    return (
        sighting
        if moment is None
        else sighting._replace(at=min(sighting.at, moment), run_at=min(sighting.run_at, moment))
    )


@cache
def _last_of_names(dialect: str) -> CompoundSelect[Any]:
    """The runs that touched a dataset last, and the newest of each name, once each.

    With what they touched, if anything.

    Asked as one: of a few jobs there are few rows, and each statement costs more than they do.
    """
    named = select(job_relations.c.run_id.label("id"), literal(1).label("last"))
    newest = _newest_runs(dialect, NOW, bounded=False, within=False, own=False).add_columns(
        literal(0).label("last")
    )
    every = union_all(named.where(among_given(job_relations.c.job_id, "names")), newest).subquery(
        "every"
    )
    last_runs = (
        select(every.c.id, func.max(every.c.last).label("last")).group_by(every.c.id).cte("found")
    )
    owned = last_runs.join(runs, runs.c.id == last_runs.c.id).join(
        run_owners, run_owners.c.run_id == runs.c.id
    )
    more = created_nothing().label("undone"), last_runs.c.last, runs.c.job_id.label("name")
    some = sightings(past=False).add_columns(*more).select_from(with_relations(owned))
    return union_all(some, _touched_nothing(owned, last_runs.c.last))


def _touched_nothing(owned: FromClause, last: ColumnElement[int]) -> Select[Any]:
    """Those of the runs that touched nothing, in the same columns."""
    columns_of = {"job": run_owners.c.job_id, "run": runs.c.id, "owner": run_owners.c.owner_id}
    columns = [columns_of.get(name, null()).label(name) for name in Sighting._fields]
    own = exists().where(relations.c.run_id == runs.c.id)
    return select(*columns, false(), last, runs.c.job_id).select_from(owned).where(not_(own))


@cache
def _named() -> Select[Any]:
    return (
        select(job_relations.c.run_id)
        .distinct()
        .where(among_given(job_relations.c.job_id, "names"))
    )


@cache
def _names_of() -> Select[Any]:
    return select(runs.c.job_id).distinct().where(among_given(runs.c.id, "runs"))


@cache
def _mixed() -> Select[Any]:
    owned = runs.join(run_owners, run_owners.c.run_id == runs.c.id)
    of_another = among_given(runs.c.id, "runs"), run_owners.c.job_id != runs.c.job_id
    return select(runs.c.job_id).distinct().select_from(owned).where(*of_another)


@cache
def _with_children() -> Select[Any]:
    child = exists().where(run_parents.c.parent_run_id == runs.c.id)
    return select(runs.c.id).where(among_given(runs.c.id, "runs"), child)


@cache
def _owners() -> Select[Any]:
    others = or_(
        run_owners.c.owner_id != run_owners.c.run_id, not_(has_relations(run_owners.c.run_id))
    )
    return (
        select(run_owners.c.owner_id)
        .distinct()
        .where(among_given(run_owners.c.run_id, "runs"), others)
    )


@cache
def _of_runs(past: bool) -> Select[Any]:
    begun = relations.c.first_at <= MOMENT if past else true()
    return (
        sightings(past)
        .select_from(with_relations(runs.join(run_owners, run_owners.c.run_id == runs.c.id)))
        .where(among_given(runs.c.id, "runs"), among_given(run_owners.c.job_id, "jobs"))
        .where(~created_nothing(past), begun)
    )


@cache
def _newest_runs(dialect: str, when: str, bounded: bool, within: bool, own: bool) -> Select[Any]:
    below = exists().where(
        run_parents.c.run_id == run.c.id, among_given(run_parents.c.parent_run_id, "applications")
    )
    owns = or_(
        has_relations(run.c.id),
        exists().where(run_parents.c.parent_run_id == run.c.id),
        run.c.query == 1,
    )
    wanted: list[ColumnElement[bool]] = [
        run.c.job_id == jobs.c.id,
        run.c.newest_at.is_not(None),
        owns,
    ]
    if when in (BEGUN, UNDER_WAY):
        wanted.append(run.c.first_at <= MOMENT)
    if when in (ENDED, UNDER_WAY):
        wanted.append(run.c.newest_at <= MOMENT if when == ENDED else run.c.newest_at > MOMENT)
    if own:
        wanted.append(_owns_some())
    if bounded:
        wanted.append(below if within else not_(below))
    last = select(run.c.id).where(*wanted).order_by(run.c.newest_at.desc(), run.c.id.desc())
    return for_each(dialect, jobs.c.id, "names", last.limit(bindparam("most", type_=Integer)))


def _owns_some() -> ColumnElement[bool]:
    """Return whether the run owns what it touched, or what one of its micro-batches did."""
    touch = runs.join(relations, relations.c.run_id == runs.c.id).join(
        run_owners, run_owners.c.run_id == runs.c.id
    )
    owned = (
        select(runs.c.id)
        .where(run_owners.c.owner_id == run.c.id, ~created_nothing())
        .correlate(run)
    )
    itself = owned.select_from(touch).where(runs.c.id == run.c.id)
    of_query = owned.select_from(touch.join(run_queries, run_queries.c.run_id == runs.c.id))
    of_parent = owned.select_from(touch.join(run_parents, run_parents.c.run_id == runs.c.id))
    return or_(
        itself.exists(),
        of_query.where(run_queries.c.owner_id == run.c.id).exists(),
        of_parent.where(run_parents.c.parent_run_id == run.c.id).exists(),
    )


@cache
def _last_of_queries(dialect: str, past: bool) -> Select[Any]:
    batch = run_queries.alias("batch")
    return _last_of_owners(dialect, batch, batch.c.owner_id, past)


@cache
def _last_batches(dialect: str, past: bool) -> Select[Any]:
    child, batch = run_parents.alias("child"), runs.alias("batch")
    last = _last_of_owners(dialect, child, child.c.parent_run_id, past)
    return select(batch.c.id).where(
        batch.c.id.in_(last), batch.c.streaming == 1, batch.c.spark == 1, batch.c.announced == 0
    )


def _last_of_owners(
    dialect: str, of: FromClause, owner: ColumnElement[int], past: bool
) -> Select[Any]:
    """Select the last runs that rows lead to from each of the owners."""
    last = select(of.c.run_id.label("id")).where(owner == runs.c.id)
    if past:
        itself = runs.alias("itself")
        last = last.join(itself, itself.c.id == of.c.run_id).where(itself.c.first_at <= MOMENT)
    return for_each(dialect, runs.c.id, "owners", last.order_by(of.c.at.desc()).limit(LAST_BATCHES))
