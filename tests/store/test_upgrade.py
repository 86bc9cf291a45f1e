"""Upgrades from 0.1.0, tried with a sample revision that adds a column and a table."""

import shutil
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect
from sqlalchemy.exc import DatabaseError

from strandline.cli import main
from strandline.errors import SchemaError
from strandline.store.backup import back_up, restore
from strandline.store.sql import engine as store_engine
from strandline.store.sql.engine import MIGRATIONS, check, make_engine, migrate, revisions
from worlds.builders import dataset, event, history, live, rows, store

SAMPLE = """
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute("ALTER TABLE jobs ADD COLUMN sample TEXT DEFAULT 'new' NOT NULL")
    op.execute("CREATE TABLE samples (id BIGINT PRIMARY KEY)")
    op.execute("INSERT INTO samples SELECT id FROM jobs")
"""
BROKEN = f'{SAMPLE}    op.execute("INSERT INTO nowhere VALUES (1)")\n'


@pytest.fixture
def stored(own_engine: Engine) -> Engine:
    """Return a store of 0.1.0 with a job that runs and one that has ended."""
    begun = event("START", inputs=[dataset("bank.a")], outputs=[dataset("bank.b")])
    ended = event(
        "COMPLETE",
        run=2,
        job="nightly",
        seconds=5,
        inputs=[dataset("bank.b")],
        outputs=[dataset("bank.c")],
    )
    store(own_engine, [begun, ended])
    return own_engine


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make this the program of a version whose schema is 0002; return the file of the revision."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    revision = folder / "versions" / "0002_sample.py"
    revision.write_text(SAMPLE)
    monkeypatch.setattr(store_engine, "MIGRATIONS", folder)
    monkeypatch.setattr("strandline.store.schema.fingerprint.fingerprint", lambda: "of 0002")
    return revision


def address(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def test_an_upgrade_keeps_every_row(stored: Engine, next_version: Path) -> None:
    before = live(stored), history(stored), counts(stored)

    assert main(["migrate", "--database-url", address(stored)], {}) == 0

    check(stored)
    assert (live(stored), history(stored), counts(stored)) == before
    assert rows(stored, "SELECT DISTINCT sample FROM jobs") == [("new",)]
    assert rows(stored, "SELECT count(*) FROM samples") == rows(stored, "SELECT count(*) FROM jobs")
    store(stored, [event("START", run=3, job="later", outputs=[dataset("bank.d")])])
    assert live(stored)["later"] == ["> bank.d"]


def counts(engine: Engine) -> dict[str, int]:
    """Return the rows of each table that 0.1.0 has."""
    names = set(inspect(engine).get_table_names()) - {"samples"}
    return {name: rows(engine, f'SELECT count(*) FROM "{name}"')[0][0] for name in names}


def test_a_store_that_was_not_upgraded_is_refused_with_the_command(
    stored: Engine, next_version: Path
) -> None:
    with pytest.raises(
        SchemaError, match="has schema 0001, this program needs 0002: strandline migrate"
    ):
        check(stored)


def test_the_earlier_version_refuses_an_upgraded_store(
    stored: Engine, next_version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(stored)
    monkeypatch.setattr(store_engine, "MIGRATIONS", MIGRATIONS)

    assert revisions() == ["0001"]
    with pytest.raises(SchemaError, match="has schema 0002, which this program does not know"):
        migrate(stored)


def test_an_upgrade_that_fails_changes_nothing(stored: Engine, next_version: Path) -> None:
    next_version.write_text(BROKEN)

    with pytest.raises(DatabaseError, match="nowhere"):
        migrate(stored)

    assert rows(stored, "SELECT version_num FROM alembic_version") == [("0001",)]
    assert "sample" not in [column["name"] for column in inspect(stored).get_columns("jobs")]
    assert not inspect(stored).has_table("samples")
    next_version.write_text(SAMPLE)
    migrate(stored)
    check(stored)


def test_a_copy_of_the_earlier_version_is_restored_and_upgraded(
    stored: Engine, empty_url: str, tmp_path: Path, next_version: Path
) -> None:
    back_up(stored, tmp_path / "copy")

    restore(empty_url, tmp_path / "copy")
    restored = make_engine(empty_url)
    migrate(restored)

    check(restored)
    assert live(restored) == live(stored)
    assert rows(restored, "SELECT DISTINCT sample FROM jobs") == [("new",)]
    restored.dispose()
