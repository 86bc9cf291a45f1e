"""What an analysis on Spark published: the first rows of its reports, each report in the place of the one before.

Numbers that count what lies in other namespaces are shown to who sees all of them (`OWN` is what everybody sees of its own).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Select, and_, delete, insert, or_, select

from strandline.core.openlineage.times import moment_of
from strandline.errors import NotFoundError
from strandline.store.schema.analysis_tables import analysis_reports, analysis_rows
from strandline.store.schema.tables import datasets, jobs

Json = dict[str, Any]
REPORTS = ("impact", "jobs", "columns", "unused", "orphans", "unread", "stale", "aliases", "delays")
OF_JOBS = "jobs"
OWN = frozenset({"column", "rule", "evidence", "day", "snapshots", "newestAt", "writtenAt"})
MOST = 1000  # rows of a report: its whole table stays where --to puts it


class PublishedRow(NamedTuple):
    """A row of a report: the dataset or job, of a pair the other dataset, and its values by their names in the API."""

    subject: int
    other: int | None
    values: Mapping[str, Any]


class PublishedReport(NamedTuple):
    """A report. truncated_by: what ended its closure before all was found."""

    name: str
    about: str
    as_of: int
    state: str
    total: int
    truncated_by: str | None
    rows: Sequence[PublishedRow]


def publish(connection: Connection, report: PublishedReport) -> None:
    """Put a report in the place of the one that was there."""
    for table in (analysis_rows, analysis_reports):
        connection.execute(delete(table).where(table.c.report == report.name))
    head = {"report": report.name, "about": report.about, "as_of": report.as_of, "state": report.state}
    connection.execute(
        insert(analysis_reports).values(head | {"total": report.total, "truncated_by": report.truncated_by})
    )
    rows = [
        {
            "report": report.name,
            "place": place,
            "subject_id": row.subject,
            "other_id": row.other,
            "body": orjson.dumps(row.values).decode(),
        }
        for place, row in enumerate(report.rows[:MOST])
    ]
    if rows:
        connection.execute(insert(analysis_rows), rows)


def drop_analyses(connection: Connection) -> int:
    """Take all away: they were computed from everything, so nobody can say what of them somebody had a part in."""
    count = connection.execute(delete(analysis_rows)).rowcount
    return count + connection.execute(delete(analysis_reports)).rowcount


def reports_of(connection: Connection, *, everything: bool) -> list[Json]:
    """What was published."""
    found = {row.report: row for row in connection.execute(select(analysis_reports))}
    return [_head(found[name], everything) for name in REPORTS if name in found]


def report_of(connection: Connection, name: str, start: int, limit: int, *, everything: bool) -> Json:
    """A page of a report: `limit` rows from the `start`-th of those that this connection sees."""
    head = connection.execute(select(analysis_reports).where(analysis_reports.c.report == name)).first()
    if head is None:
        raise NotFoundError(f"no {name} report was published: strandline analyse --publish does that")
    rows = connection.execute(_rows(name).limit(limit + 1).offset(start)).all()
    items = [_item(row, name, everything) for row in rows[:limit]]
    return {
        **_head(head, everything),
        "items": [item for item, _ in items],
        "withheld": sorted({one for _, withheld in items for one in withheld}),
        "next": start + limit if len(rows) > limit else None,
    }


def _head(row: Any, everything: bool) -> Json:
    ended = row.truncated_by or ("rows" if row.total > MOST else None)
    total = {"total": row.total} if everything else {}
    moment: datetime = moment_of(row.as_of)
    return {
        "report": row.report, "about": row.about, "asOf": moment.isoformat(), "state": row.state, **total,
        "complete": ended is None, "truncatedBy": ended,
    }  # fmt: skip


def _rows(name: str) -> Select[Any]:
    subject = (jobs if name == OF_JOBS else datasets).alias("subject")
    other = datasets.alias("other")
    joined = analysis_rows.join(subject, subject.c.id == analysis_rows.c.subject_id)
    joined = joined.outerjoin(other, other.c.id == analysis_rows.c.other_id)
    named = (
        subject.c.namespace,
        subject.c.name,
        other.c.namespace.label("other_namespace"),
        other.c.name.label("other_name"),
    )
    seen = or_(analysis_rows.c.other_id.is_(None), other.c.id.is_not(None))
    query = select(analysis_rows.c.body, *named).select_from(joined).where(and_(analysis_rows.c.report == name, seen))
    return query.order_by(analysis_rows.c.place)


def _item(row: Any, name: str, everything: bool) -> tuple[Json, set[str]]:
    """An item, and the names of the values that it lacks."""
    kind = "job" if name == OF_JOBS else "dataset"
    item = {
        "id": f"{kind}:{row.namespace}:{row.name}", "kind": kind, "namespace": row.namespace, "name": row.name
    }  # fmt: skip
    if row.other_name is not None:
        item["other"] = {
            "id": f"dataset:{row.other_namespace}:{row.other_name}",
            "namespace": row.other_namespace,
            "name": row.other_name,
        }
    values = orjson.loads(row.body)
    withheld = set() if everything else values.keys() - OWN
    return item | {name: value for name, value in values.items() if name not in withheld}, withheld
