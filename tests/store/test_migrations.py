"""Migrations: they make what the code expects, run safely at once, and refuse a schema that they do not know."""

import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pkgutil import iter_modules

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from strandline.cli import main
from strandline.store import schema
from strandline.store.schema.fingerprint import fingerprint, fingerprint_of
from strandline.store.schema.tables import metadata
from strandline.store.schema.views import views
from strandline.store.sql.engine import MIGRATIONS, check, make_engine, migrate, revisions
from worlds.builders import dataset, event, live, rows, store

CATALOG = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE tbl_name <> 'alembic_version'",
    "postgresql": """
        WITH own AS (SELECT oid, relname FROM pg_class
                      WHERE relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'
                        AND relkind IN ('r', 'p', 'v') AND NOT relispartition)
        SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull::text,
               pg_get_expr(adbin, adrelid), col_description(own.oid, attnum)
          FROM own JOIN pg_attribute ON attrelid = own.oid AND attnum > 0 AND NOT attisdropped
          LEFT JOIN pg_attrdef ON adrelid = own.oid AND adnum = attnum
        UNION ALL SELECT relname, indexdef, '', '', '', ''
          FROM own JOIN pg_indexes ON tablename = relname AND schemaname = 'public'
        UNION ALL SELECT relname, conname, pg_get_constraintdef(pg_constraint.oid), '', '', ''
          FROM own JOIN pg_constraint ON conrelid = own.oid
        UNION ALL SELECT relname, pg_get_partkeydef(oid), obj_description(oid, 'pg_class'), '', '', ''
          FROM own
        UNION ALL SELECT viewname, definition, '', '', '', ''
          FROM pg_views WHERE schemaname = 'public'""",
}


def remove_schema(engine: Engine) -> None:
    """Drop everything that migrations made."""
    with engine.begin() as connection:
        for name in reversed(views(connection.dialect.name)):
            connection.exec_driver_sql(f"DROP VIEW {name}")
        connection.exec_driver_sql("DROP TABLE alembic_version")
        metadata.drop_all(connection)


def test_migrations_create_the_schema_of_the_code(own_engine: Engine) -> None:
    for module in iter_modules(schema.__path__):
        # a table that no migration creates would be found
        import_module(f"{schema.__name__}.{module.name}")
    dialect = own_engine.dialect.name
    migrated = catalog(own_engine)

    remove_schema(own_engine)
    with own_engine.begin() as connection:
        metadata.create_all(connection)
        for name, query in views(dialect).items():
            connection.exec_driver_sql(f"CREATE VIEW {name} AS {query}")

    assert catalog(own_engine) == migrated
    assert len(migrated) > 100


def catalog(engine: Engine) -> set[tuple[str, ...]]:
    """Return what a database says of its tables, columns, indexes, constraints and views."""
    found = rows(engine, CATALOG[engine.dialect.name])
    return {tuple(" ".join(str(value).split()) for value in row) for row in found}


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


def test_reformatted_view_keeps_the_fingerprint() -> None:
    queries = views("sqlite").values()
    laid_out = [query.replace("\n", "\n    ") for query in queries]

    assert laid_out != [*queries]
    assert fingerprint_of(metadata.sorted_tables, laid_out) == fingerprint()


def test_each_table_and_column_states_in_one_line_why_it_exists() -> None:
    reasons = {table.name: table.comment for table in metadata.sorted_tables}
    reasons |= {
        str(column): column.comment for table in metadata.sorted_tables for column in table.c
    }

    assert {name for name, reason in reasons.items() if not reason or "\n" in reason} == set()
    assert len(reasons) > 350
