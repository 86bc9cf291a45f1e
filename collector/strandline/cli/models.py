"""Shared parts of the commands about versions.

The database, its model, tables and jobs by the names that people use.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from strandline.cli.answers import tell
from strandline.cli.open_store import existing_store
from strandline.core.access.granted import EVERYTHING
from strandline.core.labels import told_apart
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model
from strandline.errors import AmbiguousError, NotFoundError
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.lineage.lookup import dataset_called
from strandline.store.versions.lookup import call, known_name

__all__ = ["job_called", "model_in", "model_of", "store_of", "table_called", "tell"]
MOST_NAMED = 10


@contextmanager
def store_of(settings: Settings) -> Iterator[tuple[Engine, Follower]]:
    """Give the database of the settings, checked, and a follower of its model."""
    engine = existing_store(settings)
    try:
        yield engine, Follower(engine)
    finally:
        engine.dispose()


@contextmanager
def model_of(settings: Settings) -> Iterator[tuple[Connection, Model]]:
    """Give a connection and the model, for a command that only asks."""
    with store_of(settings) as (engine, _), model_in(engine) as (connection, model):
        yield connection, model


@contextmanager
def model_in(engine: Engine) -> Iterator[tuple[Connection, Model]]:
    """Give a connection and the model of a store."""
    with Follower(engine).question(EVERYTHING) as (connection, model):
        call(connection, model, model.group_of)
        yield connection, model


def table_called(connection: Connection, model: Model, text: str) -> Table:
    """Return the table that a person means."""
    node = dataset_called(connection, text)
    table = known_name(connection, model, (node.namespace, node.name))
    call(connection, model, [table])
    return table


def job_called(model: Model, text: str) -> Job:
    """Return the tracked or registered job of this name, or of job:NAMESPACE:NAME."""
    jobs = sorted(model.places.keys() | model.registered.keys())
    matches = _called(jobs, text)
    if len(matches) == 1:
        return matches[0]
    if matches:
        nodes = [_names_of(job)[1] for job in matches]
        raise AmbiguousError(f"several jobs are called {text!r}", nodes[:MOST_NAMED])
    names = told_apart({_names_of(job)[1]: job[1] for job in jobs})
    raise NotFoundError(
        f"no tracked job is called {text!r}{'' if jobs else '; there is none'}",
        list(names.values())[:MOST_NAMED],
    )


def _names_of(job: Job) -> tuple[str, str]:
    return job[1], f"job:{job[0]}:{job[1]}"


def _called(jobs: Sequence[Job], text: str) -> list[Job]:
    """Return the jobs of this name; if there are none, those that differ only in case."""
    exact = [job for job in jobs if text in _names_of(job)]
    if exact:
        return exact
    lowered = text.lower()
    return [job for job in jobs if lowered in [name.lower() for name in _names_of(job)]]
