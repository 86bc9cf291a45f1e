"""No run is valid from a moment after the one that it is valid to. The SQL is frozen here."""

from alembic import op

revision = "0033"
down_revision = "0031"

_NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}

_RUN_LIVES = """
SELECT owned.run_id, owned.owner_id, owned.job_id, owned.query_id,
       CASE WHEN run.state >= 3 THEN run.state WHEN finish.ended_at IS NOT NULL THEN finish.state
            WHEN silence.silent_at < {now} THEN -1 ELSE run.state END AS state,
       CASE WHEN coalesce(finish.ended_at, silence.silent_at)
                 < coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at)
            THEN coalesce(finish.ended_at, silence.silent_at)
            ELSE coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at) END AS valid_from,
       CASE WHEN finish.ended_at IS NOT NULL THEN finish.ended_at
            WHEN silence.silent_at < {now} THEN silence.silent_at END AS valid_to,
       CASE WHEN coalesce(owner.started_at, run.started_at) IS NOT NULL AND finish.ended_at IS NULL
             AND silence.silent_at >= {now} THEN 1 ELSE 0 END AS live,
       run.design AS design
  FROM run_owners owned
  JOIN runs run ON run.id = owned.run_id
  JOIN runs owner ON owner.id = owned.owner_id
  JOIN run_ends finish ON finish.run_id = owned.owner_id
  JOIN run_silences silence ON silence.run_id = owned.owner_id
"""


def upgrade() -> None:
    """Say the view anew; its columns are the same, so what asks it stays."""
    dialect = op.get_bind().dialect.name
    query = _RUN_LIVES.format(now=_NOW[dialect]).strip()
    if dialect == "sqlite":
        op.execute("DROP VIEW run_lives")
        op.execute(f"CREATE VIEW run_lives AS {query}")
    else:
        op.execute(f"CREATE OR REPLACE VIEW run_lives AS {query}")
