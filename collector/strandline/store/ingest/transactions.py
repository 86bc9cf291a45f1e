"""A batch of records in one transaction of its own, done again where the database asks for that.

Caches are filled after the commit only: a rollback must leave no cache that believes its rows.
"""

import random
import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from strandline.errors import StrandlineError
from strandline.store.ingest.set_aside import keep_unread
from strandline.store.ingest.take import Outcome, Record, take
from strandline.store.ingest.writer_state import Caches
from strandline.store.lineage.graph_log import prune

ATTEMPTS = 8
PRUNED_SECONDS = 60  # how often a writer deletes old news of the graph
RETRY_STATES = ("40001", "40P01", "55P03")  # serialization failure, deadlock, lock not available


def nothing_else(connection: Connection) -> None:
    """Do nothing more in the transaction."""


def accept_all(outcomes: Sequence[Outcome]) -> None:
    """Find nothing wrong with any outcome."""


class Batches:
    """Writes batches of one source, one after the other; not for use by two threads.

    `finish` is the last thing that each transaction does, `after` what is done once it is
    committed. `on_bug` gets each fault of ours that kept an event from being read.
    """

    def __init__(
        self,
        engine: Engine,
        on_retry: Callable[[], None] = lambda: None,
        finish: Callable[[Connection], object] = nothing_else,
        after: Callable[[], None] = lambda: None,
        on_bug: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._finish = finish
        self._after = after
        self._caches = Caches()
        self._on_retry = on_retry
        self._on_bug = on_bug
        self._pruned_at = time.monotonic()
        self.uncertain: list[
            Outcome
        ] = []  # of the last batch, for who finds out later that its commit got through

    def write(
        self,
        records: Sequence[Record],
        also: Callable[[Connection], None] = nothing_else,
        accept: Callable[[Sequence[Outcome]], None] = accept_all,
    ) -> list[Outcome]:
        """Store the records and what `also` does, all or nothing; returns after the commit.

        `accept` sees the outcomes before the commit, and raises where there must be none.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once(records, also, accept)
            except DBAPIError as error:
                if attempt == ATTEMPTS or not may_retry(error):
                    raise
                self._on_retry()
                time.sleep(random.uniform(0, 0.01 * 2**attempt))
        raise AssertionError("the last attempt returns or raises")

    def write_or_keep(self, records: Sequence[Record]) -> list[Outcome]:
        """Store the records, each of those that a fault of ours spoils set aside unread.

        In several transactions then.
        """
        try:
            return self.write(records)
        except (StrandlineError, DBAPIError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a record brings about, no sender is to blame for it
            if len(records) > 1:
                middle = len(records) // 2
                return [
                    *self.write_or_keep(records[:middle]),
                    *self.write_or_keep(records[middle:]),
                ]
            with self._engine.begin() as connection:
                outcome = keep_unread(connection, records[0], error)
            self._on_bug(error)
            return [outcome]

    def forget(self) -> None:
        """Drop the caches: somebody else has written what they are about."""
        self._caches = Caches()

    def _once(
        self,
        records: Sequence[Record],
        also: Callable[[Connection], None],
        accept: Callable[[Sequence[Outcome]], None],
    ) -> list[Outcome]:
        try:
            with self._engine.begin() as connection:
                also(connection)
                self.uncertain = outcomes = take(connection, records, self._caches)
                accept(outcomes)
                self._finish(connection)
        except BaseException:
            self._caches.discard()
            raise
        self._caches.commit()
        if self._caches.notes_graph and time.monotonic() > self._pruned_at + PRUNED_SECONDS:
            self._prune_graph_news()
        self._tell_bugs()
        self._after()
        return outcomes

    def _prune_graph_news(self) -> None:
        """Delete old news of the graph, in a transaction of its own.

        Where that fails, a later batch does it.
        """
        self._pruned_at = time.monotonic()
        try:
            with self._engine.begin() as connection:
                prune(connection)
        except DBAPIError:
            return

    def _tell_bugs(self) -> None:
        bugs, self._caches.bugs = self._caches.bugs, []
        for bug in bugs:
            self._on_bug(bug)


def may_retry(error: DBAPIError) -> bool:
    """Return whether the database has rolled back and asks to try again.

    Nothing of the transaction can be there.
    """
    state = getattr(error.orig, "sqlstate", None)
    return state in RETRY_STATES or "database is locked" in str(error.orig)
