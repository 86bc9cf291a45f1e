"""Alerts that are on, and messages on their way: both change in one transaction, so none is lost and none sent twice over.

A message stays until its target took it, or for a day. Who sends one claims it first, for as long as a try may take.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, delete, insert, select, update

from strandline.alerts.conditions import Trouble
from strandline.store.schema.version_tables import alert_outbox, alerts
from strandline.store.versions.fact_log import lock_head

MICRO = 1_000_000
CLAIM_SECONDS = 60
TOO_OLD_SECONDS = 86_400
LONGEST_PAUSE = 600


@dataclass(frozen=True, slots=True)
class Message:
    """One message for one target."""

    id: int
    target: str
    body: bytes
    attempts: int


def note(connection: Connection, found: Iterable[Trouble], targets: Sequence[str], now: float) -> int:
    """Compare what is wrong with what was told; put a message out for whatever began or is over."""
    lock_head(connection)
    at = round(now * MICRO)
    known = {row.key: row for row in connection.execute(select(alerts))}
    current = {trouble.key: trouble for trouble in found}
    begun = [current[key] for key in sorted(current.keys() - known.keys())]
    over = [known[key] for key in sorted(known.keys() - current.keys())]
    messages = [_message("firing", one.rule, one.about, one.text, at) for one in begun]
    messages += [_recovered(row.body, at) for row in over]
    for trouble, body in zip(begun, messages, strict=False):
        connection.execute(insert(alerts).values(key=trouble.key, since=at, body=orjson.dumps(body)))
    for row in over:
        connection.execute(delete(alerts).where(alerts.c.key == row.key))
    rows = [
        {"target": target, "body": orjson.dumps(body), "created_at": at, "next_at": at, "attempts": 0}
        for body in messages
        for target in targets
    ]
    if rows:
        connection.execute(insert(alert_outbox), rows)
    return len(messages)


def _message(status: str, rule: str, about: str, text: str, at: int) -> dict[str, object]:
    return {"status": status, "rule": rule, "about": about, "text": text, "at": at / MICRO}


def _recovered(body: bytes, at: int) -> dict[str, object]:
    began = orjson.loads(body)
    return {**began, "status": "recovered", "since": began["at"], "at": at / MICRO}


def claim(connection: Connection, target: str, now: float, most: int = 20) -> list[Message]:
    """The oldest messages for a target, claimed for this sender; none while the oldest one is not due.

    So a target hears in order: that something is over never comes before that it began.
    """
    at = round(now * MICRO)
    connection.execute(delete(alert_outbox).where(alert_outbox.c.created_at < at - TOO_OLD_SECONDS * MICRO))
    oldest = select(alert_outbox).where(alert_outbox.c.target == target).order_by(alert_outbox.c.id).limit(most)
    rows = connection.execute(oldest.with_for_update()).all()
    if not rows or rows[0].next_at > at:
        return []
    _set_next(connection, [row.id for row in rows], at + CLAIM_SECONDS * MICRO)
    return [Message(row.id, row.target, row.body, row.attempts) for row in rows]


def sent(connection: Connection, message: Message) -> None:
    """The target took it."""
    connection.execute(delete(alert_outbox).where(alert_outbox.c.id == message.id))


def put_off(connection: Connection, message: Message, behind: Sequence[Message], now: float) -> None:
    """The target did not take it: again later, each time twice as late; those behind it wait for it."""
    pause = min(LONGEST_PAUSE, 2 ** (message.attempts + 1))
    connection.execute(
        update(alert_outbox).where(alert_outbox.c.id == message.id).values(attempts=alert_outbox.c.attempts + 1)
    )
    _set_next(connection, [message.id], round((now + pause) * MICRO))
    _set_next(connection, [one.id for one in behind], round(now * MICRO))


def _set_next(connection: Connection, ids: Sequence[int], at: int) -> None:
    connection.execute(update(alert_outbox).where(alert_outbox.c.id.in_(ids)).values(next_at=at))
