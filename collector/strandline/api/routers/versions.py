"""POST /api/v2/versions: which snapshots to read together; leases on them; why tables disagree."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, NotRequired

from fastapi import APIRouter, Path
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from typing_extensions import TypedDict

from strandline.api.http.answers import JSON
from strandline.api.http.route import Route, refused
from strandline.api.http.session import ReadSession, Session
from strandline.core.openlineage.names import named
from strandline.core.openlineage.times import micros_of
from strandline.core.versions.facts import Table
from strandline.core.versions.strong_weak import (
    Reading,
    held_by,
    strong,
    untracked_among,
    weak,
)
from strandline.errors import (
    NotFoundError,
    OverloadError,
    ParameterError,
    RefusedError,
    WaitedError,
)
from strandline.questions.parameters import Word
from strandline.questions.version_answers import Version, tables_of, version_of
from strandline.questions.versions import Compared, Renewal, Versions
from strandline.store.lineage.lookup import dataset_of, labels_of
from strandline.store.lineage.run_state import iso
from strandline.store.lineage.table_snapshots import newest_snapshot_rows, snapshot_answer
from strandline.store.sql.engine import read_from
from strandline.store.versions.answers import (
    cut_answer,
    holders_answer,
    reading_answer,
    with_latest,
)
from strandline.store.versions.leases import (
    StoredLease,
    end_lease,
    renew_lease,
    tables_claimed,
    take_lease,
)

router = APIRouter(prefix="/api/v2", tags=["versions"], route_class=Route)
POLL_SECONDS = 0.05
LONGEST_POLL_SECONDS = 0.5
LOOKS_AT_ONCE = 4  # of all who wait, so that threads stay for those who do not
Answer = dict[str, Any]
LeaseId = Annotated[Word, Path(alias="id", description="The lease")]


class Lease(TypedDict):
    """A lease and its end."""

    id: str
    expiresAt: str


class VersionAnswer(TypedDict):
    """Snapshots that belong together."""

    tables: list[JSON]
    consistency: NotRequired[str]
    lease: NotRequired[Lease]
    certificate: NotRequired[JSON | None]


class Comparison(TypedDict):
    """Tables with their newest snapshots, beside those that agree, and what holds versions up."""

    tables: list[JSON]
    versions: JSON
    blockedBy: list[JSON]


@router.post("/versions", response_model=VersionAnswer, responses=refused(404, 409, 504))
async def post_versions(question: Versions, session: ReadSession) -> Response:
    """Snapshots that belong together."""
    await wait_for_barrier(session, question)
    route: Route = session.request.scope["route"]
    return await route.answer(session, partial(_versions, session, question))


def _versions(session: Session, question: Versions) -> Answer:
    """Return one version of all the tables, as of now, and a lease on it if one is wanted."""
    version = version_of(session, question)
    if question.lease_seconds is None:
        return version.document
    lease = _leased(session, question, version)
    return version.document | {"lease": lease, "certificate": version.certificate}


def _leased(session: Session, question: Versions, version: Version) -> Answer:
    seconds = question.lease_seconds or session.settings.lease_seconds
    shown = [table["snapshotId"] for table in version.document["tables"]]
    snapshots = dict(zip(version.tables, shown, strict=True))
    with session.engine.begin() as connection:
        return _shown(take_lease(connection, snapshots, seconds, _now(), question.holder))


def _now() -> int:
    """Return the begin of a lease: now, as the request may have waited long."""
    return micros_of(datetime.now(UTC))


def _shown(lease: StoredLease) -> dict[str, Any]:
    return {"id": lease.id, "expiresAt": iso(lease.expires_at)}


async def wait_for_barrier(session: Session, question: Versions) -> None:
    """Return when the answer would show the barrier that the reader waits for, if any.

    It returns too when nobody listens any more. Raise WaitedError when the time is over.

    No thread waits: there are 40 of them, for all questions.
    """
    if question.consistency == "cut" and question.wait_for_barrier is not None:
        raise ParameterError("a cut has no barriers: waitForBarrier takes auto, strong or weak")
    barrier, began = question.wait_for_barrier, time.monotonic()
    if barrier is None:
        return
    until = began + question.timeout_seconds
    looking: asyncio.Semaphore = session.state.looking
    while True:
        async with looking:
            missing = await run_in_threadpool(_missing, session, question, barrier)
        now = time.monotonic()
        if missing is None or await session.request.is_disconnected():
            return
        if session.state.stopping():
            raise OverloadError("the server is stopping; ask again when it is back")
        if now >= until:
            raise WaitedError(
                f"waited {question.timeout_seconds:g} s in vain for barrier {barrier} of {missing}"
            )
        pause = min(max(POLL_SECONDS, (now - began) / 20), LONGEST_POLL_SECONDS)
        await asyncio.sleep(min(pause, until - now))


def _missing(session: Session, question: Versions, barrier: int) -> str | None:
    """Return why tables do not show `barrier`; None if all show it."""
    answer, now = weak if question.consistency == "weak" else strong, time.time()
    with session.follower.question(session.access) as (connection, model):
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


@router.put("/leases/{id:name}", response_model=Lease, responses=refused(404, 409))
def put_lease(lease: LeaseId, session: ReadSession, renewal: Renewal | None = None) -> Answer:
    """Renew a lease."""
    seconds = renewal.lease_seconds if renewal is not None else None
    with session.engine.begin() as connection:
        _refuse_others(connection, session, lease)
        wanted = seconds or session.settings.lease_seconds
        return _shown(renew_lease(connection, lease, wanted, _now()))


@router.delete("/leases/{id:name}", status_code=204, responses=refused(404))
def delete_lease(lease: LeaseId, session: ReadSession) -> None:
    """End a lease."""
    with session.engine.begin() as connection:
        _refuse_others(connection, session, lease)
        end_lease(connection, lease)


def _refuse_others(connection: Connection, session: Session, lease: str) -> None:
    """Raise a NotFoundError for a lease on a table that the key does not see: it is another's."""
    claimed = tables_claimed(connection, lease)
    if not all(session.access.allows(namespace) for namespace, _ in claimed):
        raise NotFoundError(f"unknown lease: {lease}")


