"""The store as one key sees it: what the API and the commands read their answers from."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Engine

from strandline.core.access.granted import EVERYTHING, Access
from strandline.core.openlineage.times import micros_of
from strandline.questions.parameters import Query
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.lineage.run_state import View
from strandline.store.questions.lineage_answers import ANSWERS
from strandline.store.sql.engine import read_from

Answer = dict[str, Any]


@dataclass(frozen=True)
class Reader:
    """The store as one key sees it at one moment.

    `engine` shows what `access` sees and nothing else, whatever is asked of it. `whole_engine`
    shows everything: it is for what an answer is computed from and does not name, as the leases
    that keep a snapshot.
    """

    access: Access
    engine: Engine
    whole_engine: Engine
    follower: Follower
    now: datetime
    settings: Settings

    @classmethod
    def of_everything(cls, engine: Engine, settings: Settings) -> "Reader":
        """Return a reader of the whole store, now."""
        return cls(EVERYTHING, engine, engine, Follower(engine), datetime.now(UTC), settings)

    @cached_property
    def micros(self) -> int:
        """The moment of the question in microseconds."""
        return micros_of(self.now)

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """Connect to read only: on no database does that keep a writer waiting."""
        with read_from(self.engine) as connection:
            yield connection

    def view(self, query: Query) -> View:
        """Return which edges are asked for, and of when."""
        moment = getattr(query, "as_of", None) or getattr(query, "until", None)
        state = getattr(query, "state", None)
        return View(
            micros_of(min(moment or self.now, self.now)),
            live=state == "running",
            past=moment is not None and moment < self.now,
            newest=state == "latest",
        )

    def answer(self, path: str, query: Query, **changed: Any) -> Answer:
        """Answer a question of store.questions."""
        with self.connected() as connection:
            return ANSWERS[path](connection, query.asked() | changed, self.view(query))
