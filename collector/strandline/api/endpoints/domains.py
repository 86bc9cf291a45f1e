"""Groups, decisions before a checkpoint, delays, what is expirable, plans for a rollback."""

from heapq import nsmallest
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Connection

from strandline.api.endpoints.version_requests import (
    NAMED,
    TABLES,
    Named,
    body_as,
    follower_of,
    named,
)
from strandline.api.http.operations import LIMIT, Ask, Operation, Parameter, Text, Whole
from strandline.api.http.paging import paged
from strandline.core.versions.checkpoint import FEW, Decision, decide
from strandline.core.versions.completions import Completions
from strandline.core.versions.expirable import pins
from strandline.core.versions.facts import DomainDeclared, Fact, Job, RolledBack, Table
from strandline.core.versions.model import Domain, Model
from strandline.core.versions.registration import refuse_domain
from strandline.core.versions.rollback import Plan, plan
from strandline.errors import RefusedError
from strandline.store.sql.engine import read_from
from strandline.store.sql.pages import encode_cursor
from strandline.store.versions.answers import expiry_of
from strandline.store.versions.delay_answers import delay_answer
from strandline.store.versions.fact_log import mark_roots
from strandline.store.versions.hidden_names import sees_domain
from strandline.store.versions.lookup import call, job_called, known_name, table_of
from strandline.store.versions.outside_jobs import OutsideJob, jobs_outside, outside_answer
from strandline.store.versions.outside_readers import outside_of


class Declaration(msgspec.Struct, frozen=True):
    """A group with its base tables."""

    name: str
    tables: tuple[Named, ...]


class Position(msgspec.Struct, frozen=True, rename="camel"):
    """A job that is about to checkpoint; position is the barrier of its last checkpoint.

    max_behind: how many barriers it takes one after the other before it drains; None: it takes
    each.
    """

    namespace: str
    name: str
    position: int | None = None
    max_behind: int | None = FEW