@router.post("/compare", response_model=Comparison, responses=refused(404))
def post_comparison(compared: Compared, session: ReadSession) -> Answer:
    """Show why tables disagree: their newest snapshots beside those that agree."""
    now = time.time()
    with session.follower.question(session.access) as (connection, model):
        tables = tables_of(connection, model, compared.tables)
        strongly, weakly = (
            _tried(lambda: strong(model, tables)),
            _tried(lambda: weak(model, tables)),
        )
        answered = () if isinstance(strongly, RefusedError) else strongly
        held = holders_answer(held_by(model, tables, answered), now)
        untracked = untracked_among(model, tables)
    with read_from(session.engine) as connection, read_from(session.whole_engine) as whole:
        versions = {
            "strong": _answer(
                strongly, lambda readings: [reading_answer(reading, now) for reading in readings]
            ),
            "weak": _answer(
                weakly,
                lambda readings: [
                    reading_answer(reading, now)
                    for reading in with_latest(connection, readings, tables, untracked)
                ],
            ),
            "cut": _answer([], lambda _: cut_answer(whole, tables)),
        }
        newest = _newest(connection, tables)
    return {"tables": newest, "versions": versions, "blockedBy": held}


def _tried(ask: Callable[[], list[Reading]]) -> list[Reading] | RefusedError:
    try:
        return ask()
    except RefusedError as error:
        return error


def _answer(
    readings: list[Reading] | RefusedError, show: Callable[[list[Reading]], list[Answer]]
) -> Answer:
    try:
        if isinstance(readings, RefusedError):
            raise readings
        return {"tables": show(readings), "refused": None}
    except RefusedError as error:
        return {"tables": None, "refused": {"code": error.code, "detail": str(error)}}


def _newest(connection: Connection, tables: Sequence[Table]) -> list[Answer]:
    labels = labels_of(connection, tables)
    answers = []
    for table in tables:
        dataset = dataset_of(connection, *table).id
        newest = newest_snapshot_rows(connection, [dataset]).get(dataset)
        shown = None if newest is None else snapshot_answer(newest)
        answers.append(named(table) | {"label": labels[table], "newest": shown})
    return answers
