"""A server's model of consistent versions, kept in step with the log that all servers share.

Whoever looks first turns the news of ingest into facts, under the log's lock; everybody folds the same facts in the same
order. A decision is made on the newest model under that lock, so two servers never decide differently.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine

from strandline.core.barriers import Fact, RunStarted
from strandline.core.folding import apply
from strandline.core.model import Model
from strandline.store.connect import reading
from strandline.store.registered import tables_found
from strandline.store.roots import natural_cuts
from strandline.store.startup import placements
from strandline.store.version_facts import facts_of
from strandline.store.version_log import append, facts_after, head, lock_head, manage, take_news

Answer = TypeVar("Answer")
Decide = Callable[[Connection, Model, float], tuple[Sequence[Fact], Answer]]
MICRO = 1_000_000


class Follower:
    """The model, and how far in the log it is. Safe for many threads; nothing is read before the first question."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading = reading(engine)
        self._lock = threading.RLock()
        self._model = Model()
        self._seq = 0

    @contextmanager
    def model(self) -> Iterator[Model]:
        """The model with everything that was committed before now; nobody changes it meanwhile."""
        with self._lock:
            self.catch_up()
            yield self._model

    def catch_up(self) -> None:
        """Fold what others wrote, then turn news into facts until there are none."""
        with self._lock:
            while self._see_news():
                taken = self._decide(_take)
                self._decide(placements)
                if not taken:
                    return

    def _see_news(self) -> bool:
        """Fold what others wrote; whether there is news."""
        with self._reading.connect() as connection:
            seq, news = head(connection)
            if seq > self._seq:
                self._fold(connection)
            return news

    def decide(self, decide: Decide[Answer]) -> Answer:
        """Make a decision on the newest model: its facts are written and folded, its answer is returned.

        Facts and whatever else `decide` writes are one transaction; if it raises, nothing has changed.
        """
        with self._lock:
            self.catch_up()
            return self._decide(decide)

    def _decide(self, decide: Decide[Answer]) -> Answer:
        now = time.time()
        with self._engine.begin() as connection:
            seq = lock_head(connection)
            self._fold(connection)
            facts, answer = decide(connection, self._model, now)
            append(connection, seq, facts, round(now * MICRO))
        if facts:
            with self._reading.connect() as connection:
                self._fold(connection)
        return answer

    def _fold(self, connection: Connection) -> None:
        for seq, fact in facts_after(connection, self._seq):
            apply(self._model, fact)
            self._seq = seq


def _take(connection: Connection, model: Model, now: float) -> tuple[Sequence[Fact], int]:
    """The facts that the oldest news lead to, without those that the model knows; with how much was looked at."""
    news = take_news(connection)
    found = [fact for fact in facts_of(connection, news) if model.wants(fact)]
    manage(connection, {fact.job for fact in found if isinstance(fact, RunStarted) and fact.job not in model.places})
    cuts = natural_cuts(connection, model, news, now)
    return [*tables_found(connection, model, found), *found, *cuts], len(news)
