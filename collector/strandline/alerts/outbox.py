"""Alerts that are on, and messages on their way.

Both change in one transaction, so none is lost and none sent twice over.

The messages go over the outbox of all exports, a cursor a target, in order; one that is a day old
goes unsent.
"""

from collections.abc import Iterable

import orjson
from sqlalchemy import Connection, delete, insert, select

from strandline.alerts.conditions import Trouble
from strandline.store.ingest.export_news import ALERT, News, insert_news
from strandline.store.schema.version_tables import alerts
from strandline.store.versions.fact_log import lock_head

MICRO = 1_000_000


def note(connection: Connection, found: Iterable[Trouble], now: float) -> int:
    """Compare what is wrong with what was reported.

    Queue a message for whatever began or is over.
    """
    lock_head(connection)
    at = round(now * MICRO)
    firing = {row.key: row for row in connection.execute(select(alerts))}
    current = {trouble.key: trouble for trouble in found}
    begun = [current[key] for key in sorted(current.keys() - firing.keys())]
    over = [firing[key] for key in sorted(firing.keys() - current.keys())]
    messages = [
        _message("firing", one.rule, one.key.partition("|")[2], one.text, at) for one in begun
    ]
    messages += [_recovered(row.body, at) for row in over]
    for trouble, body in zip(begun, messages, strict=False):
        connection.execute(
            insert(alerts).values(key=trouble.key, since=at, body=orjson.dumps(body))
        )
    for row in over:
        connection.execute(delete(alerts).where(alerts.c.key == row.key))
    insert_news(
        connection,
        [
            News(ALERT, place, 0, at, None, orjson.dumps(body))
            for place, body in enumerate(messages)
        ],
    )
    return len(messages)


def _message(status: str, rule: str, about: str, text: str, at: int) -> dict[str, object]:
    return {"status": status, "rule": rule, "about": about, "text": text, "at": at / MICRO}


def _recovered(body: bytes, at: int) -> dict[str, object]:
    began = orjson.loads(body)
    return {**began, "status": "recovered", "since": began["at"], "at": at / MICRO}
