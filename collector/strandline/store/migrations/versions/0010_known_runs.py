"""Streaming queries have runs, which own their micro-batches; a run ends with its parent. The SQL is frozen here."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}
_RUN_OWNERS = """
SELECT run.id AS run_id,
       CASE WHEN query.owner_id IS NOT NULL AND run.announced = 0 THEN query.owner_id
            WHEN parent.run_id IS NOT NULL AND run.announced = 0
             AND (query.run_id IS NOT NULL OR (run.streaming = 1 AND run.spark = 1))
            THEN parent.parent_run_id ELSE run.id END AS owner_id,
       CASE WHEN query.run_id IS NOT NULL AND run.announced = 0 THEN coalesce(named.job_id, query.job_id)
            WHEN parent.run_id IS NOT NULL AND run.announced = 0 AND run.streaming = 1 AND run.spark = 1
            THEN parent.parent_job_id ELSE run.job_id END AS job_id,
       CASE WHEN run.announced = 0 THEN query.query_id END AS query_id,
       CASE WHEN run.announced = 0 THEN query.batch_id + 1 END AS barrier
  FROM runs run
  LEFT JOIN run_parents parent ON parent.run_id = run.id
  LEFT JOIN run_queries query ON query.run_id = run.id
  LEFT JOIN runs named ON named.id = query.owner_id
"""
_RUN_ENDS = """
SELECT run.id AS run_id,
       CASE WHEN run.ended_at IS NOT NULL THEN run.ended_at
            WHEN parent.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN parent.ended_at
            WHEN root.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN root.ended_at
            WHEN parent.ended_at IS NULL AND higher.ended_at >= coalesce(parent.newest_at, 0) AND higher.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN higher.ended_at
            WHEN parent.ended_at IS NULL AND highest.ended_at >= coalesce(parent.newest_at, 0) AND highest.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN highest.ended_at END AS ended_at,
       CASE WHEN run.ended_at IS NOT NULL THEN run.state
            WHEN parent.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN parent.state
            WHEN root.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN root.state
            WHEN parent.ended_at IS NULL AND higher.ended_at >= coalesce(parent.newest_at, 0) AND higher.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN higher.state
            WHEN parent.ended_at IS NULL AND highest.ended_at >= coalesce(parent.newest_at, 0) AND highest.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN highest.state ELSE run.state END AS state
  FROM runs run
  LEFT JOIN run_parents link ON link.run_id = run.id
  LEFT JOIN runs parent ON parent.id = link.parent_run_id
  LEFT JOIN runs root ON root.id = link.root_run_id
  LEFT JOIN run_parents above ON above.run_id = link.parent_run_id
  LEFT JOIN runs higher ON higher.id = above.parent_run_id
  LEFT JOIN runs highest ON highest.id = above.root_run_id
"""
_RUN_LIVES = """
SELECT owned.run_id, owned.owner_id, owned.job_id, owned.query_id,
       CASE WHEN run.state >= 3 THEN run.state WHEN finish.ended_at IS NOT NULL THEN finish.state
            WHEN silence.silent_at < {now} THEN -1 ELSE run.state END AS state,
       coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at) AS valid_from,
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
    """Add what is new, then replace the views; those that ask them stay as they are."""
    op.add_column("runs", sa.Column("query", sa.SmallInteger(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("least_job", sa.BigInteger(), nullable=True))
    op.add_column("runs", sa.Column("most_job", sa.BigInteger(), nullable=True))
    op.add_column("run_queries", sa.Column("owner_id", sa.BigInteger(), nullable=True))
    op.create_index("ix_run_queries_owner_id_at", "run_queries", ["owner_id", "at"])
    dialect = op.get_bind().dialect.name
    lives = _RUN_LIVES.replace("{now}", _NOW[dialect])
    for name, query in (("run_owners", _RUN_OWNERS), ("run_ends", _RUN_ENDS), ("run_lives", lives)):
        if dialect == "postgresql":
            op.get_bind().exec_driver_sql(f"CREATE OR REPLACE VIEW {name} AS {query.strip()}")
        else:
            op.get_bind().exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
            op.get_bind().exec_driver_sql(f"CREATE VIEW {name} AS {query.strip()}")
    index = "ix_run_parents_parent_run_id"
    op.drop_index(index, "run_parents")
    op.create_index(f"{index}_at", "run_parents", ["parent_run_id", "at"])
