"""Taking a secret out of the whole store: every text, every packed body, every reference.

The rules of redaction know a secret by its name, form or place. A secret that has none of these is
given here as it is. The work is done one page of rows a transaction, and doing it again changes
nothing, so a command that was stopped is started again.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, LargeBinary, Row, Table, Text, delete, select, update
from sqlalchemy.exc import IntegrityError

from strandline.errors import DamagedError, RefusedError
from strandline.store.ingest.bodies import replace_references
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.ingest.space import give_back
from strandline.store.schema.received_tables import body_references, raw_events
from strandline.store.schema.search_tables import search_names, search_texts
from strandline.store.schema.tables import metadata
from strandline.store.schema.version_tables import version_facts
from strandline.store.search.upkeep import entities_with, index_again
from strandline.store.sql.body_references import ALONE, pack_alone, stored_references
from strandline.store.sql.compression import Compression, Expansion, expand
from strandline.store.sql.engine import reading
from strandline.store.sql.shared_settings import raise_epoch
from strandline.store.sql.table_pages import PAGE, key_of_row, page_after

GONE = "[redacted]"
SHORTEST = 6  # characters: a shorter word is part of others
LEVELS = 3  # of JSON in texts of JSON
REFERENCES = 50  # a transaction
Change = tuple[Row[Any], dict[str, Any]]  # a row, and the new values of its columns
assert version_facts.metadata is metadata  # all tables are declared


class Secret:
    """A secret in its spellings: as it is, and escaped once or several times in JSON."""

    def __init__(self, secret: str) -> None:
        if len(secret) < SHORTEST:
            raise RefusedError(
                f"a secret of less than {SHORTEST} characters may be part of other words",
                code="short",
            )
        spellings = {secret}
        for _ in range(LEVELS):
            spellings |= {escaped for text in spellings for escaped in _escaped(text)}
        self._texts = sorted(spellings, key=len, reverse=True)
        self._bytes = [spelling.encode("utf-8", "surrogateescape") for spelling in self._texts]

    def taken_out(self, text: str) -> str:
        """Return a text without the secret."""
        for spelling in self._texts:
            text = text.replace(spelling, GONE)
        return text

    def taken_out_of_bytes(self, content: bytes) -> bytes:
        """Return bytes without the secret."""
        for spelling in self._bytes:
            content = content.replace(spelling, GONE.encode())
        return content


def _escaped(text: str) -> tuple[str, ...]:
    """Return the spellings of a text in JSON and in Python's messages."""
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]


def forget_secret(engine: Engine, secret: str, *, execute: bool) -> dict[str, int]:
    """Take a secret out of every row, and return the number of rows by table.

    Without `execute` only count the rows that have it.
    """
    secret_ = Secret(secret)
    unreadable: list[DamagedError] = []
    references, repacked = _forget_in_references(engine, secret_, unreadable, execute=execute)
    counts = Counter({raw_events.name: repacked, body_references.name: references})
    for table in metadata.sorted_tables:
        if table not in (body_references, search_names, search_texts):
            counts[table.name] += _forget_in_table(
                engine, table, secret_, unreadable, execute=execute
            )
    counts[search_texts.name] = _forget_in_search(engine, secret, execute=execute)
    counts = +counts
    if execute and counts:
        give_back(engine, sorted(counts))
    if unreadable:
        raise DamagedError(
            f"{len(unreadable)} rows cannot be read and may have it, the rest is done:"
            f" {unreadable[0]}"
        )
    return dict(counts)


