"""What the commands about versions share: the database, its model, tables and jobs by the names that people use."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine

from strandline.cli.store import existing_store
from strandline.core.barriers import Job, Table
from strandline.core.model import Model
from strandline.errors import NotFoundError
from strandline.settings import Settings
from strandline.store.follower import Follower
from strandline.store.nodes import node_called
from strandline.store.version_names import call, known_name

Line = Callable[[], Sequence[str]]


@contextmanager
def store_of(settings: Settings) -> Iterator[tuple[Engine, Follower]]:
    """The database of the settings, checked, and a follower of its model."""
    engine = existing_store(settings)
    try:
        yield engine, Follower(engine)
    finally:
        engine.dispose()


@contextmanager
def model_of(settings: Settings) -> Iterator[tuple[Connection, Model]]:
    """A connection and the model, for a command that only asks."""
    with store_of(settings) as (_, follower), follower.question() as (connection, model):
        call(connection, model, model.domain_of)
        yield connection, model


def table_called(connection: Connection, model: Model, text: str) -> Table:
    """The table that a person means."""
    node = node_called(connection, text)
    if node.kind != "dataset":
        raise NotFoundError(f"{text}: is a job, not a table")
    table = known_name(connection, model, (node.namespace, node.name))
    call(connection, model, [table])
    return table


def job_called(model: Model, text: str) -> Job:
    """The managed or registered job that a person means: its name, or job:NAMESPACE:NAME."""
    jobs = sorted(model.places.keys() | model.registered.keys())
    found = [job for job in jobs if text in (job[1], f"job:{job[0]}:{job[1]}")]
    if len(found) == 1:
        return found[0]
    near = [f"job:{namespace}:{name}" for namespace, name in found or jobs][:10]
    what = "several jobs are" if found else "no managed job is"
    raise NotFoundError(f"{what} called {text!r}; known: {', '.join(near) or 'none'}", near)


def tell(as_json: bool, answer: Any, lines: Line) -> None:
    """The answer on stdout: JSON for programs, lines for people."""
    text = json.dumps(answer, indent=2) if as_json else "\n".join(lines())
    sys.stdout.write(text + "\n")
