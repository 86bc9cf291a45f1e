"""Groups, decisions before a checkpoint, delays, what is expirable, plans for a rollback."""

import time
from collections.abc import Mapping
from heapq import nsmallest
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.answers import JSON, TableName
from strandline.api.http.route import Route, refused
from strandline.api.http.session import AdminSession, ReadSession
from strandline.core.access.granted import EVERYTHING
from strandline.core.openlineage.names import named
from strandline.core.versions.checkpoint import Decision, decide
from strandline.core.versions.completions import Completions
from strandline.core.versions.facts import Fact, GroupDeclared, Job, Table
from strandline.core.versions.model import Group as GroupState
from strandline.core.versions.model import Model, descendants
from strandline.core.versions.registration import refuse_group
from strandline.core.versions.rollback import Plan, plan
from strandline.core.versions.rollback_statements import StoredTable
from strandline.errors import RefusedError
from strandline.questions.version_answers import delays, expirable
from strandline.questions.versions import (
    Declaration,
    DelaysQuery,
    ExpirableQuery,
    GroupsQuery,
    Position,
    Rollback,
)
from strandline.store.sql.pages import encode_cursor
from strandline.store.versions.fact_log import mark_roots
from strandline.store.versions.hidden_names import sees_group
from strandline.store.versions.lookup import call, job_called, known_name, table_of
from strandline.store.versions.outside_jobs import jobs_outside, outside_answer
from strandline.store.versions.rollback_answers import plan_answer
from strandline.store.versions.stored_tables import stored_tables

router = APIRouter(prefix="/api/v2", tags=["versions"], route_class=Route)
Answer = dict[str, Any]


class Group(TypedDict):
    """A group with its base tables and newest barrier."""

    name: str
    declared: bool
    tables: list[TableName]
    generation: int
    barrier: int | None


class Groups(TypedDict):
    """A page of groups; `nextCursor` null: this was the last."""

    groups: list[Group]
    nextCursor: str | None


class TableSnapshot(TableName):
    """A table at a snapshot."""

    snapshotId: str


class DecisionAnswer(TypedDict):
    """The decision about a job's next checkpoint."""

    generation: int
    joining: bool
    decision: str
    barrier: int | None
    abort: list[int]
    snapshots: list[TableSnapshot]


class Kept(TypedDict):
    """A snapshot that is kept, and why."""

    snapshotId: str
    reasons: list[str]


class DelayPart(TypedDict):
    """A part of a delay: a wait, or the work of a job."""

    table: JSON
    job: TableName | None
    kind: str
    seconds: float


class Delay(TypedDict):
    """The time from a base table to a table at a barrier, and its largest part."""

    barrier: int
    seconds: float
    parts: list[DelayPart]
    bottleneck: DelayPart | None


class Staleness(TypedDict):
    """The first barrier that a table lacks, null if none; how long, and whose it is."""

    barrier: int | None
    seconds: float
    localSeconds: float
    job: TableName | None


class Lateness(TableName):
    """The delay of a table behind its base tables."""

    label: str
    writer: TableName | None
    blockedBy: list[str]
    delay: Delay | None
    staleness: Staleness


class Expirable(TableName):
    """Expirable snapshots, and some that are pinned."""

    expirable: list[str]
    expirableCount: int
    kept: list[Kept]
    keptCount: int
    pinned: list[Kept]
    outsideCount: int


class RollbackPlan(TypedDict):
    """The steps that take a group back."""

    kind: str
    group: str | None
    barrier: int | None
    generation: int | None
    tables: list[TableName]
    jobs: list[TableName]
    steps: list[JSON]
    why: Any
    outside: list[JSON]


@router.post("/groups", response_model=Group, responses=refused(409))
def post_group(wanted: Declaration, session: AdminSession) -> Answer:
    """Declare a group: put base tables together, or add some to a group."""
    if not wanted.name or not wanted.tables:
        raise RefusedError("a group needs a name and at least one base table", "groups")

    def decide_(
        connection: Connection, model: Model, now: float
    ) -> tuple[list[Fact], tuple[Table, ...]]:
        roots = tuple(
            dict.fromkeys(known_name(connection, model, table.pair) for table in wanted.tables)
        )
        session.access.require(
            [*roots, *(table for table, of in model.group_of.items() if of == wanted.name)]
        )
        refuse_group(model, wanted.name, roots)
        mark_roots(connection, wanted.name, roots)
        return [GroupDeclared(wanted.name, roots, now)], roots

    follower = session.follower
    follower.decide(decide_)
    with follower.model() as model:
        return _group(model, model.group(wanted.name))


