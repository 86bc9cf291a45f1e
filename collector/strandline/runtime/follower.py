"""A server's model of consistent versions, kept in step with the log that all servers share.

Ingest turns its news into facts at the end of its own transaction, under the log's lock; everybody
folds the same facts in the same order. A decision is made on the newest model under that lock, so
two servers never decide differently. A question only reads, so it waits for nobody who writes.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from strandline.core.access.granted import Access
from strandline.core.versions.apply import apply
from strandline.core.versions.facts import (
    Fact,
    NameReused,
    RootsCut,
    RunStarted,
    Table,
    TableRenamed,
)
from strandline.core.versions.model import Model
from strandline.core.versions.renames import Renames
from strandline.core.versions.root_barriers import cut_each_commit, single_roots
from strandline.store.sql.engine import read_from
from strandline.store.sql.narrowed import narrowed
from strandline.store.versions.fact_log import (
    ROOT,
    VersionNews,
    append,
    facts_after,
    has_news,
    head,
    lock_head,
    log_of,
    manage,
    name_facts,
    take_news,
)
from strandline.store.versions.facts_from_rows import facts_of
from strandline.store.versions.renamed_tables import (
    follow_base_tables,
    names_in_news,
)
from strandline.store.versions.snapshot_history import lines_since
from strandline.store.versions.startup_rows import placements
from strandline.store.versions.unnamed_tables import places_waiting, tables_found

Answer = TypeVar("Answer")
Decide = Callable[[Connection, Model, float], tuple[Sequence[Fact], Answer]]
MICRO = 1_000_000
PAGE = 200


class Follower:
    """The model, and how far in the log it is.

    Safe for many threads; nothing is read before the first question.

    Whoever holds the database's lock or a connection may wait for `_lock`. Nobody who holds `_lock`
    waits for the database's lock or asks the pool for a connection: all of them may be lent to
    threads that wait for `_lock`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._folding = threading.Lock()
        self._model = Model()
        self._renames = Renames()
        self._seq = 0
        self._log = ""

    @property
    def seq(self) -> int:
        """The number of the last fact that was folded."""
        return self._seq

    @contextmanager
    def model(self) -> Iterator[Model]:
        """Yield the model with everything that was committed before now.

        Nobody changes it, or asks for a connection, meanwhile.
        """
        self.catch_up()
        with self._lock:
            yield self._model

    @contextmanager
    def question(self, access: Access) -> Iterator[tuple[Connection, Model]]:
        """Yield the model, and a connection that sees what `access` does.

        Taken first, for whoever holds the model asks for none.
        """
        self.catch_up()
        with read_from(narrowed(self._engine, access)) as connection, self._lock:
            yield connection, self._model

    @contextmanager
    def as_written(self) -> Iterator[Model]:
        """Yield the model with the written facts alone, and change nothing."""
        self._see_news()
        with self._lock:
            yield self._model

    def catch_up(self) -> None:
        """Fold what was written.

        Turn news into facts, where whoever stored them did not, and place new jobs.
        """
        while self._see_news():
            with self._engine.begin() as connection:
                self._take(connection)
        with self._lock:
            unplaced = bool(self._model.unplaced())
        if unplaced:
            self._decide(placements)

    def _see_news(self) -> bool:
        """Fold what was written; whether there is news."""
        with read_from(self._engine) as connection:
            seq, position, log = head(connection)
            if seq > self._seq or log != self._log:
                with self._folding:  # who comes second finds it done
                    if seq > self._seq or log != self._log:
                        self._fold_committed(connection, seq)
            return position

    def follow(self) -> None:
        """Fold what was just committed, so that no question has to.

        If that fails the next question does.
        """
        with suppress(DBAPIError):
            self._see_news()

    def take_news(self, connection: Connection) -> bool:
        """Turn news into facts at the end of an ingest transaction, so that no question has to.

        Whether there was any.

        If that fails the news stay for the next one who asks: what is wrong with versions does not
        stop ingest.
        """
        if not has_news(connection):
            return False
        try:
            with connection.begin_nested():
                self._take(connection)
        except DBAPIError:
            raise
        except Exception:  # noqa: BLE001 - whoever asks for a version gets this error
            return True
        return True

    def decide(self, decide: Decide[Answer]) -> Answer:
        """Make a decision on the newest model.

        Its facts are written and folded, its answer is returned.

        Facts and whatever else `decide` writes are one transaction; if it raises, nothing has
        changed.
        """
        self.catch_up()
        return self._decide(decide)

    def _decide(self, decide: Decide[Answer]) -> Answer:
        with self._engine.begin() as connection:
            seq, now = lock_head(connection), time.time()
            with self._lock:
                self._fold(connection)
                facts, answer = decide(connection, self._model, now)
            append(connection, seq, facts, round(now * MICRO))
        if facts:
            with read_from(self._engine) as connection, self._lock:
                self._fold(connection)
        return answer

    def _take(self, connection: Connection) -> None:
        """Write the facts that news lead to, without those that the model knows.

        Looks into the model but briefly.
        """
        seq, now = lock_head(connection), time.time()
        with self._lock:
            self._fold(connection)
        moved: dict[Table, Table] = {}
        while updates := take_news(connection):
            facts = facts_of(connection, updates)
            names = names_in_news(connection, updates)
            moved |= {
                fact.before: fact.table
                for fact in names
                if isinstance(fact, TableRenamed) and fact.certain
            }
            cuts = self._cuts(connection, updates, moved, now)
            with self._lock:
                wanted = [fact for fact in facts if self._model.wants(self._renames.renamed(fact))]
                begun = {
                    fact.job
                    for fact in wanted
                    if isinstance(fact, RunStarted) and fact.job not in self._model.places
                }
                waiting = places_waiting(self._model)
            names = [fact for fact in names if not self._renames.has(fact)]
            manage(connection, begun)
            follow_base_tables(connection, names)
            seq = append(
                connection,
                seq,
                [*names, *tables_found(connection, waiting, wanted), *wanted, *cuts],
                round(now * MICRO),
            )

    def _cuts(
        self,
        connection: Connection,
        updates: Sequence[VersionNews],
        moved: Mapping[Table, Table],
        now: float,
    ) -> list[RootsCut]:
        """Return the barriers that commits of single base tables are.

        moved: the tables that were just renamed, by the names that the model still knows.
        """
        if not any(update.kind == ROOT for update in updates):
            return []
        with self._lock:
            known = single_roots(self._model)
        roots = [replace(root, table=moved.get(root.table, root.table)) for root in known]
        return [
            cut
            for root, line in lines_since(connection, updates, roots)
            for cut in cut_each_commit(root, line, now)
        ]

    def _fold_committed(self, connection: Connection, head_seq: int) -> None:
        """Fold what is new.

        The last facts may have been taken out: then the log ends before its head.
        """
        self._fold(connection)
        with self._lock:
            self._seq = max(self._seq, head_seq)

    def _fold(self, connection: Connection) -> None:
        """Fold facts a page at a time; they are read while others may still ask the model.

        Begin anew where facts were taken out of the log (what was forgotten is in the model), or
        where one renames a table of which the model knows something.
        """
        log = log_of(connection)
        if log != self._log:
            self._fold_anew(connection, log)
        facts = facts_after(connection, self._seq)
        while page := list(islice(facts, PAGE)):
            with self._lock:  # another thread may have folded them meanwhile
                goes_on = self._apply([(seq, fact) for seq, fact in page if seq > self._seq])
            if not goes_on:
                self._fold_anew(connection, log)
                return

    def _fold_anew(self, connection: Connection, log: str) -> None:
        """Fold the whole log into another model, and take that one when it is whole."""
        renames, model, last = Renames(name_facts(connection)), Model(), 0
        for seq, fact in facts_after(connection, 0):
            apply(model, renames.renamed(fact, seq))
            last = seq
        with self._lock:
            if log != self._log or last > self._seq:
                self._renames, self._model, self._seq, self._log = renames, model, last, log

    def _apply(self, facts: Sequence[tuple[int, Fact]]) -> bool:
        """Apply facts of the log to the model, under the names that their tables have now.

        False, and nothing done, if one of them renames a table of which the model knows something.
        """
        names = [(seq, fact) for seq, fact in facts if isinstance(fact, TableRenamed | NameReused)]
        new = [(seq, fact) for seq, fact in names if not self._renames.has(fact)]
        moved = [self._renames.moves(fact) for _, fact in new]
        if any(table is not None and self._model.has(table) for table in moved):
            return False
        for number, name in new:
            self._renames.add(number, name)
        for seq, fact in facts:
            apply(self._model, self._renames.renamed(fact, seq))
            self._seq = seq
        return True
