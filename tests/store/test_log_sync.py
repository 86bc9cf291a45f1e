"""The first connection moves SQLite's leftover log into the file."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from strandline.store.sql.engine import file_of, make_engine, reading
from worlds.builders import event, store


@pytest.fixture
def left(own_sqlite_engine: Engine, tmp_path: Path) -> Path:
    """The file of a process that was killed with an event in its log."""
    file = file_of(own_sqlite_engine.url)
    assert file is not None
    store(own_sqlite_engine, [event()])
    folder = tmp_path / "left"
    folder.mkdir()
    for one in (file, file.with_name(f"{file.name}-wal")):
        shutil.copy(one, folder)
    return folder / file.name


def events_without_log(file: Path, folder: Path) -> int:
    """Count the events in the file alone, without its log."""
    with closing(sqlite3.connect(shutil.copy(file, folder / "alone.db"))) as connection:
        count: int = connection.execute("SELECT count(*) FROM event_keys").fetchone()[0]
    return count


@pytest.mark.parametrize("only_reads", [False, True])
def test_the_first_connection_moves_the_log_into_the_file(
    left: Path, tmp_path: Path, *, only_reads: bool
) -> None:
    before = events_without_log(left, tmp_path)
    engine = make_engine(f"sqlite:///{left}")
    with (reading(engine) if only_reads else engine).connect():
        after = events_without_log(left, tmp_path)
    engine.dispose()

    assert (before, after) == (0, 1)


def test_read_only_log_is_read_in_place(left: Path) -> None:
    engine = make_engine(f"sqlite:///file:{left}?mode=ro&uri=true")
    with reading(engine).connect() as connection:
        found = connection.exec_driver_sql("SELECT count(*) FROM event_keys").scalar()
    engine.dispose()

    assert found == 1
