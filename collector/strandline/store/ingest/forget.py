"""Taking a given secret out of the whole store.

Every text, every body in every frame, every dictionary and reference.

The rules of redaction know secrets by name, form or place. One that has none of these is given here
as it is. The work is done a page of rows a transaction, and doing it again changes nothing: one
that was stopped is simply started again. Writers forget what they know as the epoch of the store is
raised, and train a new dictionary where theirs is gone.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    LargeBinary,
    Row,
    Table,
    Text,
    delete,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from strandline.errors import DamagedError, RefusedError
from strandline.store.ingest.bodies import replace_references
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.ingest.space import give_back
from strandline.store.schema.tables import dictionaries, metadata, raw_events
from strandline.store.schema.version_tables import version_facts
from strandline.store.sql.compression import Compression, Expansion, expand
from strandline.store.sql.engine import reading
from strandline.store.sql.references import stored_references
from strandline.store.sql.shared_settings import raise_epoch

GONE = "[redacted]"
SHORTEST = 6  # characters: a shorter word is part of others
FRAGMENT = 6  # a dictionary holds pieces of what it was trained on
LEVELS = 3  # of JSON in texts of JSON
PAGE = 500
REFERENCES = 50  # a transaction
Change = tuple[Row[Any], dict[str, Any]]
assert version_facts.metadata is metadata  # all tables are declared


class Word:
    """A secret in the spellings that a store has it in.

    As it is, and in JSON once or several times escaped.
    """

    def __init__(self, secret: str) -> None:
        if len(secret) < SHORTEST:
            raise RefusedError(
                f"a secret of less than {SHORTEST} characters is part of other words", code="short"
            )
        spellings = {secret}
        for _ in range(LEVELS):
            spellings |= {spelt for one in spellings for spelt in _escaped(one)}
        self.spellings = sorted(spellings, key=len, reverse=True)
        self._bytes = [spelling.encode("utf-8", "surrogateescape") for spelling in self.spellings]
        self.fragments = pieces_of(secret)

    def without(self, content: str) -> str:
        """A text without it."""
        for spelling in self.spellings:
            content = content.replace(spelling, GONE)
        return content

    def without_bytes(self, content: bytes) -> bytes:
        """Bytes without it."""
        for spelling in self._bytes:
            content = content.replace(spelling, GONE.encode())
        return content


def _escaped(text: str) -> tuple[str, ...]:
    """How JSON and Python's messages spell a text."""
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]


def forget_secret(engine: Engine, secret: str, *, execute: bool) -> dict[str, int]:
    """Take a secret out of every row; how many rows have (or had) it, by table.

    Without `execute` nothing changes.
    """
    word = Word(secret)
    unreadable: list[DamagedError] = []
    references, repacked = _forget_references(engine, word, unreadable, execute=execute)
    counts = Counter({raw_events.name: repacked, dictionaries.name: references})
    for table in metadata.sorted_tables:
        counts[table.name] += _go_over(engine, table, word, unreadable, execute=execute)
    counts[dictionaries.name] += _forget_dictionaries(engine, word, execute=execute)
    found = {name: count for name, count in counts.items() if count}
    if execute and found:
        give_back(engine, sorted(found))
    if unreadable:
        raise DamagedError(
            f"{len(unreadable)} rows cannot be read and may have it, the rest is done: {unreadable[0]}"
        )
    return found


def _go_over(
    engine: Engine, table: Table, word: Word, unreadable: list[DamagedError], *, execute: bool
) -> int:
    """Look at every row of a table, a page a transaction.

    Notes the events that nobody can read any more.
    """
    columns = [one for one in table.c if isinstance(one.type, Text | LargeBinary)]
    if not columns or table is dictionaries:
        return 0
    count, after = 0, None
    while True:
        with (engine if execute else reading(engine)).begin() as connection:
            if execute:
                keep_writers_out(connection)
            rows = _page(connection, table, after)
            if table is raw_events:
                changes = list(_changed_events(connection, rows, word, unreadable))
            else:
                changes = list(_changed_rows(table, rows, word))
            if execute:
                _write_all(connection, table, changes)
        count += len(changes)
        if len(rows) < PAGE:
            return count
        after = tuple(rows[-1]._mapping[key] for key in table.primary_key.columns)


def _write_all(connection: Connection, table: Table, changes: Sequence[Change]) -> None:
    if changes:
        raise_epoch(connection)
    for row, new in changes:
        _write(connection, table, row, new)


def _page(connection: Connection, table: Table, after: tuple[Any, ...] | None) -> list[Row[Any]]:
    keys = list(table.primary_key.columns)
    query = select(table).order_by(*keys).limit(PAGE)
    if after is not None:
        query = query.where(tuple_(*keys) > after if len(keys) > 1 else keys[0] > after[0])
    return list(connection.execute(query).all())


def _changed_rows(table: Table, rows: Sequence[Row[Any]], word: Word) -> Iterator[Change]:
    for row in rows:
        if new := _changed(table, row, word):
            yield row, new


