"""The way of records into rows: bytes -> decode -> changes -> compact -> rows.

The caller opens the transaction, moves its offsets in it, and only after the commit calls
`caches.commit()` (`caches.discard()` after a rollback). Taking the same records again, or in
another order, leaves the same rows.
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from sqlalchemy import Connection

from strandline.core.changes.compact import Rows, compact
from strandline.core.changes.datasets import is_rename
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.lineage import EventChange
from strandline.core.changes.memory import Memory
from strandline.core.openlineage.events import Decoded, Event, decoded, trimmed, unread
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.names import complaint
from strandline.core.openlineage.times import micros_of
from strandline.core.redaction.json import has_secret, redact_bytes, redact_json
from strandline.errors import InvalidEventError
from strandline.store.ingest.export_news import News, insert_news, news_of
from strandline.store.ingest.former_names import names_used_again, separate_names
from strandline.store.ingest.labels import label
from strandline.store.ingest.raw_events import (
    DAY,
    RawEvent,
    SetAside,
    claim,
    insert_events,
    insert_set_aside,
    make_partition,
    release,
)
from strandline.store.ingest.retention import EXPIRE_LOCK, keep_writers_out
from strandline.store.ingest.runs_again import relate_again
from strandline.store.ingest.shared_runs import (
    learn_shared_runs,
    separate_shared_runs,
)
from strandline.store.ingest.unseen_rows import only_news
from strandline.store.ingest.writer_state import Caches
from strandline.store.lineage.graph_log import is_written, note_rows
from strandline.store.lineage.joined_names import names_before
from strandline.store.lineage.owner_relations import relate_owners, runs_in
from strandline.store.search.changed_facets import changed_facets
from strandline.store.search.upkeep import index_touched, touched_by
from strandline.store.sql.body_references import Body, key_of
from strandline.store.sql.shared_settings import agree, agreed
from strandline.store.versions.fact_log import mark

__all__ = ["Caches", "Outcome", "Record", "take", "validated"]


class Record(NamedTuple):
    """One message as received.

    received_at: Kafka's log append time, or the server's clock. read: it was decoded already
    (`validated`). hash: it is an event read back, whose secrets were taken out.
    """

    value: bytes
    received_at: datetime
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    read: Decoded | None = None
    hash: bytes | None = None

    @property
    def place(self) -> str:
        """The place of the record: topic[partition]@offset."""
        return f"{self.topic}[{self.partition}]@{self.offset}" if self.topic else ""


class Outcome(NamedTuple):
    """The outcome of a record.

    `reason` says why a dead one is dead, with the place, or why one is kept unread.

    Dead: it is no event. Unread: a fault of ours kept it from being read, so it is kept for a
    program without that. Refused: it is no event (or no JSON either), and its sender waits to hear
    so with the path to the fault; nothing is kept of it. Tombstone: a Kafka record without a value.
    """

    kind: Literal["stored", "duplicate", "dead", "unread", "refused", "tombstone"]
    hash: bytes
    reason: str | None = None
    path: str = ""
    is_json: bool = True


@dataclass(slots=True, eq=False)
class Arrival:
    """A record on its way into rows, with what each step adds.

    decoded: None of one that is no event, or repeats one of its batch. body: to store; None until
    the event is taken apart. outcome: None of a duplicate.
    """

    record: Record
    hash: bytes
    received_at: int
    decoded: Decoded | None = None
    event_time: int = 0
    changes: Sequence[EventChange] = ()
    body: Body | None = None
    outcome: Outcome | None = None


def validated(value: bytes, received_at: datetime) -> Record:
    """Return a record of a body that is an event, for senders who are told at once.

    Raises InvalidEventError with the path.
    """
    return Record(value, received_at, read=decoded(value))


def take(connection: Connection, records: Sequence[Record], caches: Caches) -> list[Outcome]:
    """Store records and all that they say; return what became of each, in their order.

    The caller's loop retries serialization failures and deadlocks (40001, 40P01) with the same
    records: nothing of a rolled back transaction is remembered once `caches.discard()` was called.
    """
    with no_search_for_cycles():
        _begin(connection, records, caches)
        arrivals = _decode(records)
        new = _claim(connection, arrivals)
        stored = _extract(new, caches)
        if learn_shared_runs(connection, _changes_in(stored), caches.memory):
            stored = _extract(stored, caches)
        _await_writers_of_old_names(connection, stored, caches)
        _insert_bodies(connection, stored, caches)
        _insert_dead_letters(connection, arrivals)
        _insert_unread(connection, arrivals)
        rows = store(connection, _changes_in(stored), caches)
        has_shared_runs = _separate_runs(connection, stored, caches)
        has_names_used_again = _separate_names(connection, rows, caches)
        if has_shared_runs or has_names_used_again:
            stored = _extract(stored, caches)
        _insert_export_news(connection, stored, caches)
        return [arrival.outcome or Outcome("duplicate", arrival.hash) for arrival in arrivals]


def store(connection: Connection, changes: Sequence[EventChange], caches: Caches) -> Rows:
    """Fold changes into the tables, and note what depends on them; return the rows.

    Labels, owners, version facts, the graph, the search.
    """
    rows = only_news(compact(changes, caches.shared_facets), caches)
    changed = changed_facets(connection, rows, caches.watched_facets)
    to_index = touched_by(connection, rows, caches.is_new, changed)
    with label(connection, rows, changed, has_renames=caches.has_renames):
        caches.run_templates.store(connection, rows)
    owned = relate_owners(connection, runs_in(rows))
    mark(connection, rows, has_renames=caches.has_renames)
    if caches.notes_graph:
        note_rows(connection, rows, owned)
    index_touched(connection, to_index)
    return rows


def _changes_in(arrivals: Iterable[Arrival]) -> list[EventChange]:
    return [change for arrival in arrivals for change in arrival.changes]


def _await_writers_of_old_names(
    connection: Connection, stored: Sequence[Arrival], caches: Caches
) -> None:
    """Before the first rename wait for all writers: they do not look for former names yet."""
    if not caches.has_renames and any(map(is_rename, _changes_in(stored))):
        keep_writers_out(connection)
        agree(connection, "has_renames", "1")
        caches.has_renames = True


def _separate_runs(connection: Connection, stored: Sequence[Arrival], caches: Caches) -> bool:
    """Give each of several jobs that reported one run id a run of its own.

    Return whether there was such a run.
    """
    changes, keys = separate_shared_runs(connection, _changes_in(stored), caches)
    if not changes:
        return False
    store(connection, changes, caches)
    relate_again(connection, keys)
    return True


def _separate_names(connection: Connection, rows: Rows, caches: Caches) -> bool:
    """Give each of several tables that had one name its own history.

    Return whether there was such a name.
    """
    names = names_used_again(connection, rows) if caches.has_renames else []
    if not names:
        return False
    changes, keys = separate_names(connection, names, caches)
    store(connection, changes, caches)
    relate_again(connection, keys)
    return True


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Turn the garbage collector off for a batch.

    A batch makes a hundred thousand small values and no cycle; looking for one took a quarter of
    all time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _begin(connection: Connection, records: Sequence[Record], caches: Caches) -> None:
    """Read the store's settings, and make partitions before anything is locked."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            f"SELECT pg_advisory_xact_lock_shared({EXPIRE_LOCK}),"
            " set_config('plan_cache_mode', 'auto', true)"
        )
    settings = agreed(connection)
    caches.renew(settings)
    caches.exports = settings.get("exports", "")
    caches.notes_graph = is_written(settings)
    caches.has_renames = "has_renames" in settings
    if caches.has_renames and caches.memory.names_before is None:
        caches.memory.learn_names_before(names_before(connection))
    for day in sorted({micros_of(record.received_at) // DAY for record in records}):
        if not caches.knows("day", day):
            make_partition(connection, day)
            caches.add("day", day)


def _decode(records: Sequence[Record]) -> list[Arrival]:
    """Decode each content once; what is no event is dead."""
    arrivals: list[Arrival] = []
    hashes: set[bytes] = set()
    for record in records:
        hash_ = record.hash or content_hash(trimmed(record.value))
        arrival = Arrival(record, hash_, micros_of(record.received_at))
        arrivals.append(arrival)
        if hash_ in hashes:
            continue
        try:
            arrival.decoded = record.read or decoded(record.value)
            hashes.add(hash_)
        except InvalidEventError as error:
            arrival.outcome = _dead(record, hash_, str(error))
    return arrivals


def _dead(record: Record, hash_: bytes, reason: str) -> Outcome:
    reason = complaint(reason)  # it is logged and answered as well
    return Outcome("dead", hash_, f"{reason} (at {record.place})" if record.place else reason)


def _claim(connection: Connection, arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Note the hashes of the events, and return the events that were not known."""
    events = [arrival for arrival in arrivals if arrival.decoded is not None]
    new = claim(connection, [(event.hash, event.received_at) for event in events])
    return [event for event in events if event.hash in new]


def _extract(new: Sequence[Arrival], caches: Caches) -> list[Arrival]:
    """Take events apart, and return those of which that succeeded. The others are unread."""
    stored: list[Arrival] = []
    for arrival in new:
        try:
            _take_apart(arrival, caches.memory)
        except Exception as error:  # noqa: BLE001 - one event, whatever it brings about, must not stop a partition
            arrival.outcome = unread_outcome(arrival.hash, error)
            caches.bugs.append(error)
        else:
            arrival.outcome = Outcome("stored", arrival.hash)
            stored.append(arrival)
    return stored


def _take_apart(arrival: Arrival, memory: Memory) -> None:
    """Add an event's changes, and its body without secrets."""
    assert arrival.decoded is not None
    event, value = arrival.decoded
    stamp = Stamp.of(event.at, arrival.hash, arrival.received_at)
    changes = changes_of(event, stamp, memory)
    if changes.redacted or has_secret(unread(event, value)):
        value = redact_json("", value)
    arrival.event_time, arrival.changes = stamp.at, changes.changes
    arrival.body = Body(_kind_of(event, memory), arrival.hash, arrival.received_at, value)


def _kind_of(event: Event, memory: Memory) -> int:
    """Return the kind of similar events: of its job, or else its dataset, and its type."""
    if event.job is not None:
        return key_of(memory.job(event.job.namespace, event.job.name).id, event.event_type)
    if event.dataset is not None:
        return key_of(memory.dataset(event.dataset.namespace, event.dataset.name).id, None)
    return key_of(0, None)


def _insert_bodies(connection: Connection, stored: Sequence[Arrival], caches: Caches) -> None:
    """Write the bodies of events, packed, and what they are packed with."""
    if not stored:
        return
    frames = caches.compression.pack(
        connection, [arrival.body for arrival in stored if arrival.body is not None]
    )
    events = [
        RawEvent(arrival.received_at, arrival.hash, arrival.event_time, *frame)
        for arrival, frame in zip(stored, frames, strict=True)
    ]
    insert_events(connection, events)


def _insert_dead_letters(connection: Connection, arrivals: Sequence[Arrival]) -> None:
    """Set the dead ones aside; their hashes may be claimed again."""
    dead = [arrival for arrival in arrivals if arrival.outcome and arrival.outcome.kind == "dead"]
    if dead:
        letters = [
            dead_letter(arrival.record, arrival.outcome) for arrival in dead if arrival.outcome
        ]
        insert_set_aside(connection, letters)
        release(connection, [arrival.hash for arrival in dead])


def _insert_unread(connection: Connection, arrivals: Sequence[Arrival]) -> None:
    """Set aside what could not be read through no fault of its own; its hash may be claimed again.

    Records equal to one of these are unread as well, and the last of equal ones is kept: nothing
    else has their content.
    """
    unread_hashes = {
        arrival.hash: arrival.outcome
        for arrival in arrivals
        if arrival.outcome and arrival.outcome.kind == "unread"
    }
    if not unread_hashes:
        return
    last: dict[bytes, SetAside] = {}
    for arrival in arrivals:
        outcome = unread_hashes.get(arrival.hash)
        if outcome is not None:
            arrival.outcome = arrival.outcome or outcome
            last[arrival.hash] = unread_event(arrival.record, arrival.outcome)
    insert_set_aside(connection, list(last.values()))
    release(connection, list(last))


def _insert_export_news(connection: Connection, stored: Sequence[Arrival], caches: Caches) -> None:
    """Note what targets outside may have to hear of."""
    if not caches.exports:
        return
    changes: list[News] = []
    for arrival in stored:
        assert arrival.decoded is not None
        event, received_at = arrival.decoded.event, arrival.received_at
        changes += news_of(event, arrival.changes, received_at, arrival.hash, caches.exports)
    insert_news(connection, changes)


def unread_outcome(hash_: bytes, error: Exception) -> Outcome:
    """Return the outcome of an event that a fault of ours kept from being read or stored."""
    return Outcome("unread", hash_, complaint(f"cannot be read: {error!r}")[:500])


def unread_event(record: Record, outcome: Outcome) -> SetAside:
    """Return the row of an event that is kept unread."""
    return SetAside(
        kind="unread",
        id=outcome.hash,
        received_at=micros_of(record.received_at),
        topic=record.topic or "",
        partition_id=-1 if record.partition is None else record.partition,
        record_offset=-1 if record.offset is None else record.offset,
        reason=complaint(outcome.reason or ""),
        body=redact_bytes(record.value),
    )


def dead_letter(record: Record, outcome: Outcome) -> SetAside:
    """Return the row of a record that is no event; a record made of the row has the same one."""
    body = redact_bytes(record.value)
    return SetAside(
        kind="dead",
        id=content_hash(record.place.encode() + b"\0" + body),
        received_at=micros_of(record.received_at),
        topic=record.topic or "",
        partition_id=-1 if record.partition is None else record.partition,
        record_offset=-1 if record.offset is None else record.offset,
        reason=complaint(outcome.reason or ""),
        body=body,
    )
