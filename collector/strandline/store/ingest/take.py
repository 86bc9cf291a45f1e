"""Taking records in: bytes -> decode -> changes -> compact -> rows, all in the caller's transaction.

The caller opens the transaction, moves its offsets in it, and only after the commit calls `caches.commit()`
(`caches.discard()` after a rollback). Taking the same records again, or in another order, leaves the same rows.
"""

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Literal, NamedTuple

from sqlalchemy import Connection

from strandline.core.changes.bundles import Statement
from strandline.core.changes.compact import compact
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Extraction, Stamp
from strandline.core.changes.parse_cache import Memo
from strandline.core.openlineage.events import Decoded, Event, decoded, trimmed, unread
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.names import complaint
from strandline.core.openlineage.times import micros_of
from strandline.core.redaction.json import has_secret, redact_bytes, redact_json
from strandline.errors import InvalidEventError
from strandline.store.graph.news import is_written, note_rows
from strandline.store.ingest.export_news import News, insert_news, news_of
from strandline.store.ingest.labels import label
from strandline.store.ingest.raw_events import (
    DAY,
    DeadLetter,
    RawEvent,
    UnreadEvent,
    claim,
    insert_dead_letters,
    insert_events,
    insert_unread_events,
    make_partition,
    release,
)
from strandline.store.ingest.retention import EXPIRE_LOCK
from strandline.store.ingest.unseen_rows import only_news
from strandline.store.ingest.writer_state import Caches
from strandline.store.lineage.owner_relations import relate_owners, runs_in
from strandline.store.search.changed_facets import changed_facets
from strandline.store.search.upkeep import index_touched, touched_by
from strandline.store.sql.references import Body, key_of
from strandline.store.sql.shared_settings import agreed
from strandline.store.versions.fact_log import mark

__all__ = ["Caches", "Outcome", "Record", "take", "validated"]


class Record(NamedTuple):
    """One message as received. received_at: Kafka's log append time, or the server's clock.

    read: it was decoded already (`validated`); hash: it is an event read back, whose secrets were
    taken out.
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
        """Where the record stands: topic[partition]@offset."""
        return f"{self.topic}[{self.partition}]@{self.offset}" if self.topic else ""


class Outcome(NamedTuple):
    """What became of a record.

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


class Unpacked(NamedTuple):
    """A row of raw_events whose body is still to be packed."""

    event_time: int
    body: Body


def validated(value: bytes, received_at: datetime) -> Record:
    """A record of a body that is an event, for senders who are told at once.

    Raises InvalidEventError with the path.
    """
    return Record(value, received_at, read=decoded(value))


