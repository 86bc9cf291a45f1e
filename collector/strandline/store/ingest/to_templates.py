"""A store that keeps a row for each relation of each run becomes one that keeps templates, in one transaction.

Writers wait meanwhile, and readers see either. It runs once no program of the schema before is left: such a one would look
for the rows, and write some; those are moved the next time. What stops half-way has changed nothing.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine, Select, Table, select

from strandline.core.changes.parse_cache import Halves
from strandline.core.changes.rows import EdgesUsed, RelationSeen
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.ingest.run_templates import RunTemplates
from strandline.store.ingest.writer_state import KNOWN
from strandline.store.schema.tables import TEMPLATES, edge_use_rows, relation_rows, runs
from strandline.store.schema.views import show_templates
from strandline.store.sql.shared_settings import agree, agreed, has_templates, raise_generation

RUNS_AT_ONCE = 5_000
SETTING = "templates"


def to_templates(engine: Engine, report: Callable[[int], None] = lambda _: None) -> int:
    """Move all rows into templates; gives of how many runs there were any.

    report: hears after each few thousand runs how many were gone over.
    """
    with engine.begin() as connection:
        keep_writers_out(connection)
        if has_templates(agreed(connection)) and not _has_rows(connection):
            return 0
        moved = _move(connection, report)
        for table in (relation_rows, edge_use_rows):
            statement = "TRUNCATE" if connection.dialect.name == "postgresql" else "DELETE FROM"
            connection.exec_driver_sql(f"{statement} {table.name}")
        show_templates(connection, True)
        agree(connection, SETTING, "1")
        raise_generation(connection)
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"ANALYZE {', '.join(table.name for table in TEMPLATES)}")
    return moved


def to_rows(engine: Engine) -> None:
    """Let a store that is being filled keep rows for now: millions are written faster so, and moved at the end."""
    with engine.begin() as connection:
        keep_writers_out(connection)
        show_templates(connection, False)
        agree(connection, SETTING, "0")


def _has_rows(connection: Connection) -> bool:
    return any(connection.execute(select(table).limit(1)).first() for table in (relation_rows, edge_use_rows))


def _move(connection: Connection, report: Callable[[int], None]) -> int:
    """Page by page, in the order of the runs' ids; the last page has whatever follows."""
    stored_ids = Halves(KNOWN)
    templates = RunTemplates(lambda _, id_: stored_ids.get(id_) is None and stored_ids.put(id_, True))
    after, over, moved = -(2**63), 0, 0
    while True:
        page = select(runs.c.id).where(runs.c.id > after).order_by(runs.c.id).limit(RUNS_AT_ONCE)
        ids = connection.scalars(page).all()
        last = ids[-1] if len(ids) == RUNS_AT_ONCE else 2**63 - 1
        relations = map(RelationSeen._make, connection.execute(_within(relation_rows, RelationSeen, after, last)))
        edges = map(EdgesUsed._make, connection.execute(_within(edge_use_rows, EdgesUsed, after, last)))
        moved += templates.write(connection, relations, (one._replace(set_hash=bytes(one.set_hash)) for one in edges))
        after, over = last, over + len(ids)
        report(over)
        if len(ids) < RUNS_AT_ONCE:
            return moved


def _within(table: Table, kind: type[RelationSeen | EdgesUsed], after: int, last: int) -> Select[Any]:
    """The rows of the runs between two ids, the latter with them."""
    keys = table.primary_key.columns
    query = select(*(table.c[name] for name in kind._fields)).where(table.c.run_id > after, table.c.run_id <= last)
    return query.order_by(*keys)
