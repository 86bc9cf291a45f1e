"""A topic as a list of records a partition, and a group that gives partitions to whoever it believes to live."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from kafka import TopicPartition

from strandline.core.openlineage.facets import content_hash

TOPIC = "events"


@dataclass(frozen=True)
class Message:
    """A record as kafka-python gives it."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    timestamp: int


@dataclass
class Topic:
    """Records by partition, and the hash of what each says."""

    partitions: list[list[Message]]

    def __post_init__(self) -> None:
        """Begin empty."""
        self.hashes: list[list[bytes]] = [[] for _ in self.partitions]

    def append(self, number: int, value: bytes | None, timestamp: int) -> Message:
        """Add a record at the end of a partition."""
        log = self.partitions[number]
        log.append(Message(TOPIC, number, len(log), value, timestamp))
        self.hashes[number].append(content_hash(value or b""))
        return log[-1]

    def is_tombstone(self, number: int, offset: int) -> bool:
        """Return True if the record has no value."""
        return not self.partitions[number][offset].value

    def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """First offset and the one after the last."""
        return {one: (0, len(self.partitions[one.partition])) for one in partitions}

    def poll(self, one: TopicPartition, offset: int, most: int) -> list[Message]:
        """The next records of a partition."""
        return self.partitions[one.partition][offset : offset + most]


@dataclass
class Group:
    """The owners of partitions, as the group sees them.

    A member that is stopped does not know what it has lost.
    """

    partitions: list[TopicPartition]
    members: list[int] = field(default_factory=list)
    owners: dict[TopicPartition, int] = field(default_factory=dict)

    def share(self, chance: Random) -> None:
        """Give all partitions out anew."""
        for one in self.partitions:
            self.owners.pop(one, None)
            if self.members:
                self.owners[one] = chance.choice(self.members)

    def of(self, member: int) -> set[TopicPartition]:
        """Return the partitions that the group believes a member to have."""
        return {one for one, owner in self.owners.items() if owner == member}
