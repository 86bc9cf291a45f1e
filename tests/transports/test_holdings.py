"""Partitions move between consumers; an orderly leave is not mistaken for a death."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DataError

from strandline.errors import FencedError, StrandlineError, TooManyDeadLettersError
from strandline.logs import make_log
from strandline.settings import Settings
from strandline.store.ingest.take import Caches, Outcome, Record, take
from strandline.transports.partitions import Holdings, record_of, tombstones_of
from worlds.builders import counts
from worlds.sample_events import as_bytes, run_event

EVENTS = TopicPartition("events", 0)
RECORD = Record(as_bytes(run_event()), datetime(2026, 11, 20, tzinfo=UTC), "events", 0, 0)
NEVER = threading.Event()


def holdings(engine: Engine, stopped: Callable[[float], bool] = NEVER.wait) -> Holdings:
    return Holdings(engine, Settings(), make_log(level="error"), lambda: None, stopped)


def marks_of_a_write(engine: Engine, owner: Holdings) -> int:
    """Count the records that are suspected of killing their process, while one is stored."""
    marks = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "crashes=CASE" in statement:
            marks.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    outcomes = owner.write({EVENTS: [RECORD]})
    assert [outcome.kind for outcome in outcomes] == ["stored"]
    return len(marks)


def test_owner_that_leaves_in_order_marks_no_record(engine: Engine) -> None:
    first = holdings(engine)

    def leave(_seconds: float) -> bool:
        first.release_all()
        return False

    second = holdings(engine, stopped=leave)
    first.claim({EVENTS: (0, 1)})

    assert second.claim({EVENTS: (0, 1)}) == {EVENTS: 0}
    assert marks_of_a_write(engine, second) == 0


def test_owner_that_never_leaves_is_presumed_dead(engine: Engine) -> None:
    first, second = holdings(engine), holdings(engine)
    first.claim({EVENTS: (0, 1)})

    assert second.claim({EVENTS: (0, 1)}) == {EVENTS: 0}
    assert marks_of_a_write(engine, second) == 1


def test_records_committed_before_a_failing_part_are_counted(engine: Engine) -> None:
    """After a presumed death of the owner, each record is written separately."""
    holdings(engine).claim({EVENTS: (0, 2)})
    strict = Settings(max_dead_in_row=1)
    owner = Holdings(engine, strict, make_log(level="error"), lambda: None, lambda _seconds: True)
    owner.claim({EVENTS: (0, 2)})

    with pytest.raises(TooManyDeadLettersError):
        owner.write({EVENTS: [RECORD, RECORD._replace(value=b"no event", offset=1)]})

    assert [outcome.kind for outcome in owner.committed] == ["stored"]
    assert owner.positions() == {EVENTS: 1}


def numbered(count: int) -> list[Record]:
    return [
        RECORD._replace(value=as_bytes(run_event(str(offset))), offset=offset)
        for offset in range(count)
    ]


def test_missing_table_makes_no_dead_letters(own_engine: Engine) -> None:
    owner = holdings(own_engine)
    owner.claim({EVENTS: (0, 9)})
    with own_engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE runs RENAME COLUMN state TO condition")

    with pytest.raises(StrandlineError, match=r"the store cannot be written: .*state"):
        owner.write({EVENTS: numbered(9)})

    assert counts(own_engine, "set_aside") == {"set_aside": 0}
    assert owner.positions() == {EVENTS: 0}


def test_unstorable_records_count_as_consecutive_dead_letters(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[Outcome]:
        raise DataError("INSERT", {}, ValueError("no record is good enough"))

    monkeypatch.setattr("strandline.store.ingest.transactions.take", fail)
    owner = Holdings(
        engine, Settings(max_dead_in_row=4), make_log(level="critical"), lambda: None, NEVER.wait
    )
    owner.claim({EVENTS: (0, 9)})

    with pytest.raises(TooManyDeadLettersError):
        owner.write({EVENTS: numbered(9)})

    assert counts(engine, "set_aside") == {"set_aside": 3}
    assert owner.positions() == {EVENTS: 3}


def tombstone(offset: int) -> Record:
    return RECORD._replace(value=b"", offset=offset)


def test_tombstones_move_the_offset_and_make_no_dead_letters(engine: Engine) -> None:
    owner = Holdings(
        engine, Settings(max_dead_in_row=2), make_log(level="error"), lambda: None, NEVER.wait
    )
    owner.claim({EVENTS: (0, 9)})

    outcomes = owner.write({EVENTS: [tombstone(0), RECORD._replace(offset=1), tombstone(2)]})
    only_tombstones = owner.write({EVENTS: [tombstone(3), tombstone(4), tombstone(5)]})

    assert [outcome.kind for outcome in outcomes] == ["stored", "tombstone", "tombstone"]
    assert [outcome.kind for outcome in only_tombstones] == ["tombstone"] * 3
    assert owner.positions() == {EVENTS: 6}
    assert counts(engine, "set_aside", "raw_events") == {"set_aside": 0, "raw_events": 1}


@pytest.mark.parametrize("value", [None, b""])
def test_message_without_a_value_is_a_tombstone(value: bytes | None) -> None:
    message = SimpleNamespace(value=value, timestamp=0, topic="events", partition=0, offset=7)

    outcomes = tombstones_of({EVENTS: [record_of(message), RECORD]})

    assert [outcome.kind for outcome in outcomes] == ["tombstone"]


def test_tombstones_of_a_suspected_partition_move_its_offset(engine: Engine) -> None:
    holdings(engine).claim({EVENTS: (0, 2)})
    owner = holdings(engine, stopped=lambda _seconds: True)
    owner.claim({EVENTS: (0, 2)})

    outcomes = owner.write({EVENTS: [tombstone(0), tombstone(1)]})

    assert [outcome.kind for outcome in outcomes] == ["tombstone", "tombstone"]
    assert owner.positions() == {EVENTS: 2}


@pytest.mark.postgres
def test_event_slower_than_a_session_is_stored(
    postgres_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(connection: Connection, records: Sequence[Record], caches: Caches) -> list[Outcome]:
        time.sleep(1.5)
        return take(connection, records, caches)

    monkeypatch.setattr("strandline.store.ingest.transactions.take", slowly)
    brief = Settings(kafka_session_seconds=1)
    owner = Holdings(
        postgres_engine, brief, make_log(level="critical"), lambda: None, lambda _seconds: False
    )
    owner.claim({EVENTS: (0, 1)})

    assert [outcome.kind for outcome in owner.write({EVENTS: [RECORD]})] == ["stored"]


@pytest.mark.parametrize("timestamp", [1_700_000_000_000_000, 2**63 - 1])
def test_future_receipt_time_is_capped_at_a_day(timestamp: int) -> None:
    """The producer sends microseconds, and the topic keeps the producer's time."""
    message = SimpleNamespace(
        value=b"{}", timestamp=timestamp, topic="events", partition=0, offset=7
    )
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    record = record_of(message)

    assert tomorrow <= record.received_at <= datetime.now(UTC) + timedelta(days=1)
    assert record.place == "events[0]@7"


