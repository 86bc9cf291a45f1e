"""OpenLineage's own calls: one event, or an array of events; 2xx means stored, after the commit.

Bad input is 400 or 422 with the path to the fault, and too much of it 413. Overload is 503 with
Retry-After, because OpenLineage clients retry after that and drop an event after 429.
"""

import asyncio
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from fastapi import APIRouter
from starlette.responses import Response
from typing_extensions import TypedDict

from strandline.api.http.answers import JSON
from strandline.api.http.bodies import body_of
from strandline.api.http.route import PlainRoute, refused
from strandline.api.http.session import IngestSession, Session
from strandline.api.writer.group_commit import Writer
from strandline.api.writer.refusals import agent_of
from strandline.api.writer.senders import Senders
from strandline.core.access.granted import Access
from strandline.core.openlineage.events import elements
from strandline.errors import (
    BodyError,
    ForbiddenError,
    InvalidEventError,
    NotJsonError,
    StrandlineError,
)
from strandline.store.ingest.take import Outcome, Record, validated

router = APIRouter(prefix="/api/v1", tags=["intake"], route_class=PlainRoute)
_EVENT = {
    "type": "object",
    "description": "RunEvent, JobEvent or DatasetEvent of OpenLineage 2-0-2",
}
LARGE = 1 << 20  # an array of so many bytes is read beside the loop, on which everybody else waits


class BatchAnswer(TypedDict):
    """OpenLineage's answer to a batch that is good in parts, and a result for every index."""

    status: str
    summary: dict[str, int]
    failed_events: list[JSON]
    results: list[JSON]


def _sent(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe a body that the route reads by itself."""
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


class Fault(NamedTuple):
    """An element of an array that is no event."""

    body: bytes
    error: InvalidEventError


@router.post(
    "/lineage",
    status_code=201,
    responses=refused(413, 422),
    openapi_extra=_sent(_EVENT),
)
async def post_event(session: IngestSession) -> Response:
    """Store one OpenLineage event."""
    state = session.state
    with state.refusals.noting(agent_of(session.request), session.now) as notes:
        async with body_of(session.request, session.settings, state.room) as raw:
            notes.append(raw)
            record = Record(raw, session.now)
            if not session.access.everything:
                record = await asyncio.to_thread(
                    _permitted, raw, session.now, session.access, state.senders
                )
            try:
                (outcome,) = await _writer(session).write([record])
            except StrandlineError:
                validated(
                    raw, session.now
                )  # what is no event is refused, whatever keeps events from being stored
                raise
            if outcome.kind == "refused":
                raise _refusal(outcome)
    if outcome.kind == "dead":
        raise InvalidEventError(outcome.reason or "it cannot be stored")
    return Response(status_code=201)


@router.post(
    "/lineage/batch",
    response_model=BatchAnswer,
    responses=refused(413) | {204: {"description": "all of them are stored"}},
    openapi_extra=_sent({"type": "array", "items": _EVENT}),
)
async def post_batch(session: IngestSession) -> Response:
    """Store an array of OpenLineage events.

    204, or 200 with a result for each index where some are rejected.
    """
    state = session.state
    with state.refusals.noting(agent_of(session.request), session.now) as notes:
        async with body_of(session.request, session.settings, state.room) as raw:
            notes.append(raw)
            taken = await _taken(session, raw)
    refused = {index: event for index, event in enumerate(taken) if isinstance(event, Fault)}
    if refused:
        await asyncio.to_thread(
            state.refusals.add_all, list(refused.values()), agent_of(session.request), session.now
        )
    faults = {index: rejection.error for index, rejection in refused.items()}
    for index, outcome in enumerate(taken):
        if isinstance(outcome, Outcome) and outcome.kind == "dead":
            faults[index] = InvalidEventError(outcome.reason or "it cannot be stored")
    if not faults:
        return Response(status_code=204)
    content = await asyncio.to_thread(orjson.dumps, _batch_answer(len(taken), faults))
    return Response(content, media_type="application/json")


async def _taken(session: Session, raw: bytes) -> list[Fault | Outcome]:
    """Return the outcome of each element of an array.

    Raise errors that keep good ones from being stored.
    """
    arguments = raw, session.now, session.access, session.state.senders
    beside = (
        len(raw) > LARGE or not session.access.everything
    )  # whose events are looked at more closely
    read = await asyncio.to_thread(_all_read, *arguments) if beside else _all_read(*arguments)
    good = [event for event in read if isinstance(event, Record)]
    try:
        outcomes = iter(await _writer(session).write(good) if good else [])
    except StrandlineError:
        read = await asyncio.to_thread(_all_decoded, *arguments)
        faults: list[Fault | Outcome] = [event for event in read if isinstance(event, Fault)]
        if len(faults) < len(read):
            raise
        return faults
    return [event if isinstance(event, Fault) else _judged(event, next(outcomes)) for event in read]


def _judged(record: Record, outcome: Outcome) -> Fault | Outcome:
    return Fault(record.value, _refusal(outcome)) if outcome.kind == "refused" else outcome


def _writer(session: Session) -> Writer:
    writer: Writer = session.state.writer
    return writer


def _refusal(outcome: Outcome) -> InvalidEventError:
    kind = InvalidEventError if outcome.is_json else NotJsonError
    return kind(outcome.reason or "", outcome.path)


def _all_read(
    raw: bytes, received_at: datetime, access: Access, senders: Senders
) -> list[Record | Fault]:
    """Return the elements.

    Unread where the writer takes them apart, decoded where the key has to be asked about them.
    """
    if access.everything:
        return [Record(element, received_at) for element in _elements(raw)]
    return _all_decoded(raw, received_at, access, senders)


def _all_decoded(
    raw: bytes, received_at: datetime, access: Access, senders: Senders
) -> list[Record | Fault]:
    return [_read(element, received_at, access, senders) for element in _elements(raw)]


def _elements(raw: bytes) -> list[bytes]:
    try:
        return elements(raw)
    except ValueError as error:
        raise BodyError(f"the body is not a JSON array: {error}") from None


def _permitted(body: bytes, received_at: datetime, access: Access, senders: Senders) -> Record:
    return senders.permitted(validated(body, received_at), access)


def _read(
    element: bytes, received_at: datetime, access: Access, senders: Senders
) -> Record | Fault:
    try:
        return _permitted(element, received_at, access, senders)
    except InvalidEventError as error:
        return Fault(element, error)
    except ForbiddenError as error:
        return Fault(element, InvalidEventError(str(error), "job.namespace"))


def _batch_answer(received: int, faults: dict[int, InvalidEventError]) -> dict[str, Any]:
    """OpenLineage's answer to a batch that is good in parts, with a result for every index."""
    return {
        "status": "partial_success" if len(faults) < received else "error",
        "summary": {
            "received": received,
            "successful": received - len(faults),
            "failed": len(faults),
            "retriable": 0,
            "non_retriable": len(faults),
        },
        "failed_events": [
            {"index": index, "reason": str(fault), "retriable": False}
            for index, fault in sorted(faults.items())
        ],
        "results": [_result(index, faults.get(index)) for index in range(received)],
    }


def _result(index: int, fault: InvalidEventError | None) -> dict[str, Any]:
    if fault is None:
        return {"index": index, "status": 201}
    return {
        "index": index,
        "status": 422,
        "code": InvalidEventError.code,
        "reason": fault.reason,
        "path": fault.path,
    }