class Rollback(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The table to take back, and how far; `lostState`: jobs whose checkpoints are gone."""

    namespace: str
    name: str
    barrier: int
    lost_state: tuple[Named, ...] = ()
    retained_from: int | None = None
    apply: bool = False


def declare(ask: Ask) -> dict[str, Any]:
    """Put base tables together, or add some to a group."""
    wanted = body_as(ask, Declaration)
    if not wanted.name or not wanted.tables:
        raise RefusedError("a group needs a name and at least one base table", "groups")

    def decide_(
        connection: Connection, model: Model, now: float
    ) -> tuple[list[Fact], tuple[Table, ...]]:
        roots = tuple(
            dict.fromkeys(known_name(connection, model, one.pair) for one in wanted.tables)
        )
        ask.access.require(
            [*roots, *(table for table, of in model.domain_of.items() if of == wanted.name)]
        )
        refuse_domain(model, wanted.name, roots)
        mark_roots(connection, wanted.name, roots)
        return [DomainDeclared(wanted.name, roots, now)], roots

    follower = follower_of(ask)
    follower.decide(decide_)
    with follower.model() as model:
        return _domain(model, model.domain(wanted.name))


def list_domains(ask: Ask) -> dict[str, Any]:
    """A page of the groups, by name, with their base tables and newest barriers."""
    after, limit = ask.given["cursor"], ask.given["limit"]
    with follower_of(ask).model() as model:
        seen = (name for name in model.domains if sees_domain(model, ask.access, name))
        names = nsmallest(limit + 1, (name for name in seen if after is None or (name,) > after))
        page = names[:limit]
        more = encode_cursor(page[-1:]) if len(names) > len(page) else None
        return {
            "groups": [_domain(model, model.domains[name]) for name in page],
            "nextCursor": more,
        }


def _domain(model: Model, domain: Domain) -> dict[str, Any]:
    roots = domain.declared or tuple(
        sorted(t for t in model.roots if model.domain_of.get(t) == domain.name)
    )
    return {
        "name": domain.name,
        "declared": bool(domain.declared),
        "tables": [named(table) for table in roots],
        "generation": domain.incarnation,
        "barrier": domain.newest,
    }


def answer_decision(ask: Ask) -> dict[str, Any]:
    """PROCEED, CHECKPOINT or ABORT, for the whole micro-batch."""
    asked = body_as(ask, Position)
    with follower_of(ask).model() as model:
        job = job_called(model, (asked.namespace, asked.name), ask.access)
        ask.access.require(_tables_of(model, job))
        decision = _decision(model, job, asked.position, asked.max_behind)
        place = model.places.get(job)
        joining = place is not None and any(
            model.is_joining(table) for table in model.links(place) & place.writes
        )
        written = [
            model.done[table].incarnation
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
            dict(named(table)) | {"snapshotId": snapshot} for table, snapshot in decision.snapshots
        ],
    }


def _tables_of(model: Model, job: Job) -> set[Table]:
    place = model.places.get(job)
    tables = model.registered[job].tables if place is None else place
    return {*tables.reads, *tables.writes}


def _decision(
    model: Model, job: tuple[str, str], position: int | None, most: int | None
) -> Decision:
    place = model.places.get(job)
    if place is None:
        tables = model.registered[job].tables
        sources = sorted(table for table in tables.reads - tables.writes if model.is_managed(table))
        given_up: set[int] = set()
    else:
        if position is None and place.started_up and place.start_barrier is not None:
            return Decision(
                "CHECKPOINT", place.start_barrier, (), tuple(sorted(place.started_up.items()))
            )
        sources = sorted(
            table for table in model.links(place) if table in place.reads - place.writes
        )
        given_up = model.domain(place.domain).given_up
    return decide(
        {table: model.done.get(table, Completions()) for table in sources}, position, given_up, most
    )


def answer_delays(ask: Ask) -> dict[str, Any]:
    """Return the end-to-end delay of a table at a barrier, its parts, and how stale the table is."""
    with follower_of(ask).question(ask.access) as (connection, model):
        table = table_of(connection, model, ask.given["namespace"], ask.given["name"])
        return delay_answer(connection, model, table, ask.given["barrier"], ask.now.timestamp())


def answer_expirable(ask: Ask) -> dict[str, Any]:
    """The snapshots that nobody needs, all of them, and why the others are kept.

    `limit` of these, the oldest.
    """
    with follower_of(ask).question(ask.access) as (connection, model):
        table = table_of(connection, model, ask.given["namespace"], ask.given["name"])
        needed = pins(model, table, ask.settings.keep_barriers)
        readers, now = tuple(model.readers.get(table, ())), ask.now.timestamp()
        outside = outside_of(model, ask.settings.retention_days, now, ask.access)
    with read_from(ask.whole_engine) as connection:  # whoever needs a snapshot counts
        found = expiry_of(connection, table, needed, now, readers, outside)
    kept = islice(found.kept(), ask.given["limit"])
    return {
        **named(table),
        "expirable": list(found.expirable),
        "expirableCount": len(found.expirable),
        "kept": [{"snapshotId": one.snapshot, "reasons": list(one.reasons)} for one in kept],
        "keptCount": found.kept_count,
    }


def answer_rollbacks(ask: Ask) -> dict[str, Any]:
    """The plan; with `apply`, once its steps are done, the group goes on in its next generation."""
    asked = body_as(ask, Rollback)

    def decide_(
        connection: Connection, model: Model, now: float
    ) -> tuple[list[Fact], tuple[Plan, list[OutsideJob]]]:
        table = table_of(connection, model, asked.namespace, asked.name)
        ask.access.require([table])
        call(connection, model, model.domain_of)
        found = _plan(model, table, asked)
        ask.access.require([*found.tables, *found.jobs])
        outside = jobs_outside(connection, found.tables, found.jobs)
        back = found.barrier if found.barrier is not None else 0
        return ([RolledBack(found.domain, found.tables, back, now)] if asked.apply else []), (
            found,
            outside,
        )

    found, outside = follower_of(ask).decide(decide_)
    shown = [
        one
        for one in outside
        if all(map(ask.access.allows, {one.job[0], *(name for name, _ in one.makes)}))
    ]
    return plan_answer(found) | {"outside": [outside_answer(one) for one in shown]}


def _plan(model: Model, table: Table, asked: Rollback) -> Plan:
    domain = model.domain_at(table)
    newest = (domain.newest if domain is not None else None) or 0
    retained = {one.pair: newest + 1 for one in asked.lost_state}
    if asked.retained_from is not None:
        retained = dict.fromkeys(model.places, asked.retained_from) | retained
    return plan(model, table, asked.barrier, retained=retained)


def plan_answer(found: Plan) -> dict[str, Any]:
    """A plan as JSON shows it."""
    steps = [
        {
            "action": s.action,
            "target": s.target,
            "before": s.before,
            "after": s.after,
            **dict(s.details),
        }
        for s in found.steps
    ]
    return {
        "kind": found.kind,
        "group": found.domain,
        "barrier": found.barrier,
        "generation": found.incarnation,
        "tables": [named(table) for table in found.tables],
        "jobs": [named(job) for job in found.jobs],
        "steps": steps,
        "why": found.why,
    }


_NAMED = (
    Parameter("namespace", "Namespace of the table", Text(), required=True, example="file"),
    Parameter("name", "Name of the table", Text(), required=True, example="/lake/bank/balance"),
)
_OBJECT = {"type": "object"}
_DECLARATION = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tables": TABLES},
    "required": ["name", "tables"],
}
_DOMAINS = {
    "type": "object",
    "properties": {
        "groups": {"type": "array", "items": _OBJECT},
        "nextCursor": {"type": ["string", "null"], "description": "Null: this was the last page"},
    },
    "required": ["groups", "nextCursor"],
}
_POSITION = {
    **NAMED,
    "properties": {
        **NAMED["properties"],  # type: ignore[dict-item]
        "position": {"type": ["integer", "null"]},
        "maxBehind": {"type": ["integer", "null"]},
    },
}
_BACK = {
    "type": "object",
    "properties": {
        **NAMED["properties"],  # type: ignore[dict-item]
        "barrier": {"type": "integer"},
        "lostState": TABLES,
        "retainedFrom": {"type": "integer"},
        "apply": {"type": "boolean"},
    },
    "required": ["namespace", "name", "barrier"],
}

OPERATIONS = (
    Operation(
        "POST", "/api/v2/groups", "Declare a group", declare, body=_DECLARATION, answer=_OBJECT, refusals=(409,),
        scope="admin",
    ),
    Operation("GET", "/api/v2/groups", "All groups, by name", list_domains, paged(str), answer=_DOMAINS, export="list",
              scope="read"),
    Operation(
        "POST", "/api/v2/jobs/decision", "What to do before a checkpoint", answer_decision,
        body=_POSITION, answer=_OBJECT, refusals=(404,), scope="read",
    ),
    Operation(
        "GET", "/api/v2/delays", "End-to-end delay and staleness of a table", answer_delays,
        (*_NAMED, Parameter("barrier", "The barrier; the last one", Whole())), answer=_OBJECT, refusals=(404, 409),
        scope="read",
    ),
    Operation(
        "GET", "/api/v2/expirable", "Snapshots that nobody needs", answer_expirable, (*_NAMED, LIMIT),
        answer=_OBJECT, refusals=(404,), scope="read",
    ),
    Operation(
        "POST", "/api/v2/rollbacks", "Plan a rollback", answer_rollbacks, body=_BACK, answer=_OBJECT, refusals=(404, 409),
        scope="admin",
    ),
)  # fmt: skip
