"""Migrations: what they make is what the code expects, and the rows of an earlier schema survive."""

import ast
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, insert
from sqlalchemy.schema import SchemaItem

from strandline.core.changes.edges import Edge, edges_in
from strandline.store.migrations import versions
from strandline.store.schema.columns import is_on
from strandline.store.schema.tables import metadata, namespaces
from strandline.store.schema.version_tables import version_head
from strandline.store.schema.views import create_views, drop_views
from strandline.store.sql.compression import expand
from strandline.store.sql.engine import check, migrate
from worlds.builders import dataset, event, live, rows, store

FIRST = "0001"
HASH = {"sqlite": "x'beef'", "postgresql": "'\\xbeef'"}  # how each writes two bytes

VIEWS = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'view'",
    "postgresql": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
}
SCHEMA = {
    "sqlite": ("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type <> 'view'",),
    "postgresql": (
        (
            "SELECT table_name, column_name, ordinal_position, data_type, is_nullable, column_default, is_identity"
            "  FROM information_schema.columns WHERE table_schema = 'public'"
        ),
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        (
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace"
        ),
        "SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace",
        (
            "SELECT attrelid::regclass::text, attname, attstorage FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
            " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0"
        ),
    ),
}


def back_to_nothing(engine: Engine) -> None:
    """Drop everything that migrations made."""
    with engine.begin() as connection:
        drop_views(connection)
        found = MigrationContext.configure(connection)
        assert found.get_current_revision() is not None
        connection.exec_driver_sql("DROP TABLE alembic_version")
        metadata.drop_all(connection)


def test_they_make_the_schema_of_the_code(engine: Engine) -> None:
    def on_this_database(part: SchemaItem, *_: object) -> bool:
        return is_on(engine.dialect.name, part)

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": on_this_database})
        found = compare_metadata(context, metadata)

    assert version_head.metadata is metadata  # all tables are in it
    assert found == []


def test_rows_of_the_first_schema_survive(engine: Engine) -> None:
    back_to_nothing(engine)
    migrate(engine, FIRST)
    with engine.begin() as connection:
        connection.execute(insert(namespaces).values(id=7, name="old"))

    migrate(engine)
    migrate(engine)

    check(engine)
    assert rows(engine, "SELECT * FROM namespaces") == [(7, "old")]
    store(engine, [event("START", inputs=[dataset("bank.a")])])
    assert live(engine) == {"etl": ["< bank.a"]}


def test_edges_that_were_a_row_each_survive(engine: Engine) -> None:
    back_to_nothing(engine)
    migrate(engine, "0006")
    with engine.begin() as connection:
        for position, source, masking in ((0, 5, "NULL"), (1, 6, "NULL"), (2, 5, "1")):
            connection.exec_driver_sql(
                "INSERT INTO edges (set_hash, position, sink_column, source_id, source_column, type, masking)"
                f" VALUES ({HASH[engine.dialect.name]}, {position}, 'c{position}', {source}, 's', 'DIRECT', {masking})"
            )

    migrate(engine)

    packed = rows(engine, "SELECT source_id, columns FROM edge_columns")
    assert [(source, edges_in(expand(bytes(columns)))) for source, columns in packed] == [
        (5, [Edge(0, "c0", "s", "DIRECT", "", "", None), Edge(2, "c2", "s", "DIRECT", "", "", 1)]),
        (6, [Edge(1, "c1", "s", "DIRECT", "", "", None)]),
    ]


def test_they_are_frozen() -> None:
    """A migration that calls the program's own code makes something else whenever that changes."""
    files = [*Path(versions.__file__).parent.glob("0*.py")]
    used = {
        name.split(".")[0]
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }

    assert len(files) >= 9
    assert "strandline" not in used


def test_they_make_the_views_of_the_code(engine: Engine) -> None:
    with engine.begin() as connection:
        found = views_of(connection)
        drop_views(connection)
        create_views(connection)

        assert found == views_of(connection)


def test_every_way_to_the_newest_schema_leads_to_the_same(engine: Engine) -> None:
    fresh = schema_of(engine)
    ways = {}
    for revision in revisions()[:-1]:
        back_to_nothing(engine)
        migrate(engine, revision)
        migrate(engine)
        ways[revision] = schema_of(engine) == fresh

    assert ways == dict.fromkeys(revisions()[:-1], True)
    assert len(fresh) > 60


def revisions() -> list[str]:
    """All revisions, the oldest first."""
    script = ScriptDirectory(str(Path(versions.__file__).parent.parent))
    return [one.revision for one in script.walk_revisions()][::-1]


def views_of(connection: Connection) -> list[tuple[object, ...]]:
    """Every view with its query, as the database has it."""
    return rows(connection, VIEWS[connection.dialect.name])


def schema_of(engine: Engine) -> list[tuple[object, ...]]:
    """Everything that a database says of its tables, indexes, constraints and views."""
    return [row for query in (*SCHEMA[engine.dialect.name], VIEWS[engine.dialect.name]) for row in rows(engine, query)]
