"""POST /versions: which snapshots to read together; leases on them.

POST /cuts where there are no barriers.
"""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from strandline.api.endpoints.version_requests import TABLES, Named, body_as, follower_of, tables_of
from strandline.api.http.operations import Ask, Operation, Parameter, ParameterError, Text
from strandline.core.openlineage.times import micros_of
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import (
    Reading,
    held_by,
    refuse_stale,
    strong,
    weak,
)
from strandline.core.versions.version_answer import Asked, answer_versions
from strandline.errors import NotFoundError, OverloadError, RefusedError, WaitedError
from strandline.store.lineage.run_state import iso
from strandline.store.sql.engine import read_from
from strandline.store.versions.answers import cut_answer, version_document
from strandline.store.versions.leases import (
    StoredLease,
    end_lease,
    renew_lease,
    tables_claimed,
    take_lease,
)

POLL_SECONDS = 0.05
LONGEST_POLL_SECONDS = 0.5
LOOKS_AT_ONCE = 4  # of all who wait, so that threads stay for those who do not
A_YEAR = 366 * 86_400
Seconds = Annotated[float, msgspec.Meta(ge=0, le=A_YEAR)]
Tables = Annotated[tuple[Named, ...], msgspec.Meta(min_length=1)]


class Versions(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The question for a version."""

    tables: Tables
    consistency: Asked = "auto"
    max_lag_seconds: Seconds | None = None
    wait_for_barrier: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    timeout_seconds: Seconds = 30.0
    lease_seconds: Seconds | None = None
    holder: str = ""


class Renewal(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How long the lease goes on."""

    lease_seconds: Seconds | None = None


class Cuts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The question for a cut."""

    tables: Tables


def ask_versions(ask: Ask) -> dict[str, Any]:
    """Return one version of all the tables, as of now."""
    question = body_as(ask, Versions)
    with follower_of(ask).question(ask.access) as (connection, model):
        tables = tables_of(connection, model, question.tables)
        now = time.time()
        found = answer_versions(model, tables, question.consistency)
        if question.max_lag_seconds is not None:
            _refuse_unbounded(model, tables, question.max_lag_seconds, now, found.readings)
    # a cut depends on all that its tables were made from, whoever sees it
    engine = ask.whole_engine if found.consistency == "cut" else ask.engine
    with read_from(engine) as connection:
        answer = version_document(connection, found, tables, now)
    if question.lease_seconds is None:
        return answer
    lease = _leased(ask, question, tables, answer)
    return answer | {"lease": lease, "certificate": found.certificate}


def _refuse_unbounded(
    model: Model, tables: Sequence[Table], bound: float, now: float, readings: Sequence[Reading]
) -> None:
    refuse_stale(readings, bound, now, model.call)
    with_barriers = {reading.table for reading in readings}
    others = [model.call(table) for table in tables if table not in with_barriers]
    if others:
        raise RefusedError(
            f"{', '.join(others)}: no barrier, so how far behind it is cannot be known", "lag"
        )


def _leased(
    ask: Ask, question: Versions, tables: Sequence[Table], answer: dict[str, Any]
) -> dict[str, Any]:
    seconds = question.lease_seconds or ask.settings.lease_seconds
    shown = [one["snapshotId"] for one in answer["tables"]]
    snapshots = dict(zip(tables, shown, strict=True))
    with ask.engine.begin() as connection:
        return _shown(take_lease(connection, snapshots, seconds, _now(), question.holder))


def _now() -> int:
    """When a lease begins: not when it was asked for, which may be long ago."""
    return micros_of(datetime.now(UTC))


def _shown(lease: StoredLease) -> dict[str, Any]:
    return {"id": lease.id, "expiresAt": iso(lease.expires_at)}


async def wait_for_barrier(ask: Ask) -> None:
    """Return when the answer would show the barrier that the reader waits for, if any, or when nobody listens any more;
    raise WaitedError when the time is over.

    No thread waits: there are 40 of them, for all questions.
    """
    question = body_as(ask, Versions)
    if question.consistency == "cut" and question.wait_for_barrier is not None:
        raise ParameterError("a cut has no barriers: waitForBarrier takes auto, strong or weak")
    barrier, began = question.wait_for_barrier, time.monotonic()
    if barrier is None:
        return
    until = began + question.timeout_seconds
    looking: asyncio.Semaphore = ask.request.app.state.looking
    while True:
        async with looking:
            missing = await run_in_threadpool(_missing, ask, question, barrier)
        now = time.monotonic()
        if missing is None or await ask.request.is_disconnected():
            return
        if ask.request.app.state.stopping():
            raise OverloadError("the server is stopping; ask again when it is back")
        if now >= until:
            raise WaitedError(
                f"waited {question.timeout_seconds:g} s in vain for barrier {barrier} of {missing}"
            )
        pause = min(max(POLL_SECONDS, (now - began) / 20), LONGEST_POLL_SECONDS)
        await asyncio.sleep(min(pause, until - now))


def _missing(ask: Ask, question: Versions, barrier: int) -> str | None:
    """Return the tables whose answer does not show `barrier`, with the reasons; None: all show it."""
    answer, now = weak if question.consistency == "weak" else strong, time.time()
    with follower_of(ask).question(ask.access) as (connection, model):
        tables = tables_of(connection, model, question.tables)
        try:
            readings = answer(model, tables)
        except RefusedError:
            readings = []
        shown = {reading.table for reading in readings if reading.barrier >= barrier}
        behind = [table for table in tables if table not in shown]
        if not behind:
            return None
        reasons = dict.fromkeys(holder.reason(now) for holder in held_by(model, behind, readings))
        names = ", ".join(map(model.call, behind))
        return f"{names}: {'; '.join(reasons) or 'no job commits it'}"


def renew(ask: Ask) -> dict[str, Any]:
    """Renew a lease."""
    seconds = (body_as(ask, Renewal) if ask.body is not None else Renewal()).lease_seconds
    with ask.engine.begin() as connection:
        _refuse_others(connection, ask)
        return _shown(
            renew_lease(connection, ask.given["id"], seconds or ask.settings.lease_seconds, _now())
        )


def end(ask: Ask) -> None:
    """End a lease."""
    with ask.engine.begin() as connection:
        _refuse_others(connection, ask)
        end_lease(connection, ask.given["id"])


def _refuse_others(connection: Connection, ask: Ask) -> None:
    """A lease on a table that the key does not see is another's."""
    if not all(
        ask.access.allows(namespace) for namespace, _ in tables_claimed(connection, ask.given["id"])
    ):
        raise NotFoundError(f"unknown lease: {ask.given['id']}")


def answer_cuts(ask: Ask) -> dict[str, Any]:
    """The greatest consistent cut, from data lineage alone."""
    question = body_as(ask, Cuts)
    with follower_of(ask).question(ask.access) as (connection, model):
        tables = tables_of(connection, model, question.tables)
    with read_from(ask.whole_engine) as connection:  # what it was made from counts, whoever sees it
        return {"tables": cut_answer(connection, tables)}


_LEASE = (Parameter("id", "The lease", Text(1), required=True),)
_SECONDS = {"type": "number", "minimum": 0, "maximum": A_YEAR}
_QUESTION = {
    "type": "object",
    "properties": {
        "tables": TABLES,
        "consistency": {"type": "string", "enum": ["auto", "strong", "weak", "cut"]},
        "maxLagSeconds": _SECONDS,
        "waitForBarrier": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
        "timeoutSeconds": _SECONDS,
        "leaseSeconds": _SECONDS,
        "holder": {"type": "string"},
    },
    "required": ["tables"],
}
_RENEWAL = {"type": "object", "properties": {"leaseSeconds": _SECONDS}}

OPERATIONS = (
    Operation(
        "POST", "/api/v2/versions", "Snapshots that belong together", ask_versions,
        wait=wait_for_barrier, body=_QUESTION, answer={"type": "object"}, refusals=(404, 409, 504), scope="read",
    ),
    Operation(
        "PUT", "/api/v2/leases/{id}", "Renew a lease", renew, _LEASE,
        body=_RENEWAL, body_optional=True, answer={"type": "object"}, refusals=(404, 409), scope="read",
    ),
    Operation("DELETE", "/api/v2/leases/{id}", "End a lease", end, _LEASE, status=204, refusals=(404,),
              scope="read"),
    Operation(
        "POST", "/api/v2/cuts", "The greatest consistent cut without barriers", answer_cuts,
        body={"type": "object", "properties": {"tables": TABLES}, "required": ["tables"]},
        answer={"type": "object"}, refusals=(404, 409), scope="read",
    ),
)  # fmt: skip
