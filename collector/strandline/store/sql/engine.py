"""Opening and migrating a store.

SQLite: one file, WAL, every commit on disk. PostgreSQL: psycopg 3.

Every transaction of a writer on SQLite starts with BEGIN IMMEDIATE, so that a reader never has to
become a writer half-way (SQLite refuses that without waiting). `migrate` may be called by several
processes at once.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from strandline.core.stopping import CURRENT, Work, go_on
from strandline.errors import SchemaError
from strandline.store.sql.private_files import make_private

BUSY_MILLISECONDS = 30_000
LOCK_SECONDS, LOOK_SECONDS = 3.0, 0.02  # a transaction of our own may take this long
LOCK_NOT_AVAILABLE = "55P03"
INCREMENTAL = 2  # what SQLite calls auto_vacuum = INCREMENTAL
LEAST_FREE = 32 << 20  # bytes: a batch with its log needs as much
POOL, OVERFLOW = 5, 10  # connections of a process: those that stay open, and more under load
IDLE_SECONDS = 300  # PostgreSQL ends a transaction whose process is silent, to free its locks
STATEMENT_SECONDS = "strandline_statement_seconds"
CANCEL_SECONDS = 2  # that PostgreSQL may take to accept the wish to cancel a statement
MIGRATION_LOCK = 0x7374_7261_6E64  # "strand"
BY_ITSELF = "AUTOCOMMIT"
MIGRATIONS = Path(__file__).parent.parent / "migrations"


def make_engine(url: str) -> Engine:
    """Return an engine for an SQLAlchemy URL; create a missing SQLite file and its folder."""
    where = make_url(url)
    if where.get_backend_name() != "sqlite":
        engine = create_engine(
            where.set(drivername="postgresql+psycopg"),
            pool_size=POOL,
            max_overflow=OVERFLOW,
            pool_pre_ping=True,
        )
        event.listen(engine, "do_connect", _connect_postgresql)
        event.listen(engine, "connect", _prepare_postgresql)
        event.listen(engine, "before_cursor_execute", _narrow, retval=True)
        _let_work_stop(engine)
        return engine
    if where.database and where.database != ":memory:" and not where.database.startswith("file:"):
        make_private(Path(where.database).expanduser())
    engine = create_engine(where, pool_size=POOL) if where.database else create_engine(where)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "connect", LogSync())
    event.listen(engine, "begin", _begin_immediate)
    event.listen(engine, "before_cursor_execute", _narrow, retval=True)
    _let_work_stop(engine)
    return engine


def _connect_postgresql(
    _dialect: Any, _record: Any, _arguments: Any, options: dict[str, Any]
) -> Any:
    from strandline.store.sql.silence import connect

    return connect(options)


def _prepare_postgresql(connection: Any, _record: Any) -> None:
    """Let PostgreSQL plan each query for its own parameters.

    A plan for any list of ids assumes ten of them, and was five times slower for thousands.
    Writers do the same each time, and let PostgreSQL keep plans (store/ingest/take).
    """
    connection.autocommit = True
    connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'")
    connection.execute("SET plan_cache_mode = force_custom_plan")
    connection.autocommit = False


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # `_begin_immediate` begins transactions, not sqlite3
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}").close()
    # Setting it again would wait for writers. It applies to a new file, so it comes before WAL,
    # which begins the file, and to one that is vacuumed.
    if connection.execute("PRAGMA auto_vacuum").fetchone() != (INCREMENTAL,):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL").close()
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "cache_size = -65536",  # KB of one connection
        "soft_heap_limit = 83886080",  # bytes of all connections of a process
        "temp_store = MEMORY",
        "wal_autocheckpoint = 8000",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


class LogSync:
    """A sync of the log that a killed process left, at the first connection of this process.

    SQLite takes a transaction for committed if it finds it whole in the log, even if its process
    was killed before the sync. Its events, sent again, change nothing, so no commit would sync
    them: they would be answered, and lost with a power cut.
    """

    def __init__(self) -> None:
        self._process = 0

    def __call__(self, connection: Any, _record: Any) -> None:
        """Move the log into the file, which syncs both, once a process."""
        if self._process == os.getpid():
            return
        # If the file cannot be written just now, the next connection tries again.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint").close()
            self._process = os.getpid()


def _begin_immediate(connection: Connection) -> None:
    reading = connection.get_execution_options().get("strandline_reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _narrow(
    connection: Connection, _cursor: Any, statement: str, parameters: Any, context: Any, *_: Any
) -> tuple[str, Any]:
    """Let a connection of a key see what the key sees."""
    if "strandline_access" not in connection.get_execution_options():
        return statement, parameters
    from strandline.store.sql.narrowed import narrow  # imports all tables, which servers need

    return narrow(connection, statement, parameters, context)


def _let_work_stop(engine: Engine) -> None:
    """Let work that can be stopped know its connections, and stop between statements."""
    event.listen(engine, "checkout", _borrow)
    event.listen(engine, "checkin", _give_back)
    event.listen(engine, "before_cursor_execute", lambda *_: go_on())


def _borrow(connection: Any, record: Any, _proxy: Any) -> None:
    work = CURRENT.get()
    if work is not None:
        work.borrow(connection)
    if not isinstance(connection, sqlite3.Connection):
        _bound_statements(connection, record, work)


def _bound_statements(connection: Any, record: Any, work: Work | None) -> None:
    """Let PostgreSQL end a statement by itself whose work should have been stopped long ago."""
    seconds = 0 if work is None else work.seconds + CANCEL_SECONDS
    if record.info.get(STATEMENT_SECONDS, 0) == seconds:
        return
    connection.autocommit = True
    connection.execute(f"SET statement_timeout = '{seconds}s'")
    connection.autocommit = False
    record.info[STATEMENT_SECONDS] = seconds


def _give_back(connection: Any, _record: Any) -> None:
    work = CURRENT.get()
    if work is not None:
        work.give_back(connection)


def interrupt(connection: Any) -> None:
    """End the statement that a connection is running, if any; another thread may call it."""
    if isinstance(connection, sqlite3.Connection):
        connection.interrupt()
        return
    from psycopg import Error

    with suppress(Error):  # a connection that is lost runs nothing
        connection.cancel_safe(timeout=CANCEL_SECONDS)


def reading(engine: Engine) -> Engine:
    """Return the engine for transactions that only read; on SQLite they wait for no writer."""
    return engine.execution_options(strandline_reading=True)


@contextmanager
def read_from(engine: Engine) -> Iterator[Connection]:
    """Open a connection for a transaction that only reads.

    It ends with COMMIT: after ROLLBACK psycopg forgets its prepared statements, and PostgreSQL
    plans each of them again.
    """
    with reading(engine).connect() as connection:
        yield connection
        with suppress(DBAPIError):  # everything was read, so a lost connection does not matter
            connection.commit()


def by_itself(connection: Connection) -> Connection:
    """Return the connection with each statement as a transaction of its own on PostgreSQL.

    A statement sees the same in a transaction that only reads (READ COMMITTED), and two round trips
    are saved.
    """
    if connection.dialect.name != "postgresql":
        return connection
    return connection.execution_options(isolation_level=BY_ITSELF)


def unwritable(connection: Connection) -> str | None:
    """Return the reason why nothing can be stored now, as far as reading can tell; or None."""
    if connection.dialect.name == "postgresql":
        if connection.scalar(text("SELECT current_setting('transaction_read_only')")) != "on":
            return None
        return (
            "nothing can be written (transaction_read_only is on): "
            "it is a standby, so name the primary, or default_transaction_read_only is set"
        )
    file = file_of(connection.engine.url)
    return None if file is None else unwritable_file(file)


def too_few_connections(connection: Connection) -> str | None:
    """Return a warning if PostgreSQL allows fewer connections than a server and a consumer open."""
    if connection.dialect.name != "postgresql":
        return None
    setting = "current_setting('{}')::int".format
    query = f"SELECT {setting('max_connections')} - {setting('superuser_reserved_connections')}"
    allowed, consumer = int(connection.exec_driver_sql(query).scalar_one()), POOL + OVERFLOW
    if allowed >= 3 * consumer:
        return None
    return (
        f"max_connections allows {allowed} connections: strandline serve opens up to "
        f"{2 * consumer}, strandline consume up to {consumer}; "
        "those without a connection wait and retry"
    )


def locked(engine: Engine, seconds: float = LOCK_SECONDS) -> str | None:
    """Return the reason why no transaction could begin to write within so many seconds, or None.

    While others commit, the lock only has to be waited for.
    """
    if engine.dialect.name == "postgresql":
        return _locked_tables(engine, seconds)
    return None if file_of(engine.url) is None else _locked_file(engine, seconds)


def _locked_tables(engine: Engine, seconds: float) -> str | None:
    # Only servers ask this: commands need no table for their help.
    from strandline.store.schema.tables import metadata

    tables = ", ".join(f'ONLY "{table.name}"' for table in metadata.sorted_tables)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{round(seconds * 1000)}ms'")
            # The lock that an INSERT takes.
            connection.exec_driver_sql(f"LOCK TABLE {tables} IN ROW EXCLUSIVE MODE")
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        return f"another transaction has kept tables locked for {seconds:g} s"
    return None


def _locked_file(engine: Engine, seconds: float) -> str | None:
    """Ask for the lock again and again, until it is free or another process commits."""
    until = time.monotonic() + seconds
    with closing(engine.raw_connection()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            version = cursor.execute("PRAGMA data_version").fetchone()
            while not _could_begin(cursor):
                if cursor.execute("PRAGMA data_version").fetchone() != version:
                    return None
                if time.monotonic() > until:
                    return f"another process has held the lock of the file for {seconds:g} s"
                time.sleep(LOOK_SECONDS)
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    return None


def _could_begin(cursor: Any) -> bool:
    try:
        cursor.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    cursor.execute("ROLLBACK")
    return True


def file_of(url: str | URL) -> Path | None:
    """Return the file that an address names, if it is a plain one of SQLite."""
    where = make_url(url)
    if (
        where.get_backend_name() != "sqlite"
        or not where.database
        or where.database.startswith((":memory:", "file:"))
    ):
        return None
    return Path(where.database)


def unwritable_file(file: Path) -> str | None:
    """Return the reason why an SQLite file or its journal cannot be written, or None."""
    folder = file.absolute().parent
    for path, kind in ((file, "file"), (folder, "folder")):
        if not os.access(path, os.W_OK):
            return f"the {kind} {path} cannot be written by this user"
    free = shutil.disk_usage(folder).free
    return f"the folder {folder} has {free} bytes left" if free < LEAST_FREE else None


def by_index(connection: Connection) -> None:
    """Let PostgreSQL look rows up by index in this transaction, which begins now at the latest.

    A walk reads few rows of large tables. Without statistics, or with old ones of a table that has
    grown, PostgreSQL would read the tables whole.
    """
    if connection.dialect.name == "postgresql":
        if connection.get_execution_options().get("isolation_level") == BY_ITSELF:
            connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql(
            "SELECT set_config('enable_hashjoin', 'off', true),"
            " set_config('enable_mergejoin', 'off', true),"
            " set_config('enable_seqscan', 'off', true)"
        )


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the schema to the newest (or a named) revision.

    Raise SchemaError if the database has a schema that this program does not know.
    """
    from alembic import command  # slow to import, and `check` does without it
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        newest = revisions()[-1]
        if _known_revision(connection) == newest:
            _refuse_other_tables(connection)
            return
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        if _known_revision(connection) == newest:
            _write_fingerprint(connection)


