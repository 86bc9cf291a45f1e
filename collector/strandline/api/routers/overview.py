"""The overview: running jobs, problems, the groups.

And a stream that says when to look again.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from sqlalchemy import Connection, func, select
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from strandline.alerts.conditions import Trouble, model_troubles, store_troubles, topmost_failures
from strandline.api.http.answers import JSON
from strandline.api.http.auth import GRANTED_STILL
from strandline.api.http.route import Route
from strandline.api.http.session import ReadSession, Session
from strandline.core.openlineage.names import named
from strandline.core.versions.delays import staleness
from strandline.core.versions.facts import Table
from strandline.core.versions.members import versions
from strandline.core.versions.model import Model
from strandline.store.catalog.gauges import DAY, run_counts
from strandline.store.ingest.set_aside import count_set_aside
from strandline.store.lineage.failures import outcomes
from strandline.store.lineage.lookup import labels_of
from strandline.store.lineage.run_state import iso
from strandline.store.schema.received_tables import raw_events
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.schema.version_tables import version_facts
from strandline.store.versions.hidden_names import sees_group

router = APIRouter(prefix="/api/v2", tags=["overview"], route_class=Route)
LOOK_SECONDS = 0.5
STREAM_SECONDS = 60  # then the browser connects anew, by itself
KINDS = {
    "staleness": "dataset",
    "skipped": "dataset",
    "failed": "job",
    "blocked": "job",
    "lost": "job",
}
MOST_SHOWN = 50
MOST_OF_ONE_REASON = 20
NO_REASON = "no reason given"
_EXCEPTION = re.compile(r"^[\w.]*(?:Exception|Error): ")


class Overview(TypedDict):
    """The counts of the last 24 hours, what is wrong (50 reasons at most), and each group.

    Runs of one state are counted once with those below them: an application and its query that
    failed are one failure.

    `newestEventAt` is when the newest event was received, `newestEventTime` when it happened.
    """

    asOf: str
    newestEventAt: str | None
    newestEventTime: str | None
    runningRuns: int
    lostRuns: int
    failedRuns: int
    deadLetters: int
    attention: list[JSON]
    attentionCount: int
    groups: list[JSON]


@router.get("/overview", response_model=Overview)
def get_overview(session: ReadSession) -> dict[str, Any]:
    """Show the running jobs and the problems."""
    now = session.now.timestamp()
    with session.follower.model() as model:
        troubles, of_tables = model_troubles(model, session.settings.alert_staleness_seconds, now)
        named = [name for name in sorted(model.groups) if model.groups[name].newest]
        groups = [
            _group(model, name, now) for name in named if sees_group(model, session.access, name)
        ]
        tables = list(model.group_of)
    with session.connected() as connection:
        troubles = [*store_troubles(connection, of_tables, now), *troubles]
        counts = _counts(connection, session.micros)
        newest, happened = _newest_event(connection, session) or (None, None)
        labels = labels_of(connection, tables)
        troubles = [trouble for trouble in troubles if session.access.allows_text(trouble.about)]
        troubles = topmost_failures(connection, troubles)
        attention = _by_reason(connection, troubles)
    return {
        "asOf": iso(session.micros),
        "newestEventAt": iso(newest),
        "newestEventTime": iso(happened),
        **counts,
        "attention": attention[:MOST_SHOWN],
        "attentionCount": len(troubles),
        "groups": [_labelled(group, labels) for group in groups],
    }


def _newest_event(connection: Connection, session: Session) -> tuple[int, int] | None:
    """Return when the newest event was received and when it happened.

    Only events of one's own jobs count if others are hidden.
    """
    newest = select(raw_events.c.received_at, raw_events.c.event_time)
    if not session.access.everything:
        with_jobs = runs.join(jobs, jobs.c.id == runs.c.job_id)
        newest = select(runs.c.received_at, runs.c.newest_at).select_from(with_jobs)
        newest = newest.where(runs.c.received_at.is_not(None))
    received = newest.selected_columns[0]
    row = connection.execute(newest.order_by(received.desc()).limit(1)).one_or_none()
    return None if row is None else (row[0], row[1])


def _counts(connection: Connection, now: int) -> dict[str, int]:
    counted = run_counts(connection, now)
    return {
        "runningRuns": counted.running,
        "lostRuns": counted.lost,
        "failedRuns": counted.failed,
        "deadLetters": count_set_aside(connection, "dead", now - DAY),
    }


def _labelled(group: dict[str, Any], labels: Mapping[Table, str]) -> dict[str, Any]:
    tables = [named(table) | {"label": labels.get(table, table[1])} for table in group["tables"]]
    stalest = group["stalest"]
    return group | {
        "tables": tables,
        "stalest": None if stalest is None else labels.get(stalest, stalest[1]),
    }


def _by_reason(connection: Connection, troubles: Sequence[Trouble]) -> list[dict[str, Any]]:
    """Return troubles as the page lists them: failures with the same reason are one.

    The reason is the first line of the error, without the exception's name: an application puts it
    before its query's error. `count` is the number of all that have the reason. Failures without a
    reason come after the others.
    """
    failed = {
        trouble.run_row
        for trouble in troubles
        if trouble.rule == "failed" and trouble.run_row is not None
    }
    errors = outcomes(connection, dict.fromkeys(failed, True))
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for trouble in troubles:
        run = errors.get(trouble.run_row or 0)
        reason = run["error"] or NO_REASON if run else None
        key = (trouble.rule, _EXCEPTION.sub("", reason) if reason else trouble.text)
        group = groups.setdefault(
            key, {"rule": trouble.rule, "reason": reason, "count": 0, "items": []}
        )
        group["count"] += 1
        if len(group["items"]) < MOST_OF_ONE_REASON:
            group["items"].append(_attention(trouble))
    rules = list(dict.fromkeys(trouble.rule for trouble in troubles))
    return sorted(
        groups.values(), key=lambda one: (rules.index(one["rule"]), one["reason"] == NO_REASON)
    )


def _attention(trouble: Trouble) -> dict[str, Any]:
    """Return a trouble in words, and what it is about."""
    kind = KINDS.get(trouble.rule)
    node = f"{kind}:{trouble.about}" if kind else None
    return {"text": trouble.text, "node": node, "runId": trouble.run}


def _group(model: Model, name: str, now: float) -> dict[str, Any]:
    group = model.groups[name]
    tables = sorted(
        table for table, of in model.group_of.items() if of == name and model.is_tracked(table)
    )
    barriers = versions(model, tables).values()
    worst = max(
        (staleness(model, table, now) for table in tables),
        key=lambda age: age.seconds,
        default=None,
    )
    return {
        "name": name,
        "newest": group.newest,
        "strong": min((barrier for barrier in barriers if barrier is not None), default=None),
        "generation": group.generation,
        "tables": tables,
        "stalenessSeconds": round(worst.seconds, 3) if worst else 0,
        "stalest": worst.table if worst and worst.seconds > 0 else None,
    }


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def get_stream(session: ReadSession) -> Response:
    """Stream server-sent events: `change` whenever something new was stored.

    Its number tells two states apart.
    """

    async def lines() -> AsyncIterator[str]:
        previous: str | None = None
        yield "retry: 2000\n\n"
        for _ in range(int(STREAM_SECONDS / LOOK_SECONDS)):
            if session.state.stopping() or await session.request.is_disconnected():
                return
            is_granted_still = session.request.scope.get(GRANTED_STILL)
            if is_granted_still is not None and not await is_granted_still():
                return
            token = await run_in_threadpool(_token, session)
            if token != previous:
                yield f"event: change\ndata: {token}\n\n"
            previous = token
            await asyncio.sleep(LOOK_SECONDS)

    return StreamingResponse(
        lines(), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


def _token(session: Session) -> str:
    with session.connected() as connection:
        received, _ = _newest_event(connection, session) or (0, 0)
        if not session.access.everything:
            return f"{received}"
        fact = connection.execute(select(func.max(version_facts.c.seq))).scalar_one()
    return f"{received}.{fact or 0}"
