"""Damage in what is stored: pages of the file, and contents that their hash does not match."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Row, Select, and_, select, tuple_
from sqlalchemy.exc import DatabaseError
from zstandard import ZstdError

from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.names import id_of
from strandline.core.redaction.text import GONE
from strandline.errors import DamagedError
from strandline.store.schema.dataset_tables import datasets, facet_bodies
from strandline.store.schema.received_tables import event_keys, raw_events
from strandline.store.schema.run_tables import jobs
from strandline.store.schema.version_tables import version_facts
from strandline.store.sql.compression import Expansion, expand
from strandline.store.sql.engine import file_of, reading
from strandline.store.versions.fact_log import DECODERS

PAGE = 1000
MOST = 20  # of one kind that are named


def damage_in(engine: Engine) -> Iterator[str]:
    """Yield each damage that is found by reading everything; minutes for a large store."""
    yield from _damaged_pages(engine)
    for look in (_damaged_bodies, _damaged_keys, _damaged_facts, _damaged_facets, _damaged_names):
        try:
            yield from _some(look(engine))
        except DatabaseError as error:
            yield f"the database is damaged: {error.orig}"


def _some(problems: Iterator[str]) -> Iterator[str]:
    """Yield the first problems, and the number of the others."""
    yield from islice(problems, MOST)
    if more := sum(1 for _ in problems):
        yield f"{more} more of this kind"


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
    with reading(engine).connect() as connection:
        expansion = Expansion(connection)
        page: Sequence[Row[*tuple[Any, ...]]] = connection.execute(query).all()
        while page:
            for row, body in expansion.expanded(page):
                if problem := _problem_of(row, body):
                    yield problem
            last = (page[-1].received_at, bytes(page[-1].hash))
            page = connection.execute(query.where(key > last)).all()


def _damaged_keys(engine: Engine) -> Iterator[str]:
    """Yield the events that are not known by their hash: they could be stored a second time."""
    event, key = raw_events.c, event_keys.c
    same = and_(key.hash == event.hash, key.received_at == event.received_at)
    query = (
        select(event.hash)
        .select_from(raw_events.outerjoin(event_keys, same))
        .where(key.hash.is_(None))
    )
    with reading(engine).connect() as connection:
        for (hash_,) in _streamed(connection, query):
            yield f"event {bytes(hash_).hex()} is not known by its hash"


def _damaged_facts(engine: Engine) -> Iterator[str]:
    """Yield the entries of the log of versions that cannot be read."""
    log = version_facts.c
    with reading(engine).connect() as connection:
        for seq, kind, body in _streamed(connection, select(log.seq, log.kind, log.body)):
            try:
                DECODERS[kind].decode(body)
            except (KeyError, ValueError) as error:
                yield f"entry {seq} of the log of versions cannot be read: {error!r}"


def _damaged_facets(engine: Engine) -> Iterator[str]:
    """Yield the facets whose content has another hash than they are stored under."""
    with reading(engine).connect() as connection:
        query = select(facet_bodies.c.hash, facet_bodies.c.body)
        for hash_, body in _streamed(connection, query):
            try:
                content = expand(body)
                is_whole = content_hash(content) == bytes(hash_) or GONE.encode() in content
            except (ValueError, ZstdError):
                is_whole = False
            if not is_whole:
                yield f"the facet of hash {bytes(hash_).hex()} is damaged"


def _damaged_names(engine: Engine) -> Iterator[str]:
    """Yield the jobs and datasets whose names are not those that their ids were made of."""
    with reading(engine).connect() as connection:
        for kind, table in (("job", jobs), ("dataset", datasets)):
            columns = (table.c.id, table.c.namespace, table.c.name)
            for id_, namespace, name in _streamed(connection, select(*columns)):
                is_changed = GONE in namespace + name  # `forget --secret` changes names
                if id_of(kind, namespace, name) != id_ and not is_changed:
                    yield f"the name of {kind} {namespace} {name} is damaged"


def _streamed(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    """Yield the rows of a query, of which only a page is in memory."""
    yield from connection.execute(query.execution_options(stream_results=True, yield_per=PAGE))


def _problem_of(row: Row[Any], body: bytes | DamagedError) -> str | None:
    if isinstance(body, DamagedError):
        return str(body)
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except ValueError as error:
        return f"event {bytes(row.hash).hex()} cannot be read: {error}"
    return None
