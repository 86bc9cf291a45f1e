"""Folding the stored events once more, into an empty store.

Every table comes out as it is, or one of the two is wrong.

An event keeps its hash and its moment of receipt, so that even what depends on them is the same.
What no event tells of goes along: the patterns that are cut out of paths, families of jobs that
are joined, and names that were joined by hand.
"""

from collections.abc import Iterator
from itertools import islice

from sqlalchemy import Connection, Engine

from strandline.core.openlineage.names import Naming
from strandline.core.openlineage.times import moment_of
from strandline.store.ingest.name_patterns import aliases_by_hand, apply_alias, apply_patterns
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.sql.shared_settings import agree_on_families, agreed_naming, strip_patterns

BATCH = 500


def replay(source: Connection, target: Engine, naming: Naming | None = None) -> int:
    """Take all events of one store into another; gives how many."""
    patterns = strip_patterns(source)
    with target.begin() as connection:
        apply_patterns(connection, patterns)
        agree_on_families(connection, agreed_naming(source).families)
    caches = Caches(naming)
    count = 0
    for records in _batches(source):
        with target.begin() as connection:
            take(connection, records, caches)
        caches.commit()
        count += len(records)
    with target.begin() as connection:
        for pair, other in aliases_by_hand(source):
            apply_alias(connection, pair, other)
        apply_patterns(
            connection, patterns
        )  # a name that only somebody's hand has joined is a path like any other
    return count


def _batches(source: Connection) -> Iterator[list[Record]]:
    records = (
        Record(event.body, moment_of(event.received_at), hash=event.hash)
        for event in events_of(source)
    )
    while batch := list(islice(records, BATCH)):
        yield batch
