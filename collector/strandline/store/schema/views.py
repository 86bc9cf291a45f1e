"""All views of the store; each area's stand in a module of their own beside this one."""

from sqlalchemy import Connection

from strandline.store.schema.proposal_views import proposal_views
from strandline.store.schema.run_views import run_views
from strandline.store.schema.snapshot_views import SNAPSHOT_LINEAGE


def views(dialect: str) -> dict[str, str]:
    """Return the queries of the views by name, each after those that it selects from."""
    return run_views(dialect) | {"snapshot_lineage": SNAPSHOT_LINEAGE} | proposal_views()


def create_views(connection: Connection) -> None:
    """Create every view."""
    for name, query in views(connection.dialect.name).items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {query.strip()}")
