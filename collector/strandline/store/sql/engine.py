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
POOL, OVERFLOW = (
    5,
    10,
)  # connections of a process: those that stay, and so many more while all are lent
IDLE_SECONDS = (
    300  # silence of a process inside a transaction: it is stopped, and its locks hold others up
)
STATEMENT_SECONDS = "strandline_statement_seconds"
CANCEL_SECONDS = 2  # that PostgreSQL may take to accept the wish to cancel a statement
MIGRATION_LOCK = 0x7374_7261_6E64  # "strand"
BY_ITSELF = "AUTOCOMMIT"
MIGRATIONS = Path(__file__).parent.parent / "migrations"


def make_engine(url: str, pool_size: int = POOL) -> Engine:
    """An engine for an SQLAlchemy URL.

    A SQLite file and its folder are made where they are missing.
    """
    where = make_url(url)
    if where.get_backend_name() != "sqlite":
        engine = create_engine(
            where.set(drivername="postgresql+psycopg"),
            pool_size=pool_size,
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
    engine = create_engine(where, pool_size=pool_size) if where.database else create_engine(where)
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
    """Questions are planned for what they ask.

    A plan for any list of ids takes ten for many, and was five times slower for
    thousands. Whoever writes does the same each time, and lets PostgreSQL keep plans
    (store/ingest/take).
    """
    connection.autocommit = True
    connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'")
    connection.execute("SET plan_cache_mode = force_custom_plan")
    connection.autocommit = False


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = (
        None  # SQLAlchemy's BEGIN is ours (below), not sqlite3's implicit one
    )
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}").close()
    if connection.execute("PRAGMA auto_vacuum").fetchone() != (
        INCREMENTAL,
    ):  # where it is so already, this waits for writers
        # of a new file, and of one that VACUUM goes over: before WAL, which begins the file
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL").close()
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "cache_size = -65536",
        "temp_store = MEMORY",
        "wal_autocheckpoint = 8000",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


class LogSync:
    """Syncs the log that a killed process has left, at the first connection of this one.

    SQLite takes a transaction for committed that it finds whole in the log, though its process was
    killed before the sync. An event of it that is sent again changes nothing, so no commit would
    sync it: it would be answered, and lost with a power cut.
    """

    def __init__(self) -> None:
        self._process = 0

    def __call__(self, connection: Any, _record: Any) -> None:
        """Move the log into the file, which syncs both.

        Nothing where a process has done so before.
        """
        if self._process == os.getpid():
            return
        with suppress(
            sqlite3.OperationalError
        ):  # a file that cannot be written just now: the next connection tries again
            connection.execute("PRAGMA wal_checkpoint").close()
            self._process = os.getpid()


def _begin_immediate(connection: Connection) -> None:
    reading = connection.get_execution_options().get("strandline_reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _narrow(
    connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
) -> tuple[str, Any]:
    """Let a connection that is a key's own see what the key sees."""
    if "strandline_access" not in connection.get_execution_options():
        return statement, parameters
    from strandline.store.sql.narrowed import narrow  # knows all tables: only servers ask for it

    return narrow(connection, cursor, statement, parameters, context, many)


def _let_work_stop(engine: Engine) -> None:
    """Let work that can be stopped (core.stopping) know its connections, and stop between statements."""
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
    """End the statement that a connection of a driver is running, if any; another thread may call it."""
    if isinstance(connection, sqlite3.Connection):
        connection.interrupt()
        return
    from psycopg import Error

    with suppress(Error):  # a connection that is lost runs nothing
        connection.cancel_safe(timeout=CANCEL_SECONDS)


def reading(engine: Engine) -> Engine:
    """The same engine for transactions that only read: on SQLite they do not wait for a writer."""
    return engine.execution_options(strandline_reading=True)


@contextmanager
def read_from(engine: Engine) -> Iterator[Connection]:
    """A connection for a transaction that only reads.

    It ends with COMMIT: with ROLLBACK psycopg forgets all statements that it
    has prepared, and PostgreSQL plans each of them anew.
    """
    with reading(engine).connect() as connection:
        yield connection
        with suppress(DBAPIError):  # a connection that is lost now has been read from
            connection.commit()


