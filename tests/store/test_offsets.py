"""The fence of the consumer: an offset moves only for its owner, and only from where it stands."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine

from strandline.errors import FencedError
from strandline.store.ingest.offsets import (
    Partition,
    advance,
    claim,
    clear_mark,
    is_held,
    mark_attempt,
    position_of,
    release,
)

EVENTS = Partition("events", 0, "strandline")


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    """A connection where `me` has the partition from offset 10."""
    with engine.begin() as connection:
        assert claim(connection, EVENTS, "me", 10).next_offset == 10
        yield connection


def test_offset_moves_for_its_owner_from_its_position(connection: Connection) -> None:
    advance(connection, EVENTS, "me", 10, 15)
    advance(connection, EVENTS, "me", 15, 16)

    assert position_of(connection, EVENTS, "me") == 16


@pytest.mark.parametrize("expected", [9, 11, 15])
def test_offset_does_not_move_from_another_position(connection: Connection, expected: int) -> None:
    with pytest.raises(FencedError, match=r"another consumer owns events\[0\] now"):
        advance(connection, EVENTS, "me", expected, 20)

    assert position_of(connection, EVENTS, "me") == 10


def test_offset_does_not_move_for_a_former_owner(connection: Connection) -> None:
    """The next owner is at the same offset, so only the owner distinguishes the two."""
    taken_over = claim(connection, EVENTS, "other", 0)

    assert (taken_over.next_offset, taken_over.abandoned) == (10, True)
    with pytest.raises(FencedError):
        advance(connection, EVENTS, "me", 10, 15)
    assert position_of(connection, EVENTS, "other") == 10
    assert position_of(connection, EVENTS, "me") is None


@pytest.mark.parametrize(
    "other",
    [
        Partition("events", 1, "strandline"),
        Partition("events", 0, "b"),
        Partition("e", 0, "strandline"),
    ],
)
def test_offset_belongs_to_one_partition_topic_and_group(
    connection: Connection, other: Partition
) -> None:
    claim(connection, other, "me", 10)
    advance(connection, EVENTS, "me", 10, 15)

    assert position_of(connection, other, "me") == 10
    with pytest.raises(FencedError):
        advance(connection, Partition("events", 2, "strandline"), "me", 10, 15)


def test_former_owner_cannot_release_the_partition(connection: Connection) -> None:
    claim(connection, EVENTS, "other", 0)
    release(connection, EVENTS, "me")

    assert is_held(connection, EVENTS, "me")
    assert not claim(connection, EVENTS, "other", 0).abandoned


def test_attempts_are_counted_for_one_suspected_record(connection: Connection) -> None:
    claim(connection, EVENTS, "me", 0)

    attempts = [mark_attempt(connection, EVENTS, offset) for offset in (17, 17, 17, 18)]
    clear_mark(connection, EVENTS)

    assert attempts == [0, 1, 2, 0]
    assert mark_attempt(connection, EVENTS, 18) == 0
