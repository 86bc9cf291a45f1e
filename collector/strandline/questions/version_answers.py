"""Answers to which snapshots belong together, and how late a table is."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from strandline.core.versions.expirable import pins
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import Reading, refuse_stale
from strandline.core.versions.version_answer import answer_versions
from strandline.errors import RefusedError
from strandline.questions.reader import Answer, Reader
from strandline.questions.versions import DelaysQuery, ExpirableQuery, Identifier, Versions
from strandline.store.sql.engine import read_from
from strandline.store.versions.answers import expiry_answer, expiry_of, version_document
from strandline.store.versions.delay_answers import delay_answer
from strandline.store.versions.lookup import call, table_of
from strandline.store.versions.outside_readers import outside_of


class Version(NamedTuple):
    """One version of several tables, as it is answered, and the proof of it."""

    tables: list[Table]
    document: Answer
    certificate: Any


def version_of(reader: Reader, question: Versions) -> Version:
    """Return one version of all the tables, as of now."""
    with reader.follower.question(reader.access) as (connection, model):
        tables = tables_of(connection, model, question.tables)
        now = time.time()
        answers = answer_versions(model, tables, question.consistency)
        if question.max_lag_seconds is not None:
            _refuse_unbounded(model, tables, question.max_lag_seconds, now, answers.readings)
    # a cut depends on all that its tables were made from, whoever sees it
    engine = reader.whole_engine if answers.consistency == "cut" else reader.engine
    with read_from(engine) as connection:
        document = version_document(connection, answers, tables, now)
    return Version(tables, document, answers.certificate)


def _refuse_unbounded(
    model: Model, tables: Sequence[Table], bound: float, now: float, readings: Sequence[Reading]
) -> None:
    refuse_stale(readings, bound, now, model.call)
    with_barriers = {reading.table for reading in readings}
    others = [model.call(table) for table in tables if table not in with_barriers]
    if others:
        raise RefusedError(f"{', '.join(others)}: no barrier, so its lag is unknown", "lag")


def tables_of(connection: Connection, model: Model, named: Sequence[Identifier]) -> list[Table]:
    """Return the tables that a body names, each once, in its order.

    Words about them call them as Spark does.
    """
    tables = list(
        dict.fromkeys(table_of(connection, model, table.namespace, table.name) for table in named)
    )
    call(connection, model, tables)
    return tables


def delays(reader: Reader, query: DelaysQuery) -> Answer:
    """Return the end-to-end delay and the staleness of a table."""
    with reader.follower.question(reader.access) as (connection, model):
        table = table_of(connection, model, query.namespace, query.name)
        return delay_answer(connection, model, table, query.barrier, reader.now.timestamp())


def expirable(reader: Reader, query: ExpirableQuery) -> Answer:
    """Return the expirable snapshots of a table, and why others are kept."""
    settings, now = reader.settings, reader.now.timestamp()
    with reader.follower.question(reader.access) as (connection, model):
        table = table_of(connection, model, query.namespace, query.name)
        call(connection, model, [table])
        needed = pins(model, table, settings.keep_barriers)
        readers = tuple(model.readers.get(table, ()))
        outside = outside_of(model, settings.retention_days, now, reader.access)
    with read_from(reader.whole_engine) as connection:  # whoever needs a snapshot counts
        expiry = expiry_of(connection, table, needed, now, readers, outside)
    return expiry_answer(table, expiry, query.limit)
