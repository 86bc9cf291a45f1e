"""The outbox as answers show it: how far each target is, and what is parked."""

from typing import Any

from sqlalchemy import Connection, func, select

from strandline.exporters.outbox import WANTED
from strandline.store.lineage.run_state import iso
from strandline.store.schema.export_tables import (
    export_changes,
    export_news,
    export_parked,
    export_targets,
)


def targets_in(connection: Connection) -> list[dict[str, Any]]:
    """Every target: what waits, what was sent, what is parked, and what is wrong."""
    unordered = connection.scalar(select(func.count()).select_from(export_news)) or 0
    counted = select(export_parked.c.target, func.count()).group_by(export_parked.c.target)
    parked: dict[str, int] = dict(map(tuple, connection.execute(counted)))
    answers = []
    for row in connection.execute(select(export_targets).order_by(export_targets.c.name)):
        of_it = export_changes.c.kind.in_(WANTED[row.kinds])
        waiting = select(func.count()).where(of_it, export_changes.c.seq > row.cursor)
        answers.append(
            {
                "name": row.name,
                "kinds": row.kinds,
                "waiting": (connection.scalar(waiting) or 0) + unordered,
                "sent": row.sent,
                "sentAt": iso(row.sent_at or None),
                "parked": parked.get(row.name, 0),
                "dropped": row.dropped,
                "failures": row.failures,
                "problem": row.problem or None,
                "nextAt": iso(row.next_at or None),
            }
        )
    return answers


def parked_of(connection: Connection, name: str | None) -> list[dict[str, Any]]:
    """Return the items that a target, or any target, rejected."""
    query = select(export_parked).order_by(export_parked.c.target, export_parked.c.at)
    if name is not None:
        query = query.where(export_parked.c.target == name)
    return [
        {
            "target": row.target,
            "about": row.about,
            "reason": row.reason,
            "attempts": row.attempts,
            "at": iso(row.at),
        }
        for row in connection.execute(query)
    ]
