"""Portions of a consumer: limits in records and bytes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace

from kafka import TopicPartition

from strandline.store.ingest.take import Record
from strandline.transports import partitions as holdings
from strandline.transports.kafka import records_of_a_portion

MIB = 1024 * 1024
FIRST, SECOND = TopicPartition("events", 0), TopicPartition("events", 1)


def records(first_offset: int, *mebibytes: int) -> list[Record]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Record(b"x" * size * MIB, now, "events", 0, offset)
        for offset, size in enumerate(mebibytes, start=first_offset)
    ]


def offsets_of(portions: Sequence[holdings.Batch]) -> list[dict[int, list[int | None]]]:
    return [
        {
            partition.partition: [record.offset for record in found]
            for partition, found in one.items()
        }
        for one in portions
    ]


def test_portion_is_limited_to_32_mib_unless_it_is_one_record() -> None:
    batch = {FIRST: records(0, 20, 12, 1, 40), SECOND: records(7, 30, 2)}

    assert offsets_of(list(holdings.portions(batch))) == [
        {0: [0, 1]},
        {0: [2]},
        {0: [3]},
        {1: [7, 8]},
    ]


def polled(*sizes: int) -> dict[TopicPartition, list[SimpleNamespace]]:
    return {FIRST: [SimpleNamespace(value=b"x" * size) for size in sizes]}


def test_large_records_are_fetched_a_few_at_a_time() -> None:
    assert records_of_a_portion(polled(17_000, 17_000), most=1000) == 1000
    assert records_of_a_portion(polled(MIB, MIB), most=1000) == 31
    assert records_of_a_portion(polled(64 * MIB), most=1000) == 1


def test_empty_records_do_not_count() -> None:
    assert records_of_a_portion({FIRST: [SimpleNamespace(value=None)]}, most=1000) == 1000
    assert records_of_a_portion({}, most=1000) == 1000
