"""Events as received, newest first: those of a job, a run or a dataset, of a span of time.

A page ends early where its events are large: an answer has to fit into memory, however long its
page may be.

No index leads from a run to its events: that would cost every event that is taken. But a run, job
or dataset knows the times of its first and its newest event, so only events of these times are
unpacked and looked into.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, Table, func, select, tuple_

from strandline.core.access.granted import Access
from strandline.core.changes.extract import memory_for
from strandline.core.changes.memory import Memory
from strandline.core.openlineage.events import Event, decode
from strandline.core.openlineage.names import run_ids_of
from strandline.core.openlineage.times import moment_of
from strandline.errors import DamagedError, InvalidEventError, NotFoundError
from strandline.store.catalog.filters import refuse_backward_span
from strandline.store.catalog.runs import runs_called
from strandline.store.lineage.joined_names import names_before
from strandline.store.lineage.lookup import Node, dataset_called, job_called
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.received_tables import raw_events
from strandline.store.schema.run_tables import jobs, run_queries, runs
from strandline.store.sql.compression import Expansion
from strandline.store.sql.id_lists import among
from strandline.store.sql.pages import encode_cursor
from strandline.store.sql.shared_settings import agreed_naming

NEVER = (1, 0)
MOST_BATCHES = 100_000  # micro-batches of a streaming query's job


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The filter of a list of events.

    `since` and `until` bound the moment of receipt, in microseconds.
    """

    job: Node | None = None
    run_id: str | None = None
    dataset: Node | None = None
    since: int | None = None
    until: int | None = None

    @property
    def looks_inside(self) -> bool:
        """True if the events themselves have to be read."""
        return not (self.job is None and self.run_id is None and self.dataset is None)


def event_filter(
    connection: Connection,
    job: str | None = None,
    run_id: str | None = None,
    dataset: str | None = None,
    since: int | None = None,
    until: int | None = None,
) -> EventFilter:
    """The filter of a job, run and dataset as people call them.

    A NotFoundError for what is unknown, a QuestionError where `since` is after `until`.
    """
    refuse_backward_span(since, until=until)
    if run_id is not None and not runs_called(connection, run_id):
        raise NotFoundError(f"unknown run: {run_id!r}")
    of_job = None if job is None else job_called(connection, job)
    named = None if dataset is None else dataset_called(connection, dataset)
    return EventFilter(of_job, run_id, named, since, until)


