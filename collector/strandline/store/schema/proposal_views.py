"""The proposals' views, with their literal columns.

Each has namespace (of the job), catalog and consistency_group besides, which complete its key; ids
are text.
"""

from strandline.core.changes.snapshots import NOT_THE_LAST

_JOB_LINEAGE = """
SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group{more}
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_groups member ON member.job_id = life.job_id
 WHERE life.direction = {direction} AND {when} AND {allowed}
"""
_HISTORY = """,
       owner.run_id AS run_id, life.valid_from AS valid_from, life.valid_to AS valid_to,
       CASE life.state WHEN -1 THEN 'LOST' WHEN 5 THEN 'FAIL' WHEN 4 THEN 'COMPLETE'
                       WHEN 3 THEN 'ABORT' ELSE 'RUNNING' END AS state"""
_LIVE, _PAST = "life.live = 1", "life.valid_to IS NOT NULL AND life.design = 0"
_ALLOWED = """NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = '{key}'
          AND lower(said.value) = 'false')"""

_BEST_SNAPSHOTS = """
SELECT job.name AS job, CAST(best.barrier AS BIGINT) AS barrier_id,
       place.database_name AS "database", place.table_name AS "table",
       best.snapshot_id AS snapshot_id, job.namespace AS namespace,
       place.catalog AS catalog, coalesce(member.group_name, '') AS consistency_group
  FROM (SELECT told.*, row_number() OVER (
                 PARTITION BY told.job_id, told.barrier, told.dataset_id
                 ORDER BY told.query_at DESC, told.query_id DESC, told.rank DESC,
                          told.flags & {not_the_last},
                          told.order_at DESC, told.at DESC, told.snapshot_id DESC) AS standing
          FROM (SELECT lineage.*, max(lineage.at) OVER (
                         PARTITION BY lineage.job_id, lineage.barrier, lineage.dataset_id,
                                      lineage.query_id) AS query_at
                  FROM snapshot_lineage lineage
                 WHERE lineage.direction = {direction} AND lineage.barrier IS NOT NULL
                   AND lineage.snapshot_id IS NOT NULL) told) best
  JOIN jobs job ON job.id = best.job_id
  JOIN datasets place ON place.id = best.dataset_id
  LEFT JOIN job_groups member ON member.job_id = best.job_id
 WHERE best.standing = 1 AND {allowed}
"""

_JOB_STARTUP = """
SELECT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       started.snapshot_id AS snapshot_id, job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group{more}
  FROM startup_snapshots started
  JOIN run_lives life ON life.run_id = started.run_id
  JOIN jobs job ON job.id = started.job_id
  JOIN datasets named ON named.id = started.dataset_id
  JOIN datasets place ON place.id = named.canonical_id
  LEFT JOIN job_groups member ON member.job_id = started.job_id
 WHERE {when} AND {allowed}
"""

_META_ETL = """
SELECT DISTINCT job AS job_id, "table" AS table_name, namespace, catalog, consistency_group{more}
  FROM {view}
"""

_META_TABLE_VERSION = """
SELECT DISTINCT place.table_name AS table_name, CAST(made.barrier AS BIGINT) AS version,
       CASE WHEN made.job_id IN (
                 SELECT taken.job_id FROM snapshot_lineage taken WHERE taken.direction = 0)
            THEN 'Intermediate' ELSE 'Root' END AS table_type,
       job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group
  FROM snapshot_lineage made
  JOIN jobs job ON job.id = made.job_id
  JOIN datasets place ON place.id = made.dataset_id
  LEFT JOIN job_groups member ON member.job_id = made.job_id
 WHERE made.direction = 1 AND made.barrier IS NOT NULL AND {allowed}
"""


def proposal_views() -> dict[str, str]:
    """Return the queries of the views by name, each after those that it selects from."""
    of_tables = _ALLOWED.format(key="table-lineage")
    of_data = _ALLOWED.format(key="data-lineage")
    queries = {
        "job_startup": _JOB_STARTUP.format(more="", when=_LIVE, allowed=of_data),
        "job_startup_history": _with_owner(_JOB_STARTUP).format(
            more=_HISTORY, when=_PAST, allowed=of_data
        ),
    }
    for direction, name in enumerate(("source", "sink")):
        live = {"direction": direction, "allowed": of_tables, "more": "", "when": _LIVE}
        past = live | {"more": _HISTORY, "when": _PAST}
        queries[f"{name}_job_lineage"] = _JOB_LINEAGE.format(**live)
        queries[f"{name}_job_lineage_history"] = _with_owner(_JOB_LINEAGE).format(**past)
        queries[f"{name}_snapshot_lineage"] = _BEST_SNAPSHOTS.format(
            direction=direction, allowed=of_data, not_the_last=NOT_THE_LAST
        )
        etl = f"__META_ETL_{name.upper()}"
        queries[etl] = _META_ETL.format(view=f"{name}_job_lineage", more="")
        queries[f"{etl}_history"] = _META_ETL.format(
            view=f"{name}_job_lineage_history", more=", run_id, valid_from, valid_to, state"
        )
    queries["__META_TABLE_VERSION"] = _META_TABLE_VERSION.format(allowed=of_data)
    return queries


def _with_owner(query: str) -> str:
    """Return the query with the run that owns the rows, which history names."""
    return query.replace(" WHERE", "  JOIN runs owner ON owner.id = life.owner_id\n WHERE", 1)
