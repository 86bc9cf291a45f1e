"""Backups under load restore a prefix of the events with all its rows."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg import ServerCursor
from sqlalchemy import Engine, text
from sqlalchemy.event import listen

from fixtures.versions_server.process import served
from strandline.cli import main
from strandline.errors import RefusedError
from strandline.store.backup import back_up, checksum_file, restore
from strandline.store.damage import damage_in
from strandline.store.ingest.take import Outcome
from strandline.store.schema.version_tables import version_facts
from strandline.store.sql.engine import check, make_engine
from worlds.builders import dataset, encode, event, rows, store

AT_LEAST = 40


@pytest.fixture
def engine(own_engine: Engine) -> Engine:
    """Use a database of the test's own: copies hold the file as it is."""
    return own_engine


@pytest.fixture
def sqlite_engine(own_sqlite_engine: Engine) -> Engine:
    """Use a database of the test's own: copies hold the file as it is."""
    return own_sqlite_engine


@contextmanager
def writing(engine: Engine) -> Iterator[list[bytes]]:
    """A writer that stores one event after the other.

    Gives those that are committed, in their order.
    """
    done, stopping, started = [], threading.Event(), threading.Event()

    def write() -> None:
        for number in range(100_000):
            body = encode(
                event(
                    "COMPLETE", run=number, seconds=number, outputs=[dataset(f"bank.t{number % 7}")]
                )
            )
            store(engine, [body])
            done.append(body)
            if number >= AT_LEAST:
                started.set()
            if stopping.is_set():
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert started.wait(120)
        yield done
    finally:
        stopping.set()
        thread.join()


def events(engine: Engine) -> list[tuple[object, ...]]:
    return rows(engine, "SELECT event_time FROM raw_events ORDER BY event_time")