def take(connection: Connection, records: Sequence[Record], caches: Caches) -> list[Outcome]:
    """Store records and all that they say; gives what became of each, in their order.

    The caller's loop retries serialization failures and deadlocks (40001, 40P01) with the same
    records: nothing of a rolled back transaction is remembered once `caches.discard()` was called.
    """
    with no_search_for_cycles():
        return _take(connection, records, caches)


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """A batch makes a hundred thousand small values and no cycle.

    Looking for one took a quarter of all time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _take(connection: Connection, records: Sequence[Record], caches: Caches) -> list[Outcome]:
    _open(connection, records, caches)
    hashes, read, outcomes = _decode(records)
    keys = {hashes[index]: micros_of(records[index].received_at) for index in reversed(read)}
    new = claim(connection, list(keys.items()))
    raw, changes, news = _read(read, records, hashes, new, outcomes, caches)
    if raw:
        insert_events(connection, _packed(connection, raw, caches))
    _repeat_unread(hashes, outcomes)
    _bury(connection, records, hashes, outcomes)
    _keep_unread(connection, records, outcomes)
    store(connection, changes, caches)
    insert_news(connection, news)
    return [
        outcomes.get(index) or Outcome("duplicate", hash_) for index, hash_ in enumerate(hashes)
    ]


def store(connection: Connection, changes: Sequence[Statement], caches: Caches) -> None:
    """Fold changes into the tables."""
    rows = only_news(compact(changes, caches.shared_facets), caches)
    changed = changed_facets(connection, rows, caches.watched_facets)
    touched = touched_by(connection, rows, caches.is_new, changed)
    with label(connection, rows, changed):
        caches.run_templates.store(connection, rows)
    owned = relate_owners(connection, runs_in(rows))
    mark(connection, rows)
    if caches.notes_graph:
        note_rows(connection, rows, owned)
    caches.crowded |= index_touched(connection, touched)


def _open(connection: Connection, records: Sequence[Record], caches: Caches) -> None:
    """See whether rows were expired since the last time.

    Make partitions before anything is locked.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            f"SELECT pg_advisory_xact_lock_shared({EXPIRE_LOCK}), set_config('plan_cache_mode', 'auto', true)"
        )
    settings = agreed(connection)
    caches.renew(settings.get("epoch", ""), json.loads(settings.get("strip_patterns", "[]")))
    caches.compression.look(connection)
    caches.exports = settings.get("exports", "")
    caches.notes_graph = is_written(settings)
    for day in sorted({micros_of(record.received_at) // DAY for record in records}):
        if not caches.knows("day", day):
            make_partition(connection, day)
            caches.add("day", day)


def _decode(
    records: Sequence[Record],
) -> tuple[list[bytes], dict[int, Decoded], dict[int, Outcome]]:
    """The hashes of all; the events by index of their record, each content once.

    The outcomes of records that are none.
    """
    hashes: list[bytes] = []
    events: dict[int, Decoded] = {}
    dead: dict[int, Outcome] = {}
    seen: set[bytes] = set()
    for index, record in enumerate(records):
        hash_ = record.hash or content_hash(trimmed(record.value))
        hashes.append(hash_)
        if hash_ in seen:
            continue
        try:
            events[index] = record.read or decoded(record.value)
            seen.add(hash_)
        except InvalidEventError as error:
            dead[index] = _dead(record, hash_, str(error))
    return hashes, events, dead


def _dead(record: Record, hash_: bytes, reason: str) -> Outcome:
    reason = complaint(reason)  # it is logged and answered as well
    return Outcome("dead", hash_, f"{reason} (at {record.place})" if record.place else reason)


def _packed(connection: Connection, unpacked: Sequence[Unpacked], caches: Caches) -> list[RawEvent]:
    """The rows of events, their bodies packed; what they are packed with is written."""
    packed = caches.compression.pack(connection, [one.body for one in unpacked])
    return [
        RawEvent(one.body.received_at, one.body.source, one.event_time, *frame)
        for one, frame in zip(unpacked, packed, strict=True)
    ]


def _read(
    events: dict[int, Decoded],
    records: Sequence[Record],
    hashes: Sequence[bytes],
    new: set[bytes],
    outcomes: dict[int, Outcome],
    caches: Caches,
) -> tuple[list[Unpacked], list[Statement], list[News]]:
    """The bodies to store, the changes of the new ones among the events and what of it is exported.

    Notes their outcomes.
    """
    raw: list[Unpacked] = []
    changes: list[Statement] = []
    news: list[News] = []
    for index, event in events.items():
        hash_ = hashes[index]
        if hash_ not in new:
            continue
        try:
            reading, unpacked = _interpret(event, records[index], hash_, caches)
        except Exception as error:  # noqa: BLE001 - one event, whatever it brings about, must not stop a partition
            outcomes[index] = unread_outcome(hash_, error)
            caches.bugs.append(error)
            continue
        changes += reading.changes
        raw.append(unpacked)
        if caches.exports:
            news += news_of(
                event.event, reading.changes, unpacked.body.received_at, hash_, caches.exports
            )
        outcomes[index] = Outcome("stored", hash_)
    return raw, changes, news


def _interpret(
    read: Decoded, record: Record, hash_: bytes, caches: Caches
) -> tuple[Extraction, Unpacked]:
    event, value = read
    stamp = Stamp.of(event.at, hash_, micros_of(record.received_at))
    reading = changes_of(event, stamp, caches.memo)
    body = redact_json("", value) if reading.redacted or has_secret(unread(event, value)) else value
    return reading, Unpacked(
        stamp.at, Body(_kind_of(event, caches.memo), hash_, stamp.received_at, body)
    )


def _kind_of(event: Event, memo: Memo) -> int:
    """What the event resembles: others of its job, or else its dataset, and its type."""
    if event.job is not None:
        return key_of(memo.job(event.job.namespace, event.job.name).id, event.event_type)
    return key_of(
        0
        if event.dataset is None
        else memo.dataset(event.dataset.namespace, event.dataset.name).id,
        None,
    )


def _repeat_unread(hashes: Sequence[bytes], outcomes: dict[int, Outcome]) -> None:
    """Records equal to one that is kept unread are so as well: nothing else has their content."""
    kept = {outcome.hash: outcome for outcome in outcomes.values() if outcome.kind == "unread"}
    for index, hash_ in enumerate(hashes if kept else ()):
        if hash_ in kept:
            outcomes.setdefault(index, kept[hash_])


def _bury(
    connection: Connection,
    records: Sequence[Record],
    hashes: Sequence[bytes],
    outcomes: dict[int, Outcome],
) -> None:
    """Set the dead ones aside; what was claimed for one of them may be claimed again."""
    dead = {index: outcome for index, outcome in outcomes.items() if outcome.kind == "dead"}
    if dead:
        insert_dead_letters(
            connection, [dead_letter(records[index], outcome) for index, outcome in dead.items()]
        )
        release(connection, [hashes[index] for index in dead])


def _keep_unread(
    connection: Connection, records: Sequence[Record], outcomes: dict[int, Outcome]
) -> None:
    """Set aside what could not be read through no fault of its own.

    Its hash may be claimed again.
    """
    kept = {outcome.hash: index for index, outcome in outcomes.items() if outcome.kind == "unread"}
    if kept:
        insert_unread_events(
            connection, [unread_event(records[index], outcomes[index]) for index in kept.values()]
        )
        release(connection, list(kept))


def unread_outcome(hash_: bytes, error: Exception) -> Outcome:
    """The outcome of an event that a fault of ours kept from being read or stored."""
    return Outcome("unread", hash_, complaint(f"cannot be read: {error!r}")[:500])


def unread_event(record: Record, outcome: Outcome) -> UnreadEvent:
    """The row of an event that is kept unread."""
    return UnreadEvent(
        hash=outcome.hash,
        received_at=micros_of(record.received_at),
        topic=record.topic or "",
        partition_id=-1 if record.partition is None else record.partition,
        record_offset=-1 if record.offset is None else record.offset,
        reason=complaint(outcome.reason or ""),
        body=redact_bytes(record.value),
    )


def dead_letter(record: Record, outcome: Outcome) -> DeadLetter:
    """The row of a record that is no event; the record that is made of the row has the same row."""
    body = redact_bytes(record.value)
    return DeadLetter(
        id=content_hash(record.place.encode() + b"\0" + body),
        received_at=micros_of(record.received_at),
        topic=record.topic or "",
        partition_id=-1 if record.partition is None else record.partition,
        record_offset=-1 if record.offset is None else record.offset,
        reason=complaint(outcome.reason or ""),
        body=body,
    )