@router.get("/groups", response_model=Groups)
def get_groups(query: Annotated[GroupsQuery, InQuery()], session: ReadSession) -> Answer:
    """All groups, by name."""
    after, limit = query.cursor, query.limit
    with session.follower.model() as model:
        visible = (name for name in model.groups if sees_group(model, session.access, name))
        names = nsmallest(limit + 1, (name for name in visible if after is None or (name,) > after))
        page = names[:limit]
        more = encode_cursor(page[-1:]) if len(names) > len(page) else None
        return {
            "groups": [_group(model, model.groups[name]) for name in page],
            "nextCursor": more,
        }


def _group(model: Model, group: GroupState) -> Answer:
    roots = group.bases or tuple(
        sorted(t for t in model.roots if model.group_of.get(t) == group.name)
    )
    return {
        "name": group.name,
        "declared": bool(group.declared),
        "tables": [named(table) for table in roots],
        "generation": group.generation,
        "barrier": group.newest,
    }


@router.post("/jobs/decision", response_model=DecisionAnswer, responses=refused(404))
def post_decision(position: Position, session: ReadSession) -> Answer:
    """Decide before a checkpoint: PROCEED, CHECKPOINT or ABORT, for the whole micro-batch."""
    with session.follower.question(session.access) as (connection, model):
        name = position.namespace, position.name
        job = job_called(connection, model, name, session.access)
        session.access.require(_tables_of(model, job))
        timeout = session.settings.barrier_timeout_seconds
        decision = _decision(model, job, position, timeout)
        place = model.places.get(job)
        joining = place is not None and any(
            model.is_joining(table) for table in model.links(place) & place.writes
        )
        written = [
            model.done[table].generation
            for table in (place.writes if place else ())
            if table in model.done
        ]
    return {
        "generation": max(written, default=1),
        "joining": joining,
        "decision": decision.kind,
        "barrier": decision.barrier,
        "abort": list(decision.abort),
        "snapshots": [
            named(table) | {"snapshotId": snapshot} for table, snapshot in decision.snapshots
        ],
    }


def _tables_of(model: Model, job: Job) -> set[Table]:
    place = model.places.get(job)
    tables = model.registered[job].tables if place is None else place
    return {*tables.reads, *tables.writes}


def _decision(model: Model, job: Job, position: Position, timeout: float | None) -> Decision:
    place = model.places.get(job)
    overdue: set[int] = set()
    if place is None:
        tables = model.registered[job].tables
        sources = {table for table in tables.reads - tables.writes if model.is_tracked(table)}
    else:
        if position.position is None and place.started_up and place.start_barrier is not None:
            return Decision(
                "CHECKPOINT", place.start_barrier, (), tuple(sorted(place.started_up.items()))
            )
        sources = model.links(place) & place.reads - place.writes
        overdue = model.group(place.group).overdue(timeout, time.time())
    completed = {table: model.done.get(table, Completions()) for table in sorted(sources)}
    return decide(completed, position.position, overdue, position.max_behind)


@router.get("/delays", response_model=Lateness, responses=refused(404, 409))
def get_delays(query: Annotated[DelaysQuery, InQuery()], session: ReadSession) -> Answer:
    """End-to-end delay and staleness of a table."""
    return delays(session, query)


@router.get("/expirable", response_model=Expirable, responses=refused(404))
def get_expirable(query: Annotated[ExpirableQuery, InQuery()], session: ReadSession) -> Answer:
    """List the expirable snapshots, and why others are kept.

    Of all that is kept the oldest `limit` are listed; `pinned` are all that somebody needs by
    itself. `outsideCount` are those outside the main ancestry, which are always kept.
    """
    return expirable(session, query)


@router.post("/rollbacks", response_model=RollbackPlan, responses=refused(404, 409))
def post_rollback(rollback: Rollback, session: AdminSession) -> Answer:
    """Plan a rollback and change nothing.

    `strandline rollback` carries the plan out, or checks what was done by hand (`--done`).
    """
    with session.follower.question(EVERYTHING) as (connection, model):
        table = table_of(connection, model, rollback.namespace, rollback.name)
        session.access.require([table])
        call(connection, model, model.group_of)
        stored = stored_tables(connection, descendants(model, table))
        found = _plan(model, table, rollback, stored)
        session.access.require([*found.tables, *found.jobs])
        outside = jobs_outside(connection, found.tables, found.jobs)
    shown = [
        job
        for job in outside
        if all(map(session.access.allows, {job.job[0], *(name for name, _ in job.makes)}))
    ]
    return plan_answer(found) | {"outside": [outside_answer(job) for job in shown]}


def _plan(
    model: Model, table: Table, rollback: Rollback, stored: Mapping[Table, StoredTable]
) -> Plan:
    group = model.group_at(table)
    newest = (group.newest if group is not None else None) or 0
    retained = {job.pair: newest + 1 for job in rollback.lost_state}
    if rollback.retained_from is not None:
        retained = dict.fromkeys(model.places, rollback.retained_from) | retained
    return plan(model, table, rollback.barrier, retained=retained, stored=stored)
