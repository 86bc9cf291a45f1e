"""Migrations: they make what the code expects, run safely at once, and refuse a schema that they do not know."""

import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pkgutil import iter_modules

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect

from strandline.cli import main
from strandline.store import schema
from strandline.store.schema.fingerprint import fingerprint, fingerprint_of
from strandline.store.schema.tables import metadata
from strandline.store.schema.views import views
from strandline.store.sql.engine import MIGRATIONS, check, make_engine, migrate, revisions
from worlds.builders import dataset, event, live, rows, store

VIEWS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'view'",
    "postgresql": "SELECT viewname FROM pg_views WHERE schemaname = 'public'",
}


def remove_schema(engine: Engine) -> None:
    """Drop everything that migrations made."""
    with engine.begin() as connection:
        for name in reversed(views(connection.dialect.name)):
            connection.exec_driver_sql(f"DROP VIEW {name}")
        connection.exec_driver_sql("DROP TABLE alembic_version")
        metadata.drop_all(connection)


def test_migrations_create_the_schema_of_the_code(engine: Engine) -> None:
    for module in iter_modules(schema.__path__):
        # a table that no migration creates would be found
        import_module(f"{schema.__name__}.{module.name}")

    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), metadata)
        made = {name.lower() for (name,) in rows(connection, VIEWS[engine.dialect.name])}
        keys = {
            table: inspect(connection).get_pk_constraint(table)["constrained_columns"]
            for table in metadata.tables
        }

    assert found == []
    assert made == {name.lower() for name in views(engine.dialect.name)}
    assert keys == {
        name: [*table.primary_key.columns.keys()] for name, table in metadata.tables.items()
    }
    assert len(keys) > 45


def test_a_new_store_has_these_first_rows(engine: Engine) -> None:
    held = {name: rows(engine, f"SELECT * FROM {name} ORDER BY 1") for name in metadata.tables}

    assert {name: found for name, found in held.items() if found} == {
        "numbers": [("export_changes", 0), ("version_facts", 0)],
        "store_settings": [("schema_fingerprint", fingerprint())],
    }


def test_there_is_one_newest_revision() -> None:
    script = ScriptDirectory(str(MIGRATIONS))

    assert script.get_heads() == [revisions()[-1]]
    assert script.get_bases() == ["0001"]


def test_a_store_that_is_migrated_again_keeps_what_it_has(engine: Engine) -> None:
    store(engine, [event("START", inputs=[dataset("bank.a")], outputs=[dataset("bank.b")])])

    migrate(engine)

    check(engine)
    assert live(engine) == {"etl": ["< bank.a", "> bank.b"]}


def test_several_that_migrate_an_empty_database_at_once_all_succeed(engine: Engine) -> None:
    remove_schema(engine)
    ready = threading.Barrier(3)

    def migrate_alone() -> None:
        own = make_engine(engine.url.render_as_string(hide_password=False))
        ready.wait()
        migrate(own)
        own.dispose()

    with ThreadPoolExecutor(3) as pool:
        for one in [pool.submit(migrate_alone) for _ in range(3)]:
            one.result()

    check(engine)
    assert rows(engine, "SELECT count(*) FROM numbers") == [(2,)]


@pytest.mark.parametrize("command", ["migrate", "serve", "names"])
def test_an_unknown_schema_is_refused_in_one_sentence(
    engine: Engine, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0036'")
    url = engine.url.render_as_string(hide_password=False)

    assert main([command, "--database-url", url], {"STRANDLINE_PORT": "0"}) == 1

    error = capsys.readouterr().err
    assert error.splitlines()[-1] == (
        f"strandline: the database {engine.url.render_as_string()} has schema 0036, which this program does not know:"
        " name an empty database, or run the version of strandline that made it"
    )
    assert "Traceback" not in error
    assert rows(engine, "SELECT version_num FROM alembic_version") == [("0036",)]


@pytest.mark.parametrize("command", ["migrate", "serve", "names"])
def test_a_store_with_other_tables_is_refused_in_one_sentence(
    engine: Engine, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE store_settings SET value = 'another' WHERE key = 'schema_fingerprint'"
        )
    url = engine.url.render_as_string(hide_password=False)

    assert main([command, "--database-url", url], {"STRANDLINE_PORT": "0"}) == 1

    error = capsys.readouterr().err
    assert error.splitlines()[-1] == (
        f"strandline: the database {engine.url.render_as_string()} has tables of another version of"
        " strandline: name an empty database, or run the version that made it"
    )
    assert "Traceback" not in error


def test_the_fingerprint_depends_on_every_table_and_view() -> None:
    tables, queries = metadata.sorted_tables, list(views("sqlite").values())

    others = {
        fingerprint_of([one for one in tables if one is not table], queries) for table in tables
    }
    others |= {
        fingerprint_of(tables, [one for one in queries if one != query]) for query in queries
    }

    assert fingerprint_of(tables, queries) == fingerprint()
    assert len(others) == len(tables) + len(queries)
    assert fingerprint() not in others


def test_each_table_and_column_states_in_one_line_why_it_exists() -> None:
    reasons = {table.name: table.comment for table in metadata.sorted_tables}
    reasons |= {
        str(column): column.comment for table in metadata.sorted_tables for column in table.c
    }

    assert {name for name, reason in reasons.items() if not reason or "\n" in reason} == set()
    assert len(reasons) > 350