def test_former_partition_owner_stores_nothing_and_raises(engine: Engine) -> None:
    """Both fetched the same records; each record is stored by one owner only."""
    first, second = holdings(engine), holdings(engine)
    first.claim({EVENTS: (0, 9)})
    second.claim({EVENTS: (0, 9)})

    with pytest.raises(FencedError):
        first.write({EVENTS: numbered(9)})
    assert (first.committed, counts(engine, "raw_events")) == ([], {"raw_events": 0})

    assert [outcome.kind for outcome in second.write({EVENTS: numbered(9)})] == ["stored"] * 9
    with pytest.raises(FencedError):
        first.write({EVENTS: numbered(9)})
    assert first.committed == []


def test_only_the_record_that_the_database_rejects_is_set_aside(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(connection: Connection, records: Sequence[Record], caches: Caches) -> list[Outcome]:
        if any(record.offset == 5 for record in records):
            raise DataError("INSERT", {}, ValueError("a value out of range"))
        return take(connection, records, caches)

    monkeypatch.setattr("strandline.store.ingest.transactions.take", refuse)
    owner = Holdings(engine, Settings(), make_log(level="critical"), lambda: None, NEVER.wait)
    owner.claim({EVENTS: (0, 9)})

    assert [outcome.kind for outcome in owner.write({EVENTS: numbered(9)})] == [
        *["stored"] * 5,
        "dead",
        *["stored"] * 3,
    ]
    assert counts(engine, "raw_events", "set_aside") == {"raw_events": 8, "set_aside": 1}
    assert owner.positions() == {EVENTS: 9}
