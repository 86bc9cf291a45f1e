"""The schema of 0.1.0: the tables and views of `store/schema`, and the first rows.

Until 0.1.0 is released this migration follows `store/schema`. From then on it is frozen, and a
change is a migration of its own.
"""

from alembic import op
from sqlalchemy import Connection, insert
from sqlalchemy.schema import CreateTable

from strandline.store.schema import archive_tables  # noqa: F401 - it adds its tables to the metadata
from strandline.store.schema.export_tables import export_head
from strandline.store.schema.tables import metadata, raw_events
from strandline.store.schema.version_tables import version_head
from strandline.store.schema.views import create_views

revision = "0001"
down_revision = None

# PostgreSQL keeps a changed row in its page, and no index changes, where the page has room. Most
# updates here raise a time.
FILLFACTORS = {
    60: ("datasets", "jobs", "job_relations", "run_leases"),
    80: ("facets", "facet_uses", "run_templates", "runs"),
}
COMPRESSED = {
    "edge_columns": "columns",
    "facet_bodies": "body",
}  # zstd frames, which PostgreSQL cannot compress further


def upgrade() -> None:
    """Create the tables and views, and insert the first rows."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        create = str(CreateTable(raw_events).compile(connection)).rstrip()
        connection.exec_driver_sql(f"{create} PARTITION BY RANGE (received_at)")
    metadata.create_all(connection)
    if connection.dialect.name == "postgresql":
        _set_storage(connection)
    create_views(connection)
    for head in (version_head, export_head):
        connection.execute(insert(head).values(id=1, seq=0))


def _set_storage(connection: Connection) -> None:
    for percent, tables in FILLFACTORS.items():
        for table in tables:
            connection.exec_driver_sql(f"ALTER TABLE {table} SET (fillfactor = {percent})")
    for table, column in COMPRESSED.items():
        connection.exec_driver_sql(
            f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL"
        )
