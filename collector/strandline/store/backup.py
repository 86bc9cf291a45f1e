"""Copies of a whole store, made while servers write, and stores made of copies.

SQLite: a copy of the file as one reading transaction sees it, by SQLite's own backup. PostgreSQL: a
zip of every table as one transaction sees it (REPEATABLE READ, COPY in binary form). The client
tools of PostgreSQL are often not where a collector runs, or are of another version. A copy is
written beside its place and moved there when its counts and checks are right. Its checksum is in a
file beside it, as `sha256sum` writes one, because SQLite does not notice a changed byte in a value.
"""

import json
import os
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, make_url, text

from strandline.errors import RefusedError, SchemaError
from strandline.store.ingest.raw_events import make_partition, partition_days
from strandline.store.sql.engine import (
    file_of,
    is_empty,
    make_engine,
    migrate,
    reading,
    revisions,
)
from strandline.store.sql.private_files import make_private

SQLITE_HEADER = b"SQLite format 3\0"
MANIFEST = "manifest.json"
FORMAT = 1
CHUNK = 1 << 20
_VERSION = "alembic_version"


@dataclass(frozen=True, slots=True)
class Copied:
    """The content of a copy: its schema, and the number of rows of each table."""

    schema: str
    rows: dict[str, int]


def back_up(engine: Engine, file: Path) -> Copied:
    """Write a copy of the store to a new file, and its checksum beside it; writers go on."""
    if file.exists():
        raise RefusedError(f"{file} already exists; choose another name", code="exists")
    with _beside(file) as unfinished:
        if engine.dialect.name == "sqlite":
            copied = _copy_of_file(engine, unfinished)
        else:
            copied = _copy_of_tables(engine, unfinished)
        with _beside(checksum_file(file)) as checksum:
            checksum.write_text(f"{_checksum(unfinished)}  {file.name}\n")
    return copied


def checksum_file(file: Path) -> Path:
    """Return the file with the checksum of a copy."""
    return file.with_name(f"{file.name}.sha256")


def _checksum(file: Path) -> str:
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def _refuse_changed(file: Path) -> None:
    """Raise RefusedError if a copy is not the file that its checksum was made of."""
    beside = checksum_file(file)
    try:
        expected = beside.read_text().split()[0]
    except (OSError, IndexError, UnicodeDecodeError):
        raise RefusedError(
            f"{beside} is missing or empty, so the copy cannot be verified; copy it together with "
            f"{file.name}, or write it with sha256sum if you trust the copy",
            code="missing",
        ) from None
    if _checksum(file) != expected:
        raise RefusedError(
            f"{file} is damaged: its SHA-256 is not the one in {beside.name}; restore another copy",
            code="damaged",
        )


