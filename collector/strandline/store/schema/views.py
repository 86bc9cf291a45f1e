"""All views of the store; each area's stand in a module of their own beside this one."""

from strandline.store.schema.proposal_views import proposal_views
from strandline.store.schema.run_views import run_views
from strandline.store.schema.snapshot_views import SNAPSHOT_LINEAGE


def views(dialect: str) -> dict[str, str]:
    """Return the queries of the views by name, each after those that it selects from."""
    return run_views(dialect) | {"snapshot_lineage": SNAPSHOT_LINEAGE} | proposal_views()