def check(engine: Engine) -> None:
    """Raise SchemaError unless the schema is exactly the one that this program was written for."""
    with reading(engine).begin() as connection:
        revision = _known_revision(connection)
        others = revision is None and inspect(connection).get_table_names()
        if revision == revisions()[-1]:
            _refuse_other_tables(connection)
    if others:
        raise SchemaError(
            f"{_where(engine)} has tables, but none of Strandline's: "
            "run strandline migrate to add them"
        )
    if revision is None:
        raise SchemaError(
            f"{_where(engine)} is empty: start strandline serve, "
            "or set STRANDLINE_DATABASE_URL (--database-url)"
        )
    wanted = revisions()[-1]
    if revision != wanted:
        raise SchemaError(
            f"the database has schema {revision}, this program needs {wanted}: strandline migrate"
        )


def _refuse_other_tables(connection: Connection) -> None:
    """Raise SchemaError if the tables are those of another program with the same revision."""
    from strandline.store.schema.fingerprint import KEY, fingerprint
    from strandline.store.sql.shared_settings import agreed

    if agreed(connection).get(KEY) != fingerprint():
        raise SchemaError(
            f"{_where(connection.engine)} has tables of another version of strandline:"
            " name an empty database, or run the version that made it"
        )


def _write_fingerprint(connection: Connection) -> None:
    from strandline.store.schema.fingerprint import KEY, fingerprint
    from strandline.store.sql.shared_settings import agree

    agree(connection, KEY, fingerprint())


def _where(engine: Engine) -> str:
    return f"the database {engine.url.render_as_string(hide_password=True)}"


def is_empty(engine: Engine) -> bool:
    """Return whether the database has no tables at all."""
    with reading(engine).connect() as connection:
        return not inspect(connection).get_table_names()


def revisions() -> list[str]:
    """Return the revisions that this program knows, oldest first.

    They are the numbers that the names of the migrations begin with.
    """
    return sorted(
        file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("[0-9]*_*.py")
    )


def _known_revision(connection: Connection) -> str | None:
    """Return the revision that the database has, None if it has no tables.

    Raise SchemaError if no migration here has that name.
    """
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if revision is not None and revision not in revisions():
        raise SchemaError(
            f"{_where(connection.engine)} has schema {revision}, which this program does not know:"
            " name an empty database, or run the version of strandline that made it"
        )
    return revision