def _forget_in_table(
    engine: Engine, table: Table, secret: Secret, unreadable: list[DamagedError], *, execute: bool
) -> int:
    """Take the secret out of a table, one page a transaction, and return the number of rows.

    Add to `unreadable` the errors of events that cannot be read.
    """
    if not any(isinstance(column.type, Text | LargeBinary) for column in table.c):
        return 0
    key = list(table.primary_key.columns)
    count, after = 0, None
    while True:
        with (engine if execute else reading(engine)).begin() as connection:
            if execute:
                keep_writers_out(connection)
            rows = page_after(connection, select(table), key, after)
            if table is raw_events:
                changes = list(_event_changes(connection, rows, secret, unreadable))
            else:
                changes = list(_row_changes(table, rows, secret))
            if execute and changes:
                raise_epoch(connection)
                for row, values in changes:
                    _write(connection, table, row, values)
        count += len(changes)
        if len(rows) < PAGE:
            return count
        after = key_of_row(rows[-1], key)


def _forget_in_search(engine: Engine, secret: str, *, execute: bool) -> int:
    """Write the folded texts that have the secret anew, and return how many have it.

    The rows that they are made from have lost it before.
    """
    with (engine if execute else reading(engine)).begin() as connection:
        if execute:
            keep_writers_out(connection)
        ids = entities_with(connection, secret)
        if execute:
            index_again(connection, ids)
    return len(ids)


def _event_changes(
    connection: Connection, rows: Sequence[Row[Any]], secret: Secret, unreadable: list[DamagedError]
) -> Iterator[Change]:
    for row, body in Expansion(connection).expanded(rows):
        if isinstance(body, DamagedError):
            unreadable.append(body)
            continue
        new_body = secret.taken_out_of_bytes(body)
        if new_body != body:
            yield row, {"body": pack_alone(new_body), "reference_id": ALONE}


def _row_changes(table: Table, rows: Sequence[Row[Any]], secret: Secret) -> Iterator[Change]:
    for row in rows:
        values: dict[str, Any] = {}
        for column in table.c:
            value = row._mapping[column]
            new_value = _changed(value, secret, is_key=column.primary_key)
            if new_value is not None:
                values[column.name] = new_value
        if values:
            yield row, values


def _changed(value: Any, secret: Secret, *, is_key: bool) -> str | bytes | None:
    """Return a value without the secret, or None if it does not have it."""
    if isinstance(value, str):
        text = secret.taken_out(value)
        return None if text == value else text
    if not isinstance(value, bytes | memoryview) or is_key:
        return None
    stored = bytes(value)
    content = expand(stored)
    new_content = secret.taken_out_of_bytes(content)
    if new_content == content:
        return None
    return new_content if content == stored else Compression().shrink(new_content)


def _write(connection: Connection, table: Table, row: Row[Any], values: dict[str, Any]) -> None:
    """Change a row, or delete it if another row has its new key."""
    this = [column == row._mapping[column] for column in table.primary_key.columns]
    try:
        with connection.begin_nested():
            connection.execute(update(table).where(*this).values(values))
    except IntegrityError:
        connection.execute(delete(table).where(*this))


def _forget_in_references(
    engine: Engine, secret: Secret, unreadable: list[DamagedError], *, execute: bool
) -> tuple[int, int]:
    """Take the secret out of references and of the events that need them.

    Return the number of references that had it, and the number of events that were changed.
    """
    new_contents = list(_contents_to_replace(engine, secret, unreadable))
    repacked = 0
    for start in range(0, len(new_contents) if execute else 0, REFERENCES):
        some = dict(new_contents[start : start + REFERENCES])
        with engine.begin() as connection:
            keep_writers_out(connection)
            repacked += replace_references(connection, some, secret.taken_out_of_bytes)
    return len(new_contents), repacked


def _contents_to_replace(
    engine: Engine, secret: Secret, unreadable: list[DamagedError]
) -> Iterator[tuple[int, bytes]]:
    """Yield the id of each reference that has the secret, and its content without."""
    with reading(engine).connect() as connection:
        for id_, reference in stored_references(connection):
            if isinstance(reference, DamagedError):
                unreadable.append(reference)
                continue
            content = secret.taken_out_of_bytes(reference.content)
            if content != reference.content:
                yield id_, content
