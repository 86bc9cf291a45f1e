"""Commits are taken into the log of facts anew: they say now what they consumed, and which of them state no barrier."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Forget the commits in the log, and note every one that is stored as news: the next server takes them in again."""
    op.execute("DELETE FROM version_facts WHERE kind = 'BarrierCommitted'")
    op.execute(
        "INSERT INTO version_news (kind, entity_id, barrier) "
        "SELECT DISTINCT 0, run_id, barrier FROM job_barriers WHERE phase = 2"
    )
