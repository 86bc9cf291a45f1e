"""Alerts that are firing, and messages on their way.

Both change in one transaction, so none is lost and none is sent twice. The messages go over the
outbox of all exports, one cursor a target, in order; one that is a day old is not sent.
"""

from collections.abc import Collection, Iterable, Mapping

import orjson
from sqlalchemy import Connection, delete, insert, select, update

from strandline.alerts.conditions import Trouble
from strandline.alerts.details import Details
from strandline.store.ingest.export_news import ALERT, News, insert_news
from strandline.store.schema.version_tables import alerts
from strandline.store.versions.fact_log import lock_head

MICRO = 1_000_000
NONE = Details()


def firing_keys(connection: Connection) -> Collection[str]:
    """Return the keys of the alerts that are firing."""
    return set(connection.scalars(select(alerts.c.key)))


def note(
    connection: Connection, troubles: Iterable[Trouble], details: Mapping[str, Details], now: float
) -> int:
    """Compare what is wrong with what was reported, and queue a message for each change.

    A trouble that lasts gets no further message, but the message of its end has its last count.
    """
    lock_head(connection)
    at = round(now * MICRO)
    firing = {row.key: row for row in connection.execute(select(alerts))}
    current = {trouble.key: trouble for trouble in troubles}
    messages = []
    for key in sorted(current.keys() - firing.keys()):
        body = _message(current[key], details.get(key, NONE), at)
        connection.execute(insert(alerts).values(key=key, since=at, body=orjson.dumps(body)))
        messages.append(body)
    for key in sorted(current.keys() & firing.keys()):
        _update(connection, firing[key].body, current[key])
    for key in sorted(firing.keys() - current.keys()):
        connection.execute(delete(alerts).where(alerts.c.key == key))
        messages.append(_recovered(firing[key].body, at))
    news = [
        News(ALERT, place, 0, at, None, orjson.dumps(body)) for place, body in enumerate(messages)
    ]
    insert_news(connection, news)
    return len(messages)


def _message(trouble: Trouble, details: Details, at: int) -> dict[str, object]:
    return {
        "status": "firing",
        "rule": trouble.rule,
        "about": trouble.key.partition("|")[2],
        "text": trouble.text,
        "count": trouble.count,
        "reason": details.reason,
        "owners": details.owners,
        "link": details.link,
        "dependents": details.dependents,
        "late": details.late,
        "at": at / MICRO,
    }


def _update(connection: Connection, body: bytes, trouble: Trouble) -> None:
    """Keep the count and text of a trouble that grew."""
    message = orjson.loads(body)
    if trouble.count <= message["count"]:
        return
    changed = {**message, "count": trouble.count, "text": trouble.text}
    connection.execute(
        update(alerts).where(alerts.c.key == trouble.key).values(body=orjson.dumps(changed))
    )


def _recovered(body: bytes, at: int) -> dict[str, object]:
    began = orjson.loads(body)
    return {**began, "status": "recovered", "since": began["at"], "at": at / MICRO}
