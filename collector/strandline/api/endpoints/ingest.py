"""OpenLineage's own calls: one event, or an array of events; 2xx means stored, after the commit.

Bad input is 400 or 422 with the path to the fault, too much of it 413, and overload 503 with
Retry-After: OpenLineage clients come again after that, and drop an event after 429.
"""

import asyncio
from datetime import datetime
from typing import Any, NamedTuple

from starlette.responses import Response

from strandline.api.http.bodies import body_of
from strandline.api.http.operations import Ask, Operation
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

EVENT = {"type": "object", "description": "RunEvent, JobEvent or DatasetEvent of OpenLineage 2-0-2"}
LARGE = 1 << 20  # an array of so many bytes is read beside the loop, on which everybody else waits


class Fault(NamedTuple):
    """An element of an array that is no event."""

    body: bytes
    error: InvalidEventError


async def take_event(ask: Ask) -> Response:
    """Store one event."""
    state = ask.request.app.state
    with state.refusals.noting(agent_of(ask.request), ask.now) as seen:
        async with body_of(ask.request, ask.settings, state.room) as raw:
            seen.append(raw)
            record = Record(raw, ask.now)
            if not ask.access.everything:
                record = await asyncio.to_thread(
                    _permitted, raw, ask.now, ask.access, state.senders
                )
            try:
                (outcome,) = await _writer(ask).write([record])
            except StrandlineError:
                validated(
                    raw, ask.now
                )  # what is no event is refused, whatever keeps events from being stored
                raise
            if outcome.kind == "refused":
                raise _refusal(outcome)
    if outcome.kind == "dead":
        raise InvalidEventError(outcome.reason or "it cannot be stored")
    return Response(status_code=201)


async def take_batch(ask: Ask) -> Response | dict[str, Any]:
    """Store the good events of an array, in one transaction, and say which were not good."""
    state = ask.request.app.state
    with state.refusals.noting(agent_of(ask.request), ask.now) as seen:
        async with body_of(ask.request, ask.settings, state.room) as raw:
            seen.append(raw)
            taken = await _taken(ask, raw)
    refused = {index: one for index, one in enumerate(taken) if isinstance(one, Fault)}
    if refused:
        await asyncio.to_thread(
            state.refusals.add_all, list(refused.values()), agent_of(ask.request), ask.now
        )
    faults = {index: one.error for index, one in refused.items()}
    for index, outcome in enumerate(taken):
        if isinstance(outcome, Outcome) and outcome.kind == "dead":
            faults[index] = InvalidEventError(outcome.reason or "it cannot be stored")
    return _batch_answer(len(taken), faults) if faults else Response(status_code=204)


async def _taken(ask: Ask, raw: bytes) -> list[Fault | Outcome]:
    """What became of each element of an array; raises what keeps good ones from being stored."""
    asked = raw, ask.now, ask.access, ask.request.app.state.senders
    beside = (
        len(raw) > LARGE or not ask.access.everything
    )  # whose events are looked at more closely
    read = await asyncio.to_thread(_all_read, *asked) if beside else _all_read(*asked)
    good = [one for one in read if isinstance(one, Record)]
    try:
        outcomes = iter(await _writer(ask).write(good) if good else [])
    except StrandlineError:
        read = await asyncio.to_thread(_all_decoded, *asked)
        faults: list[Fault | Outcome] = [one for one in read if isinstance(one, Fault)]
        if len(faults) < len(read):
            raise
        return faults
    return [one if isinstance(one, Fault) else _judged(one, next(outcomes)) for one in read]


def _judged(record: Record, outcome: Outcome) -> Fault | Outcome:
    return Fault(record.value, _refusal(outcome)) if outcome.kind == "refused" else outcome


def _writer(ask: Ask) -> Writer:
    writer: Writer = ask.request.app.state.writer
    return writer


def _refusal(outcome: Outcome) -> InvalidEventError:
    kind = InvalidEventError if outcome.is_json else NotJsonError
    return kind(outcome.reason or "", outcome.path)


def _all_read(
    raw: bytes, received_at: datetime, access: Access, senders: Senders
) -> list[Record | Fault]:
    """The elements: unread where the writer takes them apart, decoded where the key has to be asked about them."""
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
    """OpenLineage's answer to a batch that is good in parts, and beside it a result for every index."""
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


OPERATIONS = (
    Operation(
        "POST",
        "/api/v1/lineage",
        "Store one OpenLineage event",
        take_event,
        body=EVENT,
        status=201,
        refusals=(422,),
        scope="ingest",
    ),
    Operation(
        "POST",
        "/api/v1/lineage/batch",
        "Store an array of OpenLineage events; 204, or 200 with a result for each index where some are rejected",
        take_batch,
        body={"type": "array", "items": EVENT},
        answer={"type": "object", "required": ["status", "summary", "failed_events", "results"]},
        empty=204,
        scope="ingest",
    ),
)
