"""Take dead letters again after an update, and unread events at each start.

A newer version may understand what an older one did not; unread events failed by a fault of ours.
"""

from collections import Counter
from collections.abc import Callable

from sqlalchemy import Engine

from strandline.store.ingest.set_aside import pages_of_records, remove_records
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.engine import read_from


def take_letters(engine: Engine) -> Counter[str]:
    """Try every dead letter.

    Those that are events now go once they are stored (taking one twice changes nothing).
    """
    writing = Batches(engine)
    counts: Counter[str] = Counter()
    with read_from(engine) as pages:
        for page in pages_of_records(pages, "dead"):
            outcomes = writing.write([waiting.record for waiting in page])
            counts.update(outcome.kind for outcome in outcomes)
            alive = [
                waiting.id
                for waiting, outcome in zip(page, outcomes, strict=True)
                if outcome.kind != "dead"
            ]
            with engine.begin() as connection:
                remove_records(connection, "dead", alive)
    return counts


def take_unread(engine: Engine, on_bug: Callable[[Exception], None]) -> Counter[str]:
    """Try every event that is kept unread. Those that still cannot be read stay."""
    writing = Batches(engine, on_bug=on_bug)
    counts: Counter[str] = Counter()
    with read_from(engine) as pages:
        for page in pages_of_records(pages, "unread"):
            outcomes = writing.write_or_keep([waiting.record for waiting in page])
            counts.update(outcome.kind for outcome in outcomes)
            hashes = [outcome.hash for outcome in outcomes if outcome.kind != "unread"]
            with engine.begin() as connection:
                remove_records(connection, "unread", hashes)
    return counts