def _changed_events(
    connection: Connection, rows: Sequence[Row[Any]], word: Word, unreadable: list[DamagedError]
) -> Iterator[Change]:
    for row, body in Expansion(connection).expanded(rows):
        if isinstance(body, DamagedError):
            unreadable.append(body)
        elif (kept := word.without_bytes(body)) != body:
            yield row, {"body": Compression().shrink(kept), "dictionary_id": 0}


def _changed(table: Table, row: Row[Any], word: Word) -> dict[str, Any]:
    """The columns of a row that have the secret, as they are without it."""
    found: dict[str, Any] = {}
    for column in table.c:
        value = row._mapping[column]
        if isinstance(value, str):
            if (kept := word.without(value)) != value:
                found[column.name] = kept
        elif isinstance(value, bytes | memoryview) and not column.primary_key:
            found |= _without(column.name, bytes(value), word)
    return found


def _without(name: str, value: bytes, word: Word) -> dict[str, Any]:
    content = expand(value)
    kept = word.without_bytes(content)
    if kept == content:
        return {}
    return {name: kept if content is value else Compression().shrink(kept)}


def _write(connection: Connection, table: Table, row: Row[Any], new: dict[str, Any]) -> None:
    """Change a row; one that would be equal to another by its key then goes."""
    this = [key == row._mapping[key] for key in table.primary_key.columns]
    try:
        with connection.begin_nested():
            connection.execute(update(table).where(*this).values(new))
    except IntegrityError:
        connection.execute(delete(table).where(*this))


def _forget_references(
    engine: Engine, word: Word, unreadable: list[DamagedError], *, execute: bool
) -> tuple[int, int]:
    """Take it out of references and of the events that are packed with them.

    How many of each had it.

    An event is counted here only where it is changed here.
    """
    bad = list(_bad_references(engine, word, unreadable))
    repacked = 0
    for start in range(0, len(bad) if execute else 0, REFERENCES):
        with engine.begin() as connection:
            keep_writers_out(connection)
            some = dict(bad[start : start + REFERENCES])
            repacked += replace_references(connection, some, word.without_bytes)
    return len(bad), repacked


def _bad_references(
    engine: Engine, word: Word, unreadable: list[DamagedError]
) -> Iterator[tuple[int, bytes]]:
    with reading(engine).connect() as connection:
        for id_, one in stored_references(connection):
            if isinstance(one, DamagedError):
                unreadable.append(one)
            elif (kept := word.without_bytes(one.content)) != one.content:
                yield id_, kept


def _forget_dictionaries(engine: Engine, word: Word, *, execute: bool) -> int:
    """Drop the trained dictionaries with a piece of the secret, or count them."""
    with (engine if execute else reading(engine)).begin() as connection:
        bad = _dictionaries_with(connection, word.fragments)
        if execute and bad:
            keep_writers_out(connection)
            raise_epoch(connection)
            _drop(connection, bad)
    return len(bad)


def drop_dictionaries(connection: Connection, pieces: Collection[bytes]) -> int:
    """Drop the trained dictionaries with one of these pieces; how many.

    Writers train new ones on what comes next.
    """
    bad = _dictionaries_with(connection, pieces)
    _drop(connection, bad)
    return len(bad)


def pieces_of(word: str, size: int = FRAGMENT) -> list[bytes]:
    """All pieces of a word that a dictionary may hold; a short one as it is."""
    body = word.encode("utf-8", "replace")
    return [body[start : start + size] for start in range(max(1, len(body) - size + 1))]


def _dictionaries_with(connection: Connection, pieces: Collection[bytes]) -> list[int]:
    by_size: dict[int, set[bytes]] = defaultdict(set)
    for piece in pieces:
        by_size[len(piece)].add(piece)
    trained = select(dictionaries.c.id, dictionaries.c.body).where(dictionaries.c.key.is_(None))
    rows = connection.execute(trained).all()
    return [
        row.id
        for row in rows
        if any(_has(bytes(row.body), size, some) for size, some in by_size.items())
    ]


def _has(body: bytes, size: int, pieces: set[bytes]) -> bool:
    return any(body[start : start + size] in pieces for start in range(len(body) - size + 1))


def _drop(connection: Connection, ids: Iterable[int]) -> None:
    """Drop dictionaries; the events that need one are packed without."""
    for id_ in ids:
        for row in _packed_with(connection, id_):
            body = Compression().shrink(Expansion(connection).expand(id_, row.body))
            this = (raw_events.c.received_at == row.received_at, raw_events.c.hash == row.hash)
            connection.execute(update(raw_events).where(*this).values(body=body, dictionary_id=0))
        connection.execute(delete(dictionaries).where(dictionaries.c.id == id_))


def _packed_with(connection: Connection, dictionary: int) -> Iterator[Row[Any]]:
    while rows := connection.execute(
        select(raw_events).where(raw_events.c.dictionary_id == dictionary).limit(PAGE)
    ).all():
        yield from rows
