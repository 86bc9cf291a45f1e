"""The partitions that one consumer owns, how far each was taken, and writing their batches.

Everything uncertain is settled by the store: after a broken connection the stored offsets say
whether the batch is in. A partition whose owner seems to have died is taken record by record first,
each with a mark, until it is past the records that may have killed it. A record that did so three
times becomes a dead letter.
"""

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafka import TopicPartition
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from structlog.typing import FilteringBoundLogger

from strandline.errors import FencedError, StrandlineError
from strandline.logs import Bugs, Sparing
from strandline.settings import Settings
from strandline.store.ingest import offsets as positions
from strandline.store.ingest.offsets import Partition
from strandline.store.ingest.set_aside import keep_dead, keep_unread
from strandline.store.ingest.take import Outcome, Record
from strandline.store.ingest.transactions import Batches, nothing_else
from strandline.store.sql.db_errors import is_of_records, is_of_the_schema, is_silence, reason_of
from strandline.store.sql.engine import read_from
from strandline.transports.dead_letter_limit import DeadLetterLimit

CRASHES = 3
PORTION_BYTES = 32 * 1024 * 1024
AWAY_SECONDS = (0.2, 0.5, 1, 2, 5)
RELEASE_SECONDS, LOOK_SECONDS = 3.0, 0.05
DAY_SECONDS = 86_400

Batch = Mapping[TopicPartition, Sequence[Record]]
Bounds = Mapping[TopicPartition, tuple[int, int]]  # the first offset, and the one after the last


@dataclass
class Holding:
    """One partition: the offset that comes next, and up to where its records are suspected."""

    partition: Partition
    next_offset: int
    suspected_until: int = 0


