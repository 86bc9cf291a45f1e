"""Migrations: what they make is what the code expects, and the rows of an earlier schema survive."""

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, insert

from collector.builders import dataset, event, live, rows, store
from strandline.core.edges import Edge, edges_in
from strandline.store.compression import expand
from strandline.store.connect import check, migrate
from strandline.store.tables import metadata, namespaces
from strandline.store.version_tables import version_head
from strandline.store.views import drop_views

FIRST = "0001"
HASH = {"sqlite": "x'beef'", "postgresql": "'\\xbeef'"}  # how each writes two bytes


def back_to_nothing(engine: Engine) -> None:
    """Drop everything that migrations made."""
    with engine.begin() as connection:
        drop_views(connection)
        found = MigrationContext.configure(connection)
        assert found.get_current_revision() is not None
        connection.exec_driver_sql("DROP TABLE alembic_version")
        metadata.drop_all(connection)


def test_they_make_the_schema_of_the_code(engine: Engine) -> None:
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), metadata)

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