def by_itself(connection: Connection) -> Connection:
    """The same connection, where each statement is a transaction by itself on PostgreSQL.

    It sees what was committed before it.

    In a transaction that only reads it sees no less there (READ COMMITTED), and beginning and
    ending one takes two round trips.
    """
    return (
        connection.execution_options(isolation_level=BY_ITSELF)
        if connection.dialect.name == "postgresql"
        else connection
    )


def unwritable(connection: Connection) -> str | None:
    """Why nothing can be stored just now, as far as can be seen without storing something."""
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
    """What PostgreSQL lets in, where that is less than one server and one consumer may open."""
    if connection.dialect.name != "postgresql":
        return None
    setting = "current_setting('{}')::int".format
    query = f"SELECT {setting('max_connections')} - {setting('superuser_reserved_connections')}"
    allowed, consumer = int(connection.exec_driver_sql(query).scalar_one()), POOL + OVERFLOW
    if allowed >= 3 * consumer:
        return None
    return (
        f"max_connections lets {allowed} in: strandline serve opens up to {2 * consumer}, strandline consume up to"
        f" {consumer}; what finds none waits and tries again"
    )


def locked(engine: Engine, seconds: float = LOCK_SECONDS) -> str | None:
    """Why a transaction that stores something could not begin within so many seconds, where others commit nothing either."""
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
            connection.exec_driver_sql(
                f"LOCK TABLE {tables} IN ROW EXCLUSIVE MODE"
            )  # as any INSERT does
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        return f"another transaction has kept tables locked for {seconds:g} s"
    return None


def _locked_file(engine: Engine, seconds: float) -> str | None:
    """Asks for the lock again and again.

    Who commits meanwhile gives it on, and an event gets its turn.
    """
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
    """The file that an address names, if it is a plain one of SQLite."""
    where = make_url(url)
    if (
        where.get_backend_name() != "sqlite"
        or not where.database
        or where.database.startswith((":memory:", "file:"))
    ):
        return None
    return Path(where.database)


def unwritable_file(file: Path) -> str | None:
    """Why nothing can be stored in an SQLite file; its journal is made beside it."""
    folder = file.absolute().parent
    for one, what in ((file, "file"), (folder, "folder")):
        if not os.access(one, os.W_OK):
            return f"the {what} {one} cannot be written by this user"
    free = shutil.disk_usage(folder).free
    return f"the folder {folder} has {free} bytes left" if free < LEAST_FREE else None


def by_index(connection: Connection) -> None:
    """For this transaction, which begins now at the latest.

    A walk reads few rows of large tables, so PostgreSQL shall look them up.

    A new database has no statistics, and with old ones a table that has grown looks small: both
    would be read whole.
    """
    if connection.dialect.name == "postgresql":
        if connection.get_execution_options().get("isolation_level") == BY_ITSELF:
            connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql(
            "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),"
            " set_config('enable_seqscan', 'off', true)"
        )


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the schema to the newest (or a named) revision.

    Raise SchemaError if the database has a schema that this program does not know.
    """
    from alembic import command  # only who migrates waits for it: `check` asks the database alone
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
        found = _known_revision(connection)
        others = found is None and inspect(connection).get_table_names()
        if found == revisions()[-1]:
            _refuse_other_tables(connection)
    if others:
        raise SchemaError(
            f"{_where(engine)} has tables, and none of Strandline's: strandline migrate adds them"
        )
    if found is None:
        raise SchemaError(
            f"{_where(engine)} is empty: nothing was collected there yet (strandline serve makes its tables)"
        )
    wanted = revisions()[-1]
    if found != wanted:
        raise SchemaError(
            f"the database has schema {found}, this program needs {wanted}: strandline migrate"
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
    """Whether the database has no tables: neither Strandline's nor those of somebody else."""
    with reading(engine).connect() as connection:
        return not inspect(connection).get_table_names()


def revisions() -> list[str]:
    """The revisions that this program knows, the oldest first.

    The numbers that the files of the migrations begin with.
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
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if found is not None and found not in revisions():
        raise SchemaError(
            f"{_where(connection.engine)} has schema {found}, which this program does not know:"
            " name an empty database, or run the version of strandline that made it"
        )
    return found
