"""Uncommitted facts are in no model: a transaction may roll back, or another server win."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection, Engine, event

from fixtures.versions_server.events import LAKE, committed, started
from strandline.core.versions.facts import Fact, GroupDeclared
from strandline.core.versions.model import Model
from strandline.runtime.follower import Follower
from strandline.store.ingest.take import Caches, Record, take
from worlds.builders import encode

A, JOB = (LAKE, "db.a"), ("default", "to_a")
TOLD = (
    started("to_a", 0, [], ["db.a"], group="d"),
    committed("to_a", 10, 1, {}, {"db.a": "a1"}, group="d"),
)


class StoppedError(Exception):
    """The transaction does not come to its commit."""


def take_reported_events(connection: Connection, follower: Follower) -> None:
    """Ingest, with its news turned into facts at the end."""
    take(connection, [Record(encode(one), datetime.now(UTC)) for one in TOLD], Caches())
    follower.take_news(connection)


def barriers(follower: Follower) -> dict[tuple[str, str], list[int]]:
    """Return the barriers from which a question would be answered."""
    with follower.model() as model:
        return {table: done.order for table, done in model.done.items()}


def test_rolled_back_ingest_leaves_nothing_in_the_model(engine: Engine) -> None:
    follower = Follower(engine)
    with engine.connect() as connection:
        take_reported_events(connection, follower)
        connection.rollback()

    assert barriers(follower) == {}

    with engine.begin() as connection:
        take_reported_events(connection, follower)

    assert barriers(follower) == {A: [1]}
    assert barriers(Follower(engine)) == {A: [1]}


def test_decision_without_a_successful_commit_changes_nothing(engine: Engine) -> None:
    """Facts may be folded only after they are committed."""
    follower = Follower(engine)

    def declare(_: Connection, model: Model, now: float) -> tuple[list[Fact], None]:
        return [GroupDeclared("d", (A,), now)], None

    def fail(connection: Connection) -> None:
        if not connection.get_execution_options().get("strandline_reading"):
            raise StoppedError

    event.listen(engine, "commit", fail)
    with pytest.raises(StoppedError):
        follower.decide(declare)
    event.remove(engine, "commit", fail)

    assert barriers(follower) == {}
    follower.decide(declare)
    assert barriers(follower) == {A: []}