def test_copy_made_under_load_restores_a_prefix_of_the_events(
    engine: Engine, empty_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "copies" / "strandline.copy"
    with writing(engine) as done:
        before = len(done)
        copied = back_up(engine, file)
        after = len(done) + 1
    again = make_engine(empty_url)
    restored = restore(empty_url, file)
    kept = events(again)

    assert restored.rows == copied.rows
    assert before <= len(kept) <= after
    assert kept == events(engine)[: len(kept)]
    assert rows(again, "SELECT count(*) FROM runs") == [(len(kept),)]
    check(again)
    assert [one.kind for one in store(again, [done[0], encode(event(run=200_000))])] == [
        "duplicate",
        "stored",
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    again.dispose()


def test_events_stored_during_a_copy_are_in_neither_count_nor_copy(
    engine: Engine, tmp_path: Path
) -> None:
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL counts as it copies, in one statement's snapshot")
    store(engine, [event(run=1)])
    copying, stored = make_engine(str(engine.url)), list[Outcome]()

    def interrupt(statement: str) -> None:
        if statement.endswith('"runs"') and not stored:
            stored.extend(store(engine, [event(run=2)]))

    listen(copying, "connect", lambda connection, _: connection.set_trace_callback(interrupt))

    copied = back_up(copying, tmp_path / "copy")

    assert [one.kind for one in stored] == ["stored"]
    assert copied.rows["runs"] == 1
    assert rows(engine, "SELECT count(*) FROM runs") == [(2,)]
    copying.dispose()


def test_backup_overwrites_nothing_and_restore_rejects_damage(
    engine: Engine, empty_url: str, tmp_path: Path
) -> None:
    store(engine, [event(run=number) for number in range(50)])
    file, damaged = tmp_path / "copy", tmp_path / "damaged"
    back_up(engine, file)
    content = bytearray(file.read_bytes())
    for place in range(len(content) // 4, len(content) // 2):
        content[place] ^= 0x5A
    damaged.write_bytes(content)
    checksum_file(damaged).write_bytes(checksum_file(file).read_bytes())

    with pytest.raises(RefusedError, match="already exists"):
        back_up(engine, file)
    with pytest.raises(RefusedError, match=r"already exists|not empty"):
        restore(engine.url.render_as_string(hide_password=False), file)
    with pytest.raises(RefusedError, match="damaged"):
        restore(empty_url, damaged)
    with pytest.raises(RefusedError, match="not a copy"):
        restore(empty_url, Path(__file__))
    assert not (tmp_path / "restored").exists()
    assert restore(empty_url, file).rows["raw_events"] == 50


def test_restore_rejects_a_copy_with_one_changed_byte(
    engine: Engine, empty_url: str, tmp_path: Path
) -> None:
    """SQLite's own check does not notice a changed byte in a name."""
    store(engine, [event(outputs=[dataset("bank.transfers")])])
    file = tmp_path / "copy"
    back_up(engine, file)
    content = bytearray(file.read_bytes())
    content[max(content.find(b"transfers"), 100)] ^= 1
    file.write_bytes(content)

    with pytest.raises(RefusedError, match=r"damaged: its SHA-256 is not the one in copy\.sha256"):
        restore(empty_url, file)
    checksum_file(file).unlink()
    with pytest.raises(RefusedError, match="cannot be verified"):
        restore(empty_url, file)
    assert not (tmp_path / "restored").exists()


def test_check_finds_each_changed_byte_of_a_stored_event(engine: Engine) -> None:
    store(engine, [event(run=number) for number in range(3)])
    before = list(damage_in(engine))
    (hash_, body) = rows(engine, "SELECT hash, body FROM raw_events ORDER BY hash LIMIT 1")[0]
    unnoticed = []
    for place in range(len(body)):
        changed = bytearray(body)
        changed[place] ^= 1 << place % 3
        with engine.begin() as connection:
            connection.execute(
                text("UPDATE raw_events SET body = :body WHERE hash = :hash"),
                {"body": bytes(changed), "hash": hash_},
            )
        if not any(bytes(hash_).hex() in damage for damage in damage_in(engine)):
            unnoticed.append(place)

    assert before == []
    assert unnoticed == []


def test_check_finds_a_changed_hash_of_a_stored_event(engine: Engine) -> None:
    store(engine, [event(run=number) for number in range(3)])
    (hash_,) = rows(engine, "SELECT hash FROM raw_events ORDER BY hash LIMIT 1")[0]
    changed = bytes([hash_[0] ^ 1]) + hash_[1:]
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE raw_events SET hash = :new WHERE hash = :old"),
            {"new": changed, "old": hash_},
        )

    assert list(damage_in(engine)) == [f"event {changed.hex()} is not known by its hash"]


def with_changed_byte(value: str | bytes, place: int) -> str | bytes:
    """Return the value with another byte at a place."""
    changed = bytearray(value.encode() if isinstance(value, str) else value)
    changed[place] ^= 1
    return changed.decode() if isinstance(value, str) else bytes(changed)


def test_check_finds_each_changed_byte_of_a_name_a_facet_and_the_log_of_versions(
    engine: Engine,
) -> None:
    large = {"fields": [{"name": f"column_{n}", "type": "int"} for n in range(200)]}
    made = [dataset("bank.transfers", schema=large)]
    store(engine, [event("COMPLETE", run=1, job="load", outputs=made)])
    before = list(damage_in(engine))
    unnoticed = []
    for table, column in (("jobs", "name"), ("datasets", "name"), ("facet_bodies", "body")):
        change = text(f"UPDATE {table} SET {column} = :new WHERE {column} = :old")
        (value,) = rows(engine, f"SELECT {column} FROM {table} LIMIT 1")[0]
        for place in range(len(value)):
            changed = with_changed_byte(value, place)
            with engine.begin() as connection:
                connection.execute(change, {"new": changed, "old": value})
            found = list(damage_in(engine))
            with engine.begin() as connection:
                connection.execute(change, {"new": value, "old": changed})
            if len(found) != 1:
                unnoticed.append((table, place, found))
    with engine.begin() as connection:
        cut = {"seq": 7, "at": 1, "kind": "RunStarted", "body": b'{"job": ['}
        connection.execute(version_facts.insert().values(cut))

    assert before == []
    assert unnoticed == []
    (found_in_log,) = damage_in(engine)
    assert found_in_log.startswith("entry 7 of the log of versions cannot be read: ")


def test_check_has_a_page_of_rows_in_memory(postgres_engine: Engine) -> None:
    """A cursor of psycopg has all rows of a statement in memory, unless it is the server's."""
    store(postgres_engine, [event("COMPLETE", job="load", outputs=[dataset("bank.transfers")])])
    whole = list[str]()

    def look(_: Any, cursor: Any, statement: str, *__: Any) -> None:
        if "LIMIT" not in statement and not isinstance(cursor, ServerCursor):
            whole.append(statement)

    listen(postgres_engine, "after_cursor_execute", look)
    tables = ("version_facts", "facet_bodies", "jobs", "datasets")

    assert list(damage_in(postgres_engine)) == []
    assert [one for one in whole if any(f"FROM {name}" in one for name in tables)] == []


def test_check_finds_changed_bytes_in_the_pages_of_a_file(
    sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(str(sqlite_engine.url.database))
    store(sqlite_engine, [event(run=number) for number in range(200)])
    sqlite_engine.dispose()
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'event_keys'"
        ).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    for place in range(page * size - 400, page * size):
        content[place] ^= 0x5A
    file.write_bytes(content)

    code = main(["check", "--data", "--database-url", str(sqlite_engine.url)], {})

    assert code == 1
    assert "damaged" in capsys.readouterr().err


def test_commands_report_what_they_did(
    sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, target = tmp_path / "copy", tmp_path / "new" / "strandline.db"

    assert main(["backup", str(file), "--database-url", sqlite_url], {}) == 0
    assert main(["restore", str(file), "--database-url", f"sqlite:///{target}"], {}) == 0
    assert main(["restore", str(file), "--database-url", f"sqlite:///{target}"], {}) == 1
    said = capsys.readouterr()
    assert "copy is a checked copy: 0 events" in said.out
    assert "is restored and checked: 0 events" in said.out
    assert "already exists; choose another name" in said.err


def test_database_and_folder_are_private_to_their_user(tmp_path: Path) -> None:
    file = tmp_path / "data" / "strandline.db"
    engine = make_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (id INTEGER)"))
        modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in file.parent.iterdir()}
    engine.dispose()

    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert modes == dict.fromkeys(
        ("strandline.db", "strandline.db-wal", "strandline.db-shm"), 0o600
    )


@pytest.mark.slow
def test_second_server_on_one_sqlite_file_is_rejected(own_sqlite_url: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "strandline",
        "serve",
        "--port",
        "0",
        "--database-url",
        own_sqlite_url,
    ]
    paths = os.pathsep.join(path for path in sys.path if path)
    with served(own_sqlite_url, tmp_path) as (first,):
        second = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
            timeout=120,
            check=False,
        )
        first.kill()
        first.start()  # the lock ended with the process

        assert first.client.get("/healthz").status_code == 200
    assert second.returncode == 1
    assert "another strandline serve has" in second.stderr
    assert "several servers need PostgreSQL" in second.stderr


def test_plain_file_copy_misses_events_in_the_log(sqlite_engine: Engine, tmp_path: Path) -> None:
    """This is why the command exists: a plain `cp` of the file lacks events that the backup has."""
    store(sqlite_engine, [event(run=number) for number in range(5)])
    file, plain = tmp_path / "copy", tmp_path / "plain.db"
    plain.write_bytes(Path(str(sqlite_engine.url.database)).read_bytes())
    back_up(sqlite_engine, file)
    counts = [
        sqlite3.connect(one).execute("SELECT count(*) FROM raw_events").fetchone()[0]
        for one in (plain, file)
    ]

    assert counts == [0, 5]
