"""Damage in what is stored: pages of the file, and bodies of events that cannot be read."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec
from sqlalchemy import Engine, Row, select, tuple_
from sqlalchemy.exc import DatabaseError

from strandline.errors import DamagedError
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.compression import Expansion
from strandline.store.sql.engine import file_of, reading

PAGE = 1000
MOST = 20  # of one kind that are named


def damage_in(engine: Engine) -> Iterator[str]:
    """Yield each damage that is found by reading everything; minutes for a large store."""
    yield from _damaged_pages(engine)
    try:
        yield from _damaged_bodies(engine)
    except DatabaseError as error:
        yield f"the database is damaged: {error.orig}"


def _damaged_pages(engine: Engine) -> Iterator[str]:
    """Yield what SQLite's own check finds; PostgreSQL checks its pages as it reads them."""
    file = file_of(engine.url)
    if file is None:
        return
    address = f"{file.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            for (problem,) in database.execute(f"PRAGMA integrity_check({MOST})"):
                if problem != "ok":
                    yield f"the file {file} is damaged: {problem}"
    except sqlite3.DatabaseError as error:
        yield f"the file {file} is damaged: {error}"


def _damaged_bodies(engine: Engine) -> Iterator[str]:
    """Yield the events whose body cannot be unpacked, or is no JSON any more."""
    key = tuple_(raw_events.c.received_at, raw_events.c.hash)
    columns = (raw_events.c.received_at, raw_events.c.hash, raw_events.c.reference_id)
    query = select(*columns, raw_events.c.body).order_by(*key.clauses).limit(PAGE)
    count = 0
    with reading(engine).connect() as connection:
        expansion = Expansion(connection)
        page: Sequence[Row[*tuple[Any, ...]]] = connection.execute(query).all()
        while page:
            for row, body in expansion.expanded(page):
                problem = _problem_of(row, body)
                if problem:
                    count += 1
                    if count <= MOST:
                        yield problem
            last = (page[-1].received_at, bytes(page[-1].hash))
            page = connection.execute(query.where(key > last)).all()
    if count > MOST:
        yield f"{count - MOST} more events cannot be read"


def _problem_of(row: Row[Any], body: bytes | DamagedError) -> str | None:
    if isinstance(body, DamagedError):
        return str(body)
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except ValueError as error:
        return f"event {bytes(row.hash).hex()} cannot be read: {error}"
    return None