class Matcher:
    """A filter on a store: clauses for the rows, and a look into the events that are left."""

    def __init__(self, connection: Connection, event_filter: EventFilter, access: Access) -> None:
        self._access = access
        self._memory = Memory(agreed_naming(connection))
        self._memory.learn_names_before(names_before(connection))
        self._asked = event_filter
        self._runs: set[int] | None = (
            {row.id for row in runs_called(connection, event_filter.run_id)}
            if event_filter.run_id is not None
            else None
        )
        self._job_runs = _batches_of(connection, event_filter.job)
        self._names = _names_of(connection, event_filter.dataset)
        spans: list[tuple[int, int] | None] = []
        if self._runs is not None:
            spans += [_span(connection, runs, self._runs) or NEVER]
        if event_filter.job is not None and not self._job_runs:
            spans += [_span(connection, jobs, [event_filter.job.id])]
        if self._names is not None:
            spans += [_span(connection, datasets, self._names)]
        self._spans = [span for span in spans if span is not None]

    @property
    def looks_inside(self) -> bool:
        """True if the list leaves out some rows that fit the clauses."""
        return self._asked.looks_inside or not self._access.everything

    def clauses(self) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions on a row of raw_events."""
        if self._asked.since is not None:
            yield raw_events.c.received_at >= self._asked.since
        if self._asked.until is not None:
            yield raw_events.c.received_at < self._asked.until
        for first, last in self._spans:
            yield raw_events.c.event_time.between(first, last)

    def admits(self, body: bytes) -> bool:
        """Return whether an event is asked for."""
        if not self.looks_inside:
            return True
        try:
            event = decode(body)
        except InvalidEventError:  # an older version took it; nobody can tell whose it is
            return False
        return event_is_seen(event, self._access) and (
            self._is_of_run(event) and self._is_of_job(event) and self._is_of_dataset(event)
        )

    def _is_among(self, event: Event, run_ids: set[int]) -> bool:
        if event.run is None or event.job is None:
            return False
        job = event.job
        return not run_ids.isdisjoint(run_ids_of(event.run.run_id, job.namespace, job.name))

    def _is_of_run(self, event: Event) -> bool:
        return self._runs is None or self._is_among(event, self._runs)

    def _is_of_job(self, event: Event) -> bool:
        if self._asked.job is None:
            return True
        if event.job is None:
            return False
        own = self._memory.job(event.job.namespace, event.job.name).id == self._asked.job.id
        return own or self._is_among(event, self._job_runs)

    def _is_of_dataset(self, event: Event) -> bool:
        if self._names is None:
            return True
        named = (
            member
            for group in (event.inputs, event.outputs, [event.dataset])
            for member in group or ()
            if member
        )
        memory = memory_for(event, event.at, self._memory)
        return any(memory.dataset(name.namespace, name.name).id in self._names for name in named)


def event_is_seen(event: Event, access: Access) -> bool:
    """Return whether an event is in a namespace of the key.

    The job's namespace counts, or the dataset's if the event has no job.
    """
    about = event.job or event.dataset
    return access.everything or (about is not None and access.allows(about.namespace))


def _batches_of(connection: Connection, job: Node | None) -> set[int]:
    """The micro-batches of a job that is a streaming query, which call themselves otherwise."""
    if job is None:
        return set()
    owned = run_queries.join(runs, runs.c.id == run_queries.c.owner_id)
    query = select(run_queries.c.run_id).select_from(owned).where(runs.c.job_id == job.id)
    return set(connection.scalars(query.order_by(run_queries.c.at.desc()).limit(MOST_BATCHES)))


def _names_of(connection: Connection, dataset: Node | None) -> set[int] | None:
    if dataset is None:
        return None
    return set(
        connection.scalars(select(datasets.c.id).where(datasets.c.canonical_id == dataset.id))
    )


def _span(connection: Connection, table: Table, ids: Iterable[int]) -> tuple[int, int] | None:
    """The times of the first and the newest event that named one of these runs, jobs or datasets.

    None if none did.
    """
    query = select(func.min(table.c.first_at), func.max(table.c.newest_at)).where(
        among(table.c.id, ids)
    )
    first, last = connection.execute(query).one()
    return None if first is None else (first, last)


PAGE_BYTES = 8 * 1024 * 1024
CURSOR = (int, str)
MOST_READ = 10_000  # events that one page looks into
AT_ONCE = 200


@dataclass(frozen=True)
class ReceivedEvent:
    """An event as stored: as received, but for its secrets.

    problem: the reason if its body cannot be read any more.
    """

    hash: bytes
    received_at: int
    event_time: int
    body: bytes
    problem: str = ""


def events_page(
    connection: Connection,
    limit: int,
    after: tuple[Any, ...] | None,
    event_filter: EventFilter | None,
    access: Access,
) -> tuple[Sequence[ReceivedEvent], str | None]:
    """At most `limit` events before the cursor's, and the cursor of the next page if there is one.

    A page of the events of a job, run or dataset may be short though it is not the last: it looks
    into so many and no more.
    """
    matcher = Matcher(connection, event_filter or EventFilter(), access)
    expansion = Expansion(connection)
    events: list[ReceivedEvent] = []
    size = 0
    last: Row[Any] | None = None
    most = MOST_READ if matcher.looks_inside else limit
    query = (
        newest_first(raw_events, raw_events.c.hash, after).where(*matcher.clauses()).limit(most + 1)
    )
    rows = connection.execute(query.execution_options(yield_per=AT_ONCE))
    for read, (row, body) in enumerate(expansion.expanded(rows)):
        if last is not None and (len(events) == limit or size > PAGE_BYTES or read == most):
            rows.close()
            return events, cursor_of(last.received_at, last.hash)
        last = row
        if isinstance(body, DamagedError):
            if not matcher.looks_inside:
                events.append(
                    ReceivedEvent(
                        bytes(row.hash), row.received_at, row.event_time, b"{}", str(body)
                    )
                )
        elif matcher.admits(body):
            size += len(body)
            events.append(ReceivedEvent(bytes(row.hash), row.received_at, row.event_time, body))
    return events, None


def event_answer(event: ReceivedEvent) -> dict[str, Any]:
    """As JSON shows it."""
    answer = {
        "hash": event.hash.hex(),
        "receivedAt": moment_of(event.received_at),
        "eventTime": moment_of(event.event_time),
        "event": orjson.Fragment(event.body),
    }
    return answer | {"problem": event.problem} if event.problem else answer


def newest_first(table: Table, key: Any, after: tuple[Any, ...] | None) -> Select[Any]:
    """Select the rows after a cursor's, the newest first.

    (A comparison of pairs, so that the key's index is walked from where the page begins.)
    """
    query = select(table).order_by(table.c.received_at.desc(), key.desc())
    if after is None:
        return query
    return query.where(tuple_(table.c.received_at, key) < tuple_(after[0], bytes.fromhex(after[1])))


def cursor_of(received_at: int, key: bytes) -> str:
    """Return the cursor after a row of `newest_first`."""
    return encode_cursor([received_at, bytes(key).hex()])
