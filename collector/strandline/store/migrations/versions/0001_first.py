"""The schema of 0.1.0: the tables and views of `store/schema`, and the first rows.

Until 0.1.0 is released this migration follows `store/schema`. From then on it is frozen, and a
change is a migration of its own.
"""

from alembic import op
from sqlalchemy import Connection, insert

from strandline.store.schema.received_tables import (
    EXPORT_CHANGES,
    VERSION_FACTS,
    numbers,
    raw_events,
)
from strandline.store.schema.tables import metadata
from strandline.store.schema.views import create_views

revision = "0001"
down_revision = None

# PostgreSQL keeps a changed row in its page, and no index changes, where the page has room. Most
# updates here raise a time.
FILLFACTORS = {
    60: ("datasets", "jobs", "job_relations", "run_leases"),
    80: ("facets", "facet_uses", "run_templates", "runs"),
}
# zstd frames, which PostgreSQL cannot compress further.
COMPRESSED = {"edge_columns": "columns", "facet_bodies": "body"}


def upgrade() -> None:
    """Create the tables and views, and insert the first rows."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        raw_events.dialect_options["postgresql"]["partition_by"] = "RANGE (received_at)"
    metadata.create_all(connection)
    if connection.dialect.name == "postgresql":
        _set_storage(connection)
    create_views(connection)
    connection.execute(
        insert(numbers), [{"name": name, "seq": 0} for name in (VERSION_FACTS, EXPORT_CHANGES)]
    )


def _set_storage(connection: Connection) -> None:
    for percent, tables in FILLFACTORS.items():
        for table in tables:
            connection.exec_driver_sql(f"ALTER TABLE {table} SET (fillfactor = {percent})")
    for table, column in COMPRESSED.items():
        connection.exec_driver_sql(
            f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL"
        )