class Holdings:
    """All partitions of one consumer."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        log: FilteringBoundLogger,
        on_retry: Callable[[], None],
        stopped: Callable[[float], bool],
        finish: Callable[[Connection], object] = nothing_else,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._group = settings.kafka_group
        self._batch_records = settings.batch_records
        self._idle_seconds = settings.kafka_session_seconds
        self._log = log
        self._complain = Sparing(
            lambda reason: log.warning("the database does not answer", reason=reason)
        )
        self._stopped = stopped  # waits so many seconds, or until it is true
        self._token = uuid.uuid4().hex
        self._held: dict[TopicPartition, Holding] = {}
        self._bugs = Bugs(log)
        self._batches = Batches(engine, on_retry, finish, after, self._bugs)
        self._limit = self._next_limit = DeadLetterLimit(
            settings.max_dead_in_row, settings.max_dead_share
        )
        self._marked: tuple[Partition, int] | None = None
        self._killer = False
        self._silences = (
            0  # how often the database took the part under way for one of a process that is stopped
        )
        self.committed: list[Outcome] = []

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition."""
        return {partition: holding.next_offset for partition, holding in self._held.items()}

    def claim(self, bounds: Bounds) -> dict[TopicPartition, int]:
        """Become the owner of the partitions, and say from where each has to be read."""
        self._wait_for_release(bounds)
        for partition in sorted(bounds):
            self._held[partition] = self._claimed_in_the_end(partition, *bounds[partition])
        return {partition: self._held[partition].next_offset for partition in bounds}

    def _wait_for_release(self, partitions: Iterable[TopicPartition]) -> None:
        """Give the former owner of the partitions time to finish its batch and leave in good order.

        Otherwise it would seem to have died.

        The group gives partitions on before that: its members only note what is taken from them.
        """
        wanted = [
            Partition(partition.topic, partition.partition, self._group) for partition in partitions
        ]
        until = time.monotonic() + RELEASE_SECONDS
        with suppress(DBAPIError):  # a database that is away is waited for by the claim itself
            while (
                time.monotonic() < until
                and self._is_held(wanted)
                and not self._stopped(LOOK_SECONDS)
            ):
                pass

    def _is_held(self, partitions: Sequence[Partition]) -> bool:
        with read_from(self._engine) as connection:
            return any(
                positions.is_held(connection, partition, self._token) for partition in partitions
            )

    def _claimed_in_the_end(self, partition: TopicPartition, beginning: int, end: int) -> Holding:
        for wait in _waits():
            try:
                return self._claimed(partition, beginning, end)
            except DBAPIError as error:
                self._bear(wait, error)
        raise AssertionError("waits have no end")

    def _claimed(self, partition: TopicPartition, beginning: int, end: int) -> Holding:
        holding = Holding(Partition(partition.topic, partition.partition, self._group), 0)
        with self._transaction() as connection:
            position = positions.claim(connection, holding.partition, self._token, beginning)
            holding.next_offset = position.next_offset
            if (
                position.next_offset > end
            ):  # a new topic of the old name: its records are other ones
                self._log.error(
                    "the topic is shorter than what was taken from it: starting at its beginning"
                )
                positions.advance(
                    connection, holding.partition, self._token, position.next_offset, beginning
                )
                holding.next_offset = beginning
        if position.abandoned:
            holding.suspected_until = holding.next_offset + self._batch_records
        return holding

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction that ends, and frees its locks, where its process is stopped.

        Others wait no longer for them than for its partitions.
        """
        with self._engine.begin() as connection:
            positions.limit_idleness(connection, self._idle_seconds)
            yield connection

    def _bear(self, seconds: float, error: DBAPIError) -> None:
        """Wait for a store that cannot be written just now, unless stopped.

        If stopped, leave everything as it is stored.

        What waiting does not mend is raised: more programs than one write here, and one of them may
        be too old.
        """
        if is_of_the_schema(error):
            raise StrandlineError(f"the store cannot be written: {reason_of(error)}") from error
        self._silences += is_silence(error)
        self._complain(reason_of(error))
        if self._stopped(seconds):
            raise StrandlineError(
                "stopped while the database did not answer: its records come again"
            ) from error

    def release(self, revoked: Collection[TopicPartition]) -> None:
        """Leave partitions in good order, so that the next owner suspects nothing."""
        left = [holding for partition in revoked if (holding := self._held.pop(partition, None))]
        if not left:
            return
        try:
            with self._transaction() as connection:
                for holding in left:
                    positions.release(connection, holding.partition, self._token)
        except DBAPIError as error:
            self._log.warning("partitions left without notice", reason=str(error.orig))

    def release_all(self) -> None:
        """Leave every partition in good order."""
        self.release(set(self._held))

    def forget(self) -> None:
        """Own nothing and believe nothing: somebody else was here."""
        self._held.clear()
        self._batches.forget()

    def batch_of(self, records: Mapping[TopicPartition, Sequence[Any]]) -> Batch:
        """Return the records that come next in our partitions.

        All others come again, or came already.
        """
        batch: dict[TopicPartition, Sequence[Record]] = {}
        for partition, polled in sorted(records.items()):
            holding = self._held.get(partition)
            if holding is not None:
                wanted = [
                    record_of(message)
                    for message in polled
                    if message.offset >= holding.next_offset
                ]
                batch |= {partition: wanted} if wanted else {}
        return batch

    def write(self, batch: Batch) -> list[Outcome]:
        """Store the batch and move the offsets, in one transaction.

        Raises FencedError if a partition is not ours.

        A batch of several parts has a transaction for each: `committed` has the outcomes of those
        that went through.
        """
        outcomes: list[Outcome] = []
        self.committed = []
        for part in self._parts(batch):
            outcomes += self._write_settled(part)
        return outcomes

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """Return the batch as one part, and suspected records as parts of their own.

        A suspected record is marked while it is taken.
        """
        trusted: dict[TopicPartition, Sequence[Record]] = {}
        for partition, records in batch.items():
            until = self._held[partition].suspected_until
            for record in records:
                if _offset(record) < until:
                    yield {partition: [record]}
            if rest := [record for record in records if _offset(record) >= until]:
                trusted[partition] = rest
        yield from portions(trusted)

    def _write_settled(self, part: Batch) -> list[Outcome]:
        """Write a part until it is certainly committed, and return its outcomes.

        It outlasts any loss of the database.
        """
        for wait in _waits():
            try:
                if self._killed_before(part):
                    return self._bury(part, f"its processing ended the process {CRASHES} times")
                return self._write_once(part)
            except (StrandlineError, MemoryError):
                raise
            except DBAPIError as error:
                if is_of_records(error):
                    return self._isolate(part, error)
                self._bear(wait, error)
            except Exception as error:  # noqa: BLE001 - whatever a record brings about, the next ones have to be taken
                return self._isolate(part, error)
            uncertain = [*self._batches.uncertain, *tombstones_of(part)]
            if (outcomes := self._settle(part, uncertain)) is not None:
                return outcomes
        raise AssertionError("waits have no end")

    def _write_once(self, part: Batch) -> list[Outcome]:
        events = [record for records in part.values() for record in records if record.value]
        outcomes = self._batches.write(
            events, also=lambda connection: self._advance(connection, part), accept=self._accept
        )
        outcomes = [*outcomes, *tombstones_of(part)]
        self._moved(part, outcomes)
        return outcomes

    def _accept(self, outcomes: Sequence[Outcome]) -> None:
        self._next_limit = self._limit.after([outcome.kind for outcome in outcomes])

    def _advance(self, connection: Connection, part: Batch) -> None:
        # Longer only where it was not stopped after all: a single event can take long to read.
        positions.limit_idleness(connection, min(self._idle_seconds << self._silences, DAY_SECONDS))
        for partition, records in part.items():
            holding = self._held[partition]
            after = _offset(records[-1]) + 1
            positions.advance(
                connection, holding.partition, self._token, holding.next_offset, after
            )
            if holding.suspected_until:
                positions.clear_mark(connection, holding.partition)

    def _moved(self, part: Batch, outcomes: Sequence[Outcome]) -> None:
        self._limit = self._next_limit
        self._silences = 0
        self.committed += outcomes
        for partition, records in part.items():
            holding = self._held[partition]
            holding.next_offset = _offset(records[-1]) + 1
            if holding.next_offset >= holding.suspected_until:
                holding.suspected_until = 0

    def _settle(self, part: Batch, uncertain: list[Outcome]) -> list[Outcome] | None:
        """Return these outcomes if the store has the part after all, else None.

        The stored offsets decide.
        """
        try:
            with self._engine.connect() as connection:
                places = {
                    partition: positions.position_of(
                        connection, self._held[partition].partition, self._token
                    )
                    for partition in part
                }
        except DBAPIError:
            return None
        if all(places[partition] == self._held[partition].next_offset for partition in part):
            return None
        if all(
            places[partition] == _offset(records[-1]) + 1 for partition, records in part.items()
        ):
            self._moved(part, uncertain)
            return uncertain
        lost = next(
            partition
            for partition in part
            if places[partition] != self._held[partition].next_offset
        )
        raise FencedError(lost.topic, lost.partition)

    def _isolate(self, part: Batch, error: Exception) -> list[Outcome]:
        """Split a part that failed for a reason of its own, down to the one record to blame."""
        if self._stopped(0):
            raise StrandlineError(
                "stopped while searching for records that cannot be stored; they are consumed again"
            ) from error
        (partition, records), *others = part.items()
        if not others and len(records) == 1:
            return self._set_aside(part, error)
        if others:
            halves: list[Batch] = [{partition: records}, dict(others)]
        else:
            middle = len(records) // 2
            halves = [{partition: records[:middle]}, {partition: records[middle:]}]
        return [outcome for half in halves for outcome in self._write_settled(half)]

    def _set_aside(self, part: Batch, error: Exception) -> list[Outcome]:
        """Make the one record of a part a dead letter if the database rejects it.

        A fault of ours makes no dead letter.
        """
        if not isinstance(error, DBAPIError):
            self._bugs(error)
            return self._put(
                part, "unread", lambda connection, record: keep_unread(connection, record, error)
            )
        reason = reason_of(
            error
        )  # a trace of the database's shows everything that was to be stored
        self._log.error("a record cannot be stored", offset=_first(part).offset, reason=reason)
        return self._bury(part, f"it cannot be stored: {type(error).__name__}: {reason}")

    def _killed_before(self, part: Batch) -> bool:
        (partition, records), *others = part.items()
        holding = self._held[partition]
        if others or _offset(records[0]) >= holding.suspected_until:
            return False
        mark = (holding.partition, _offset(records[0]))
        if (
            self._marked != mark
        ):  # once a process: trying again after a broken connection is no crash
            with self._transaction() as connection:
                self._killer = positions.mark_attempt(connection, *mark) >= CRASHES
            self._marked = mark
        return self._killer

    def _bury(self, part: Batch, reason: str) -> list[Outcome]:
        """Make the one record of a part a dead letter.

        Raises TooManyDeadLettersError if that is one too many.
        """
        return self._put(
            part, "dead", lambda connection, record: keep_dead(connection, record, reason)
        )

    def _put(
        self, part: Batch, kind: str, aside: Callable[[Connection, Record], Outcome]
    ) -> list[Outcome]:
        self._next_limit = self._limit.after([kind])
        for wait in _waits():
            uncertain: list[Outcome] = []
            try:
                with self._transaction() as connection:
                    self._advance(connection, part)
                    uncertain = [aside(connection, _first(part))]
            except DBAPIError as error:
                if is_of_records(error):
                    raise
                self._bear(wait, error)
            else:
                self._moved(part, uncertain)
                return uncertain
            if uncertain and (outcomes := self._settle(part, uncertain)) is not None:
                return outcomes
        raise AssertionError("waits have no end")


def portions(batch: Batch) -> Iterator[Batch]:
    """Split the batch into parts small enough to be read and stored in little memory.

    A larger record is a part of its own.
    """
    part: dict[TopicPartition, list[Record]] = {}
    size = 0
    for partition, records in batch.items():
        for record in records:
            if part and size + len(record.value) > PORTION_BYTES:
                yield part
                part, size = {}, 0
            part.setdefault(partition, []).append(record)
            size += len(record.value)
    if part:
        yield part


def tombstones_of(part: Batch) -> list[Outcome]:
    """Return an outcome for each record without a value.

    A compacted topic has them where keys were deleted. They are no events, and no faults either.
    """
    return [
        Outcome("tombstone", b"")
        for records in part.values()
        for record in records
        if not record.value
    ]


def record_of(message: Any) -> Record:
    """Return a Kafka message as a record; the value of a tombstone is empty.

    The timestamp may be any number where producers set it. A time more than a day ahead counts as
    a day ahead.
    """
    now = time.time()
    millis = message.timestamp if message.timestamp and message.timestamp > 0 else now * 1000
    received_at = datetime.fromtimestamp(min(millis / 1000, now + DAY_SECONDS), UTC)
    return Record(
        message.value or b"", received_at, message.topic, message.partition, message.offset
    )


def _first(part: Batch) -> Record:
    return next(iter(part.values()))[0]


def _offset(record: Record) -> int:
    assert record.offset is not None, "every record of a topic has an offset"
    return record.offset


def _waits() -> Iterator[float]:
    yield from AWAY_SECONDS
    while True:
        yield AWAY_SECONDS[-1]
