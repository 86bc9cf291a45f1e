"""Run events as received, as Marquez' page pages through them.

By an offset, within a span of their own times.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select

from strandline.core.openlineage.events import decode
from strandline.errors import InvalidEventError
from strandline.store.catalog.received import AT_ONCE, PAGE_BYTES
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.compression import Expansion

MOST_COUNTED = 10_000  # events: a count of millions would be read through for every page
SLACK = (
    86_400 * 10**6
)  # a producer's clock may be ahead by a day; its event is received before its time


class RunEventFilter(NamedTuple):
    """A filter of events by their own time, from `after` on and before `before`, in microseconds.

    Of a namespace's jobs.
    """

    after: int | None
    before: int | None
    namespace: str | None = None
    oldest_first: bool = False


def run_events(
    connection: Connection, span: RunEventFilter, limit: int, offset: int
) -> tuple[list[bytes], int]:
    """The bodies of run events, by the moment of receipt; and how many there are.

    The number is exact where these are the last. Before that it counts events of every kind and
    namespace, since telling them apart takes their bodies.
    """
    bodies: list[bytes] = []
    size = skipped = 0
    for body in _bodies(connection, span, offset + limit):
        if skipped < offset:
            skipped += 1
        elif len(bodies) == limit or size > PAGE_BYTES:
            return bodies, _count_events(connection, span)
        else:
            bodies.append(body)
            size += len(body)
    return bodies, skipped + len(bodies)


def _bodies(connection: Connection, span: RunEventFilter, wanted: int) -> Iterator[bytes]:
    key = (raw_events.c.received_at, raw_events.c.hash)
    order = key if span.oldest_first else tuple(column.desc() for column in key)
    most = max(MOST_COUNTED, wanted) * 2
    query = select(raw_events).where(*_within(span)).order_by(*order).limit(most)
    expansion = Expansion(connection)
    with connection.execute(query.execution_options(yield_per=AT_ONCE)) as rows:
        for _, body in expansion.expanded(rows):
            if isinstance(body, bytes) and _is_run_event(body, span.namespace):
                yield body


def _count_events(connection: Connection, span: RunEventFilter) -> int:
    """Return how many events the span has; MOST_COUNTED where it has more."""
    some = (
        select(raw_events.c.received_at).where(*_within(span)).limit(MOST_COUNTED).subquery("some")
    )
    return connection.scalar(select(func.count()).select_from(some)) or 0


def _within(span: RunEventFilter) -> Iterator[ColumnElement[bool]]:
    if span.after is not None:
        yield raw_events.c.event_time >= span.after
        yield raw_events.c.received_at >= span.after - SLACK
    if span.before is not None:
        yield raw_events.c.event_time < span.before


def _is_run_event(body: bytes, namespace: str | None) -> bool:
    """Return true for an event with a run and a job, of the namespace if one is given.

    Others (JobEvent, DatasetEvent) break Marquez' page, which reads `run` and `job` of every event.
    """
    try:
        event = decode(body)
    except InvalidEventError:
        return False
    if event.run is None or event.job is None:
        return False
    return namespace is None or event.job.namespace == namespace
