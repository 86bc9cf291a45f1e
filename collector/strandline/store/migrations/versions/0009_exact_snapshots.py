"""When each snapshot was first seen, and the views that show which one a run read or made.

The views are written out here as they were at this revision: later code may define others.
"""

from alembic import op

revision = "0009"
down_revision = "0008"

VIEWS = {
    "snapshot_lineage": """
SELECT used.run_id, owned.owner_id, owned.job_id, used.direction, used.dataset_id, used.named_id, used.from_snapshot_id,
       CASE WHEN used.barrier > 0 THEN used.barrier WHEN run.state = 4 THEN owned.barrier END AS barrier,
       coalesce(owned.query_id, used.generation) AS generation,
       CASE WHEN used.lossy = 1 THEN used.exact_id ELSE used.snapshot_id END AS snapshot_id,
       CASE WHEN used.lossy = 1 AND used.exact_id IS NULL THEN used.snapshot_id END AS approximate_id,
       CASE WHEN used.rank = 1 OR (used.lossy = 1 AND used.exact_id IS NULL) THEN 1 ELSE 0 END AS observed,
       used.rank, used.order_at, used.at, used.barrier AS told_barrier
  FROM (SELECT taken.run_id, taken.barrier, taken.direction, named.canonical_id AS dataset_id, taken.lossy,
               taken.dataset_id AS named_id, taken.snapshot_id, taken.from_snapshot_id, taken.generation,
               taken.rank, taken.order_at, taken.at,
               CASE WHEN taken.lossy = 1 THEN (
                    SELECT CASE WHEN min(known.snapshot_id) = max(known.snapshot_id) THEN min(known.snapshot_id) END
                      FROM snapshots known JOIN datasets other ON other.id = known.dataset_id
                     WHERE other.canonical_id = named.canonical_id
                       AND known.approximate = CASE WHEN taken.lossy = 1
                                                    THEN CAST(taken.snapshot_id AS DOUBLE PRECISION) END) END AS exact_id,
               rank() OVER (PARTITION BY taken.run_id, taken.barrier, taken.direction, named.canonical_id
                            ORDER BY CASE WHEN taken.rank > 1 THEN 2 ELSE 1 END DESC,
                                     CASE WHEN taken.rank > 1 THEN 0 ELSE taken.order_at END DESC) AS standing
          FROM snapshot_uses taken
          JOIN datasets named ON named.id = taken.dataset_id
         WHERE NOT (taken.direction = 1 AND taken.rank < 3 AND EXISTS (
               SELECT 1 FROM snapshot_uses maker JOIN datasets other ON other.id = maker.dataset_id
                 JOIN runs made_by ON made_by.id = maker.run_id
                WHERE other.canonical_id = named.canonical_id AND maker.snapshot_id = taken.snapshot_id
                  AND maker.direction = 1 AND maker.run_id <> taken.run_id
                  AND NOT (maker.rank < 3 AND made_by.state = 5 AND made_by.streaming = 0)
                  AND (maker.rank > taken.rank OR (maker.rank = taken.rank AND (maker.at < taken.at
                       OR (maker.at = taken.at AND maker.run_id < taken.run_id))))))) used
  JOIN run_owners owned ON owned.run_id = used.run_id
  JOIN runs run ON run.id = used.run_id
 WHERE used.standing = 1
   AND NOT (used.direction = 1 AND used.rank < 3 AND run.state = 5 AND run.streaming = 0)
""",
    "source_snapshot_lineage": """
SELECT job.name AS job, CAST(best.barrier AS BIGINT) AS barrier_id, place.database_name AS "database",
       place.table_name AS "table", best.snapshot_id AS snapshot_id, job.namespace AS namespace,
       place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM (SELECT told.*, row_number() OVER (
                 PARTITION BY told.job_id, told.barrier, told.dataset_id
                 ORDER BY told.generation_at DESC, told.generation DESC, told.rank DESC, told.order_at DESC, told.at DESC,
                          told.snapshot_id DESC) AS standing
          FROM (SELECT lineage.*, max(lineage.at) OVER (
                         PARTITION BY lineage.job_id, lineage.barrier, lineage.dataset_id, lineage.generation)
                         AS generation_at
                  FROM snapshot_lineage lineage
                 WHERE lineage.direction = 0 AND lineage.barrier IS NOT NULL
                   AND lineage.snapshot_id IS NOT NULL) told) best
  JOIN jobs job ON job.id = best.job_id
  JOIN datasets place ON place.id = best.dataset_id
  LEFT JOIN job_domains member ON member.job_id = best.job_id
 WHERE best.standing = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'data-lineage' AND lower(said.value) = 'false')
""",
    "sink_snapshot_lineage": """
SELECT job.name AS job, CAST(best.barrier AS BIGINT) AS barrier_id, place.database_name AS "database",
       place.table_name AS "table", best.snapshot_id AS snapshot_id, job.namespace AS namespace,
       place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM (SELECT told.*, row_number() OVER (
                 PARTITION BY told.job_id, told.barrier, told.dataset_id
                 ORDER BY told.generation_at DESC, told.generation DESC, told.rank DESC, told.order_at DESC, told.at DESC,
                          told.snapshot_id DESC) AS standing
          FROM (SELECT lineage.*, max(lineage.at) OVER (
                         PARTITION BY lineage.job_id, lineage.barrier, lineage.dataset_id, lineage.generation)
                         AS generation_at
                  FROM snapshot_lineage lineage
                 WHERE lineage.direction = 1 AND lineage.barrier IS NOT NULL
                   AND lineage.snapshot_id IS NOT NULL) told) best
  JOIN jobs job ON job.id = best.job_id
  JOIN datasets place ON place.id = best.dataset_id
  LEFT JOIN job_domains member ON member.job_id = best.job_id
 WHERE best.standing = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'data-lineage' AND lower(said.value) = 'false')
""",
    "__META_TABLE_VERSION": """
SELECT DISTINCT place.table_name AS table_name, CAST(made.barrier AS BIGINT) AS version,
       CASE WHEN made.job_id IN (SELECT taken.job_id FROM snapshot_lineage taken WHERE taken.direction = 0)
            THEN 'Intermediate' ELSE 'Root' END AS table_type,
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM snapshot_lineage made
  JOIN jobs job ON job.id = made.job_id
  JOIN datasets place ON place.id = made.dataset_id
  LEFT JOIN job_domains member ON member.job_id = made.job_id
 WHERE made.direction = 1 AND made.barrier IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'data-lineage' AND lower(said.value) = 'false')
""",
}


def upgrade() -> None:
    """Add the column, and create the views anew."""
    op.execute("ALTER TABLE snapshots ADD COLUMN first_at BIGINT NOT NULL DEFAULT 0")
    op.execute("UPDATE snapshots SET first_at = at")
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW IF EXISTS {name}")
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query.strip()}")