def restore(url: str, file: Path) -> Copied:
    """Make a store from a copy, where there is none; nothing is left of it if a check fails."""
    kind = _kind_of(file)
    _refuse_changed(file)
    wanted = make_url(url).get_backend_name()
    if kind != wanted:
        raise RefusedError(f"{file} is a copy of {kind}, the database is {wanted}", code="kind")
    target = file_of(url)
    if target is not None:
        return _file_of_copy(file, target)
    engine = make_engine(url)
    try:
        if not is_empty(engine):
            raise RefusedError("the database is not empty; choose an empty one", code="exists")
        return _tables_of_copy(engine, file)
    finally:
        engine.dispose()


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """Yield a private file that becomes this one if all goes well, and is removed otherwise."""
    unfinished = file.with_name(f"{file.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    make_private(unfinished)
    try:
        yield unfinished
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def _kind_of(file: Path) -> str:
    if not file.is_file():
        raise RefusedError(f"there is no file {file}", code="missing")
    with file.open("rb") as copy:
        if copy.read(len(SQLITE_HEADER)) == SQLITE_HEADER:
            return "sqlite"
    if zipfile.is_zipfile(file):
        return "postgresql"
    raise RefusedError(f"{file} is not a copy made by strandline backup", code="kind")


def _copy_of_file(engine: Engine, file: Path) -> Copied:
    """Count and copy one reading transaction, so that the two can be compared."""
    with reading(engine).begin() as connection, closing(sqlite3.connect(file)) as copy:
        source: Any = connection.connection.driver_connection
        counted = _counted(source)
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        _compare(_checked(copy, file), counted, file)
    return counted


def _file_of_copy(file: Path, target: Path) -> Copied:
    if target.exists() and target.stat().st_size:
        raise RefusedError(
            f"the database {target} already exists; choose another name", code="exists"
        )
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as copy:
        counted = _checked(copy, file)
        with _beside(target) as unfinished, closing(sqlite3.connect(unfinished)) as database:
            copy.backup(database)
            database.execute("PRAGMA journal_mode = DELETE")
            _compare(_checked(database, unfinished), counted, unfinished)
    return counted


def _checked(database: sqlite3.Connection, file: Path) -> Copied:
    try:
        (result,) = database.execute("PRAGMA integrity_check(1)").fetchone()
        counted = _counted(database)
    except sqlite3.DatabaseError as error:
        raise RefusedError(f"{file} is damaged: {error}", code="damaged") from error
    if result != "ok":
        raise RefusedError(f"{file} is damaged: {result}", code="damaged")
    return counted


def _counted(database: sqlite3.Connection) -> Copied:
    tables = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    names = sorted(name for (name,) in tables)
    if _VERSION not in names:
        raise RefusedError("this is not a database of Strandline", code="kind")
    (schema,) = database.execute(f"SELECT version_num FROM {_VERSION}").fetchone()
    rows = {
        name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names
    }
    return Copied(_checked_schema(schema), rows)


def _checked_schema(schema: str) -> str:
    if schema not in revisions():
        raise SchemaError(
            f"the copy has schema {schema}, which this program does not know: "
            "restore it with the version that made it"
        )
    return schema


def _compare(written: Copied, wanted: Copied, file: Path) -> None:
    wrong = sorted(
        name
        for name in {*written.rows, *wanted.rows}
        if written.rows.get(name) != wanted.rows.get(name)
    )
    if wrong or written.schema != wanted.schema:
        raise RefusedError(
            f"{file} differs from the source: {', '.join(wrong) or written.schema}", code="damaged"
        )


# Tables of the store, none of their partitions.
_TABLES = """
SELECT relname FROM pg_class
 WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
   AND NOT relispartition
 ORDER BY relname
"""
_COLUMNS = """
SELECT attname FROM pg_attribute
 WHERE attrelid = to_regclass(quote_ident(:table)) AND attnum > 0 AND NOT attisdropped
   AND attgenerated = ''
 ORDER BY attnum
"""
_SERIAL = "SELECT pg_get_serial_sequence(quote_ident(:table), :column)"


def _copy_of_tables(engine: Engine, file: Path) -> Copied:
    with (
        engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
        connection.begin(),
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as copy,
    ):
        schema = _checked_schema(
            str(connection.scalar(text(f"SELECT version_num FROM {_VERSION}")))
        )
        tables = {
            name: _columns(connection, name)
            for name in connection.scalars(text(_TABLES))
            if name != _VERSION
        }
        rows = {
            name: _copy_out(connection, copy, name, columns) for name, columns in tables.items()
        }
        days = partition_days(connection)
        manifest = {
            "format": FORMAT,
            "schema": schema,
            "rows": rows,
            "columns": tables,
            "partitions": days,
        }
        copy.writestr(MANIFEST, json.dumps(manifest))
    _refuse_damaged(file)
    return Copied(schema, rows)


def _columns(connection: Connection, table: str) -> list[str]:
    return list(connection.scalars(text(_COLUMNS), {"table": table}))


def _copy_out(connection: Connection, copy: zipfile.ZipFile, table: str, columns: list[str]) -> int:
    """Write the rows of a table; return their number, counted in the same snapshot."""
    database: Any = connection.connection.driver_connection
    listed = ", ".join(f'"{column}"' for column in columns)
    with copy.open(table, "w", force_zip64=True) as part, database.cursor() as cursor:
        with cursor.copy(
            f'COPY (SELECT {listed} FROM "{table}") TO STDOUT (FORMAT binary)'
        ) as data:
            for block in data:
                part.write(block)
        copied: int = cursor.rowcount
    counted = connection.scalar(text(f'SELECT count(*) FROM "{table}"'))
    if copied != counted:
        raise RefusedError(f"{table}: {copied} rows of {counted} were copied", code="damaged")
    return copied


def _refuse_damaged(file: Path) -> None:
    try:
        with zipfile.ZipFile(file) as copy:
            damaged = copy.testzip()
    except (zipfile.BadZipFile, zlib.error) as error:
        damaged = str(error)
    if damaged:
        raise RefusedError(f"{file} is damaged: {damaged}", code="damaged")


def _tables_of_copy(engine: Engine, file: Path) -> Copied:
    _refuse_damaged(file)
    with zipfile.ZipFile(file) as copy:
        manifest = json.loads(copy.read(MANIFEST))
        schema, rows = _checked_schema(manifest["schema"]), dict(manifest["rows"])
        migrate(engine, schema)
        with engine.begin() as connection:
            for day in manifest["partitions"]:
                make_partition(connection, day)
            for table, columns in manifest["columns"].items():
                connection.execute(text(f'TRUNCATE "{table}"'))  # a migration writes first rows
                _copy_in(connection, copy, table, columns, rows[table])
    return Copied(schema, rows)


def _copy_in(
    connection: Connection, copy: zipfile.ZipFile, table: str, columns: list[str], wanted: int
) -> None:
    database: Any = connection.connection.driver_connection
    listed = ", ".join(f'"{column}"' for column in columns)
    taking = f'COPY "{table}" ({listed}) FROM STDIN (FORMAT binary)'
    with copy.open(table) as part, database.cursor() as cursor, cursor.copy(taking) as data:
        while block := part.read(CHUNK):
            data.write(block)
    count = connection.scalar(text(f'SELECT count(*) FROM "{table}"'))
    if count != wanted:
        raise RefusedError(f"{table}: {count} rows of {wanted} were restored", code="damaged")
    for column in columns:
        if sequence := connection.scalar(text(_SERIAL), {"table": table, "column": column}):
            greatest = f'(SELECT max("{column}") FROM "{table}")'
            newest = f"SELECT setval(:sequence, coalesce({greatest}, 0) + 1, false)"
            connection.execute(text(newest), {"sequence": sequence})
