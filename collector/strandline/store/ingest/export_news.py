"""The changes of an ingest transaction that export targets may need.

Nothing is written while there is no target.

A row says only where to look. Exporters put the rows in order and read the newest state of what
they name.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from strandline.core.changes.lineage import EventChange
from strandline.core.changes.rows import DatasetSeen, RunSeen
from strandline.core.openlineage.events import Event
from strandline.store.schema.export_tables import export_news
from strandline.store.sql.upsert import insert_values, values_of

RUN, DATASET, EVENT, ALERT = 0, 1, 2, 3
RUNS, EVENTS, ALERTS = (
    "runs",
    "events",
    "alerts",
)  # what a target may want; kept in store_settings.exports


class News(NamedTuple):
    """A row of export_news."""

    kind: int
    entity_id: int
    group_id: int
    at: int
    hash: bytes | None = None
    body: bytes | None = None


def news_of(
    event: Event, changes: Iterable[EventChange], received_at: int, hash_: bytes, wanted: str
) -> list[News]:
    """Return the news that one event makes for targets that want runs, events, or both."""
    found: list[News] = []
    run = next(
        (change for change in changes if type(change) is RunSeen and change.newest_at is not None),
        None,
    )
    if RUNS in wanted:
        found += [News(RUN, run.id, run.job_id, 0)] if run else _of_dataset(event, changes)
    if EVENTS in wanted:
        own = int.from_bytes(hash_[:8], "big") >> 1
        found.append(News(EVENT, own, run.id if run else own, received_at, hash_))
    return found


def _of_dataset(event: Event, changes: Iterable[EventChange]) -> list[News]:
    if event.job is not None or event.dataset is None:
        return []
    named = next(
        (change for change in changes if type(change) is DatasetSeen and change.named), None
    )
    return [News(DATASET, named.id, named.id, 0)] if named else []


def insert_news(connection: Connection, changes: Sequence[News]) -> None:
    """Write news, each once."""
    if changes:
        once: list[tuple[Any, ...]] = [tuple(change) for change in dict.fromkeys(changes)]
        columns = News._fields
        values = insert_values(export_news, columns, connection.dialect.name)
        statement = f"INSERT INTO export_news ({', '.join(columns)}) {values}"
        connection.exec_driver_sql(statement, values_of(connection, export_news, columns, once))
