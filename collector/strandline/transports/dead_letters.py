"""Takes dead letters again: after an update, what was no event to an older version may be one.

And events that a fault of ours kept from being read, at each start: the program may be one without
that fault.
"""

from collections import Counter
from collections.abc import Callable

from sqlalchemy import Engine

from strandline.store.ingest.dead_letters import pages_of_letters, remove
from strandline.store.ingest.transactions import Batches
from strandline.store.ingest.unread import pages_of_unread
from strandline.store.ingest.unread import remove as remove_unread
from strandline.store.sql.engine import read_from


def take_letters(engine: Engine) -> Counter[str]:
    """Try every dead letter.

    Those that are events now go once they are stored (taking one twice changes nothing).
    """
    writing = Batches(engine)
    counts: Counter[str] = Counter()
    with read_from(engine) as pages:
        for page in pages_of_letters(pages):
            outcomes = writing.write([letter.record for letter in page])
            counts.update(outcome.kind for outcome in outcomes)
            alive = [
                letter
                for letter, outcome in zip(page, outcomes, strict=True)
                if outcome.kind != "dead"
            ]
            with engine.begin() as connection:
                remove(connection, alive)
    return counts


def take_unread(engine: Engine, on_bug: Callable[[Exception], None]) -> Counter[str]:
    """Try every event that is kept unread. Those that still cannot be read stay."""
    writing = Batches(engine, on_bug=on_bug)
    counts: Counter[str] = Counter()
    with read_from(engine) as pages:
        for page in pages_of_unread(pages):
            outcomes = writing.write_or_keep(page)
            counts.update(outcome.kind for outcome in outcomes)
            with engine.begin() as connection:
                remove_unread(
                    connection, [outcome.hash for outcome in outcomes if outcome.kind != "unread"]
                )
    return counts
