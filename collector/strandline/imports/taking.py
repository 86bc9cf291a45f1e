"""Store the events of another catalog, a batch a transaction.

The store remembers how far an import has come.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from sqlalchemy import Connection, Engine

from strandline.core.openlineage.names import id_of
from strandline.imports.events import Json, record_of
from strandline.imports.marquez import MarquezReader
from strandline.store.ingest.transactions import Batches, nothing_else
from strandline.store.sql.engine import reading
from strandline.store.sql.shared_settings import agree, agreed

AT_ONCE = 500


def take_marquez(engine: Engine, reader: MarquezReader) -> Counter[str]:
    """Import all of a Marquez, and count the events: stored, duplicate or dead.

    If it was interrupted, it continues.
    """
    key = f"import:{id_of('marquez', reader.client.address):016x}"
    with reading(engine).connect() as connection:
        start = json.loads(agreed(connection).get(key, "0"))
    counts: Counter[str] = Counter()
    batches = Batches(engine)
    numbered = reader.events(_position(reader, start))
    while page := list(islice(numbered, AT_ONCE)):
        done = page[-1][0]

        def note(connection: Connection, done: int = done) -> None:
            agree(connection, key, json.dumps(done))

        counts += _take(batches, (event for _, event in page), note)
    counts += take_events(engine, reader.rest())
    reader.client.close()
    return counts


def _position(reader: MarquezReader, start: int) -> int:
    """Return the position to continue at.

    What was taken before is read again only for its names.
    """
    if start:
        for offset, _ in reader.events():
            if offset >= start:
                break
    return start


def take_events(engine: Engine, events: Iterable[Json]) -> Counter[str]:
    """Take events: how many were stored, duplicate or dead."""
    counts: Counter[str] = Counter()
    batches = Batches(engine)
    for page in _pages(events):
        counts += _take(batches, page)
    return counts


def _take(batches: Batches, events: Iterable[Json], also: object = nothing_else) -> Counter[str]:
    now = datetime.now(UTC)
    records = [record_of(event, now) for event in events]
    outcomes = batches.write(records, also)  # type: ignore[arg-type]
    return Counter(outcome.kind for outcome in outcomes)


def _pages(events: Iterable[Json]) -> Iterator[list[Json]]:
    iterator = iter(events)
    while page := list(islice(iterator, AT_ONCE)):
        yield page
