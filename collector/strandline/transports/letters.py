"""Takes dead letters again: after an update, what was no event to an older version may be one."""

from collections import Counter

from sqlalchemy import Engine

from strandline.store.batches import Batches
from strandline.store.connect import reading
from strandline.store.dead_letters import pages_of_letters, remove


def take_letters(engine: Engine) -> Counter[str]:
    """Try every dead letter. Those that are events now go once they are stored (taking one twice changes nothing)."""
    writing = Batches(engine)
    counts: Counter[str] = Counter()
    with reading(engine).connect() as pages:
        for page in pages_of_letters(pages):
            outcomes = writing.write([letter.record for letter in page])
            counts.update(outcome.kind for outcome in outcomes)
            alive = [letter for letter, outcome in zip(page, outcomes, strict=True) if outcome.kind != "dead"]
            with engine.begin() as connection:
                remove(connection, alive)
    return counts
