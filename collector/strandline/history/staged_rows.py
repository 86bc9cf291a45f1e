"""Relations and edges of runs while a store is rebuilt.

A template needs all rows of its run at once, and the files of a rebuild bring relations and edges
one after the other. So both wait in two tables of their own, which nothing else knows, and are
moved into templates at the end.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    LargeBinary,
    MetaData,
    Select,
    SmallInteger,
    Table,
    select,
)
from sqlalchemy.schema import PrimaryKeyConstraint

from strandline.core.changes.memory import BoundedCache
from strandline.core.changes.rows import EdgesUsed, RelationSeen
from strandline.store.ingest.run_templates import RunTemplates
from strandline.store.ingest.writer_state import KNOWN
from strandline.store.schema.columns import CLUSTERED, id_column, time_column
from strandline.store.schema.relation_tables import TEMPLATES
from strandline.store.schema.run_tables import runs
from strandline.store.sql.upsert import insert_values, values_of

RUNS_AT_ONCE = 5_000
STAGED_KINDS = (RelationSeen, EdgesUsed)

_metadata = MetaData()
_relations = Table(
    "rebuild_relations",
    _metadata,
    id_column("run_id", "as in run_relations"),
    Column("direction", SmallInteger, nullable=False),
    id_column("dataset_id", "as in run_relations"),
    Column("creates", SmallInteger, nullable=False),
    time_column("first_at", "as in run_relations"),
    time_column("newest_at", "as in run_relations"),
    PrimaryKeyConstraint("run_id", "direction", "dataset_id"),
    **CLUSTERED,
)
_edges = Table(
    "rebuild_edges",
    _metadata,
    id_column("run_id", "as in run_edges"),
    id_column("sink_id", "as in run_edges"),
    id_column("rule", "as in run_edges"),
    Column("set_hash", LargeBinary, nullable=False),
    time_column("at", "as in run_edges"),
    PrimaryKeyConstraint("run_id", "sink_id", "rule"),
    **CLUSTERED,
)
_TABLES: dict[type[Any], Table] = {RelationSeen: _relations, EdgesUsed: _edges}


def begin_staging(engine: Engine) -> None:
    """Create the two tables, empty: an attempt that failed may have left them."""
    _metadata.drop_all(engine)
    _metadata.create_all(engine)


def stage(connection: Connection, kind: type[Any], rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows of one kind, one a key."""
    table, columns = _TABLES[kind], kind._fields
    values = insert_values(table, columns, connection.dialect.name)
    statement = f"INSERT INTO {table.name} ({', '.join(columns)}) {values}"
    connection.exec_driver_sql(statement, values_of(connection, table, columns, rows))


def move_into_templates(engine: Engine) -> None:
    """Move all staged rows into templates and drop the two tables.

    A transaction takes some thousand runs.
    """
    stored_ids = BoundedCache(KNOWN)
    templates = RunTemplates(
        lambda _, id_: stored_ids.get(id_) is None and stored_ids.put(id_, True)
    )
    after: int | None = -(2**63)
    while after is not None:
        with engine.begin() as connection:
            after = _move_some(connection, templates, after)
    _metadata.drop_all(engine)
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            connection.exec_driver_sql(f"ANALYZE {', '.join(table.name for table in TEMPLATES)}")


def _move_some(connection: Connection, templates: RunTemplates, after: int) -> int | None:
    """Move the rows of the runs that follow an id.

    Return the last run's id, or None if no run is left.

    The last page has all rows that follow, also those of runs that have no row.
    """
    page = select(runs.c.id).where(runs.c.id > after).order_by(runs.c.id).limit(RUNS_AT_ONCE)
    ids = connection.scalars(page).all()
    is_last = len(ids) < RUNS_AT_ONCE
    last = 2**63 - 1 if is_last else ids[-1]
    relations = map(RelationSeen._make, connection.execute(_between(_relations, after, last)))
    edges = map(EdgesUsed._make, connection.execute(_between(_edges, after, last)))
    templates.write(
        connection, relations, (edge._replace(set_hash=bytes(edge.set_hash)) for edge in edges)
    )
    return None if is_last else last


def _between(table: Table, after: int, last: int) -> Select[Any]:
    """Select the rows of the runs between two ids, the latter included."""
    query = select(table).where(table.c.run_id > after, table.c.run_id <= last)
    return query.order_by(*table.primary_key.columns)
