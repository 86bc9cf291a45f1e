"""Findings of `strandline check` about the positions in the topic.

Records may wait, or may be gone.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from strandline.cli.open_store import missing_file
from strandline.errors import StrandlineError
from strandline.settings import Settings
from strandline.store.schema.received_tables import offsets
from strandline.store.sql.engine import make_engine, reading

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

MANY = 10_000  # records, as the alert has it


def position_findings(admin: "KafkaAdminClient", settings: Settings, where: str) -> Iterator[str]:
    """Yield every fault of the positions.

    There is none if the database does not answer, which is reported elsewhere.
    """
    positions = _taken(settings)
    if positions is None:
        return
    bounds = _bounds(admin, settings.kafka_topic)
    for number, (beginning, end) in sorted(bounds.items()):
        position = positions.get(number, beginning)
        if position < beginning:
            yield (
                f"{where}: {beginning - position} records of partition {number} were deleted "
                "before they were consumed: lengthen the topic's retention"
            )
        if position > end:
            yield (
                f"{where}: partition {number} ends at {end}, and was consumed up to {position}: "
                "it is another topic"
            )
    waiting = sum(
        max(0, end - max(beginning, positions.get(number, 0)))
        for number, (beginning, end) in bounds.items()
    )
    if waiting and _members(admin, settings.kafka_group) == 0:
        yield (
            f"{where}: {waiting} records wait, and no consumer of group {settings.kafka_group} "
            "is running"
        )
    elif waiting and not positions:
        yield (
            f"{where}: {waiting} records wait, and group {settings.kafka_group} has "
            "consumed none of them yet"
        )
    elif waiting > MANY:
        yield f"{where}: {waiting} records wait: start more strandline consume, up to {len(bounds)}"


def _taken(settings: Settings) -> dict[int, int] | None:
    """Return the next offset of each partition, by number."""
    query = select(offsets.c.partition_id, offsets.c.next_offset).where(
        offsets.c.topic == settings.kafka_topic, offsets.c.group_name == settings.kafka_group
    )
    with suppress(StrandlineError, SQLAlchemyError, OSError):
        if missing_file(settings.database_url):
            return None
        engine = make_engine(settings.database_url)
        try:
            with reading(engine).connect() as connection:
                return {row.partition_id: row.next_offset for row in connection.execute(query)}
        finally:
            engine.dispose()
    return None


def _bounds(admin: "KafkaAdminClient", topic: str) -> dict[int, tuple[int, int]]:
    """Return the first and the next offset of each partition."""
    from kafka import TopicPartition
    from kafka.admin import OffsetSpec

    (described,) = admin.describe_topics([topic])
    partitions = [
        TopicPartition(topic, partition["partition_index"]) for partition in described["partitions"]
    ]
    first = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    last = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return {
        partition.partition: (first[partition].offset, last[partition].offset)
        for partition in partitions
    }


def _members(admin: "KafkaAdminClient", group: str) -> int | None:
    """Return the number of consumers in the group.

    None if the broker does not say, for example because there never was such a group.
    """
    from kafka.errors import KafkaError

    try:
        return len(admin.describe_groups([group])[group]["members"])
    except KafkaError:
        return None
