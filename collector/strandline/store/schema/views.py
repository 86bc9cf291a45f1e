"""The views: who owns a run's relations, what is live now, and the proposals' tables with their literal columns.

`live` means: really started, not ended, not silent for longer than its heartbeat timeout, at the moment of the query. Every proposals'
view has namespace (of the job), catalog and consistency_group besides, which complete its key; ids are text.
"""

from sqlalchemy import Connection

_NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}

# A write {sink} of a run {run} that is the output of a failed CREATE TABLE AS: the table and the edge
# are gone with it. A streaming job's table stays.
CREATED_NOTHING = "({sink}.creates = 1 AND {run}.streaming = 0 AND {run}.state IN (3, 5))"
_FAILED_BATCH = "({run}.state = 5 AND {run}.streaming = 0)"
_IS_SILENT = "silence.silent_at < {now}"

# The datasets that runs read and wrote, and the edges that they made, which are stored as templates
# (relation_tables.py).
_RELATIONS = """
SELECT used.run_id, relation.direction, relation.dataset_id, relation.creates, used.first_at, used.newest_at
  FROM run_templates used
  JOIN template_relations relation ON relation.template_id = used.template_id
"""
_EDGES = """
SELECT used.run_id, edge.sink_id, edge.rule, edge.set_hash, used.newest_at AS at
  FROM run_templates used
  JOIN template_edges edge ON edge.template_id = used.template_id
"""

# A micro-batch that comes as a run of its own (stock Spark listener) belongs to the run and job of
# its streaming query; where that is not known, to its application's.
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

# When and how a run ended: by an event of its own; else with its parent, its root, or what these
# end with, unless an event of its own is later than that. A streaming query's run has no events of
# its own.
_SEEN = "CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END"
_RUN_ENDS = """
SELECT run.id AS run_id,
       CASE WHEN run.ended_at IS NOT NULL THEN run.ended_at
            WHEN parent.ended_at >= {seen} THEN parent.ended_at
            WHEN root.ended_at >= {seen} THEN root.ended_at
            WHEN {of_parent} THEN higher.ended_at
            WHEN {of_root} THEN highest.ended_at END AS ended_at,
       CASE WHEN run.ended_at IS NOT NULL THEN run.state
            WHEN parent.ended_at >= {seen} THEN parent.state
            WHEN root.ended_at >= {seen} THEN root.state
            WHEN {of_parent} THEN higher.state
            WHEN {of_root} THEN highest.state ELSE run.state END AS state
  FROM runs run
  LEFT JOIN run_parents link ON link.run_id = run.id
  LEFT JOIN runs parent ON parent.id = link.parent_run_id
  LEFT JOIN runs root ON root.id = link.root_run_id
  LEFT JOIN run_parents above ON above.run_id = link.parent_run_id
  LEFT JOIN runs higher ON higher.id = above.parent_run_id
  LEFT JOIN runs highest ON highest.id = above.root_run_id
""".format(
    seen=_SEEN,
    of_parent="parent.ended_at IS NULL AND higher.ended_at >= coalesce(parent.newest_at, 0)"
    f" AND higher.ended_at >= {_SEEN}",
    of_root="parent.ended_at IS NULL AND highest.ended_at >= coalesce(parent.newest_at, 0)"
    f" AND highest.ended_at >= {_SEEN}",
)

_RUN_SILENCES = """
SELECT run.id AS run_id,
       CASE WHEN lease.run_id IS NOT NULL THEN run.received_at + lease.seconds * 1000000
            WHEN run.child_received_at > run.received_at THEN run.child_received_at + silence.micros
            ELSE run.received_at + silence.micros END AS silent_at
  FROM runs run
  LEFT JOIN run_leases lease ON lease.run_id = run.id
  CROSS JOIN (SELECT CAST(coalesce((SELECT value FROM store_settings WHERE key = 'silent_seconds'), '86400') AS BIGINT)
                     * 1000000 AS micros) silence
"""

# state is the run's own (LOST by its owner's silence); validity is the owner's. What ended before
# its first START or RUNNING, or fell silent before (clocks differ), began when it ended: valid_from
# is never after valid_to.
_RUN_LIVES = """
SELECT owned.run_id, owned.owner_id, owned.job_id, owned.query_id,
       CASE WHEN run.state >= 3 THEN run.state WHEN finish.ended_at IS NOT NULL THEN finish.state
            WHEN {silent} THEN -1 ELSE run.state END AS state,
       CASE WHEN coalesce(finish.ended_at, silence.silent_at)
                 < coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at)
            THEN coalesce(finish.ended_at, silence.silent_at)
            ELSE coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at) END AS valid_from,
       CASE WHEN finish.ended_at IS NOT NULL THEN finish.ended_at
            WHEN {silent} THEN silence.silent_at END AS valid_to,
       CASE WHEN coalesce(owner.started_at, run.started_at) IS NOT NULL AND finish.ended_at IS NULL
             AND NOT {silent} THEN 1 ELSE 0 END AS live,
       run.design AS design
  FROM run_owners owned
  JOIN runs run ON run.id = owned.run_id
  JOIN runs owner ON owner.id = owned.owner_id
  JOIN run_ends finish ON finish.run_id = owned.owner_id
  JOIN run_silences silence ON silence.run_id = owned.owner_id
"""

_RELATION_LIVES = f"""
SELECT life.run_id, life.owner_id, life.job_id, relation.direction, named.canonical_id AS dataset_id,
       relation.dataset_id AS named_id, relation.creates, life.state, life.valid_from, life.valid_to, life.live,
       life.design
  FROM run_relations relation
  JOIN run_lives life ON life.run_id = relation.run_id
  JOIN runs run ON run.id = relation.run_id
  JOIN datasets named ON named.id = relation.dataset_id
 WHERE NOT {CREATED_NOTHING.format(sink="relation", run="run")}
"""

_JOB_LINEAGE = """
SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS consistency_group{more}
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_domains member ON member.job_id = life.job_id
 WHERE life.direction = {direction} AND {when} AND {allowed}
"""
_HISTORY = """,
       owner.run_id AS run_id, life.valid_from AS valid_from, life.valid_to AS valid_to,
       CASE life.state WHEN -1 THEN 'LOST' WHEN 5 THEN 'FAIL' WHEN 4 THEN 'COMPLETE' WHEN 3 THEN 'ABORT'
                       ELSE 'RUNNING' END AS state"""
_LIVE, _PAST = "life.live = 1", "life.valid_to IS NOT NULL AND life.design = 0"
_ALLOWED = """NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = '{key}' AND lower(said.value) = 'false')"""

# All that is known of which snapshot was read or made: ids that came as doubles are matched to the
# table's own (snapshot_id is NULL and approximate_id the double where none fits, or two do), and
# what was only observed gives way to what was stated. A snapshot has one maker: unless writers
# state it themselves, the surest claim counts, then the first (stock listeners report a table's
# last commit again for a statement that has not committed, or has failed). A Delta table that was
# dropped and created anew begins with version 0 again: claims from before that are of another
# table, and of two creations nobody knows which one is meant (CREATE TABLE IF NOT EXISTS is
# reported as one too). barrier is NULL outside streaming.
_SNAPSHOT_LINEAGE = """
SELECT used.run_id, owned.owner_id, owned.job_id, used.direction, used.dataset_id, used.named_id, used.from_snapshot_id,
       CASE WHEN used.barrier > 0 THEN used.barrier WHEN run.state = 4 THEN owned.barrier END AS barrier,
       coalesce(owned.query_id, used.query_id) AS query_id,
       CASE WHEN used.lossy = 1 THEN used.exact_id ELSE used.snapshot_id END AS snapshot_id,
       CASE WHEN used.lossy = 1 AND used.exact_id IS NULL THEN used.snapshot_id END AS approximate_id,
       CASE WHEN used.rank = 1 OR (used.lossy = 1 AND used.exact_id IS NULL) THEN 1 ELSE 0 END AS observed,
       used.rank, used.order_at, used.at, used.barrier AS told_barrier
  FROM (SELECT taken.run_id, taken.barrier, taken.direction, named.canonical_id AS dataset_id, taken.lossy,
               taken.dataset_id AS named_id, taken.snapshot_id, taken.from_snapshot_id, taken.query_id,
               taken.rank, taken.order_at, taken.at,
               CASE WHEN taken.lossy = 1 THEN (
                    SELECT CASE WHEN min(known.snapshot_id) = max(known.snapshot_id) THEN min(known.snapshot_id) END
                      FROM (SELECT rounded.id > 0 AND length(CAST(rounded.id - 512 AS TEXT)) = length(CAST(rounded.id + 512 AS TEXT))
                                   AS in_order, rounded.id
                              FROM (SELECT CASE WHEN taken.lossy = 1 THEN CAST(taken.snapshot_id AS NUMERIC) END AS id) rounded) near
                      JOIN datasets other ON other.canonical_id = named.canonical_id
                      JOIN snapshots known ON known.dataset_id = other.id
                       AND known.snapshot_id >= CASE WHEN near.in_order THEN CAST(near.id - 512 AS TEXT) ELSE '' END
                       AND known.snapshot_id <= CASE WHEN near.in_order THEN CAST(near.id + 512 AS TEXT) ELSE 'z' END
                     WHERE known.approximate = CASE WHEN taken.lossy = 1
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
                  AND NOT (maker.rank < 3 AND {made_by_failed})
                  AND (maker.rank > taken.rank OR (maker.rank = taken.rank AND (maker.at < taken.at
                       OR (maker.at = taken.at AND maker.run_id < taken.run_id))))))
           AND NOT (taken.direction = 1 AND EXISTS (
               SELECT 1 FROM snapshot_uses born JOIN datasets other ON other.id = born.dataset_id
                 JOIN run_relations creating ON creating.run_id = born.run_id AND creating.direction = 1
                                        AND creating.dataset_id = born.dataset_id
                 JOIN runs born_by ON born_by.id = born.run_id
                WHERE other.canonical_id = named.canonical_id AND born.snapshot_id = '0' AND born.direction = 1
                  AND born.run_id <> taken.run_id AND creating.creates = 1 AND born_by.state = 4 AND born_by.streaming = 0
                  AND (born.at > taken.at OR (taken.rank < 3 AND taken.snapshot_id = '0'))))) used
  JOIN run_owners owned ON owned.run_id = used.run_id
  JOIN runs run ON run.id = used.run_id
 WHERE used.standing = 1
   AND NOT (used.direction = 1 AND used.rank < 3 AND {failed})
""".format(
    made_by_failed=_FAILED_BATCH.format(run="made_by"), failed=_FAILED_BATCH.format(run="run")
)

_BEST_SNAPSHOTS = """
SELECT job.name AS job, CAST(best.barrier AS BIGINT) AS barrier_id, place.database_name AS "database",
       place.table_name AS "table", best.snapshot_id AS snapshot_id, job.namespace AS namespace,
       place.catalog AS catalog, coalesce(member.domain, '') AS consistency_group
  FROM (SELECT told.*, row_number() OVER (
                 PARTITION BY told.job_id, told.barrier, told.dataset_id
                 ORDER BY told.query_at DESC, told.query_id DESC, told.rank DESC, told.order_at DESC, told.at DESC,
                          told.snapshot_id DESC) AS standing
          FROM (SELECT lineage.*, max(lineage.at) OVER (
                         PARTITION BY lineage.job_id, lineage.barrier, lineage.dataset_id, lineage.query_id)
                         AS query_at
                  FROM snapshot_lineage lineage
                 WHERE lineage.direction = {direction} AND lineage.barrier IS NOT NULL
                   AND lineage.snapshot_id IS NOT NULL) told) best
  JOIN jobs job ON job.id = best.job_id
  JOIN datasets place ON place.id = best.dataset_id
  LEFT JOIN job_domains member ON member.job_id = best.job_id
 WHERE best.standing = 1 AND {allowed}
"""

_JOB_STARTUP = """
SELECT job.name AS job, place.database_name AS "database", place.table_name AS "table", started.snapshot_id AS snapshot_id,
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS consistency_group{more}
  FROM startup_snapshots started
  JOIN run_lives life ON life.run_id = started.run_id
  JOIN jobs job ON job.id = started.job_id
  JOIN datasets named ON named.id = started.dataset_id
  JOIN datasets place ON place.id = named.canonical_id
  LEFT JOIN job_domains member ON member.job_id = started.job_id
 WHERE {when} AND {allowed}
"""

_META_ETL = 'SELECT DISTINCT job AS job_id, "table" AS table_name, namespace, catalog, consistency_group{more} FROM {view}'

_META_TABLE_VERSION = """
SELECT DISTINCT place.table_name AS table_name, CAST(made.barrier AS BIGINT) AS version,
       CASE WHEN made.job_id IN (SELECT taken.job_id FROM snapshot_lineage taken WHERE taken.direction = 0)
            THEN 'Intermediate' ELSE 'Root' END AS table_type,
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS consistency_group
  FROM snapshot_lineage made
  JOIN jobs job ON job.id = made.job_id
  JOIN datasets place ON place.id = made.dataset_id
  LEFT JOIN job_domains member ON member.job_id = made.job_id
 WHERE made.direction = 1 AND made.barrier IS NOT NULL AND {allowed}
"""


def snapshot_lineage_from(uses: str) -> str:
    """The query of the view `snapshot_lineage`, of some rows of snapshot_uses alone.

    SQLite reads the view whole.
    """
    return _SNAPSHOT_LINEAGE.replace("FROM snapshot_uses taken", f"FROM ({uses}) taken")


def views(dialect: str) -> dict[str, str]:
    """Return the views by name, each after those that it selects from."""
    tables, data = _ALLOWED.format(key="table-lineage"), _ALLOWED.format(key="data-lineage")
    found = {
        "run_relations": _RELATIONS,
        "run_edges": _EDGES,
        "run_owners": _RUN_OWNERS,
        "run_ends": _RUN_ENDS,
        "run_silences": _RUN_SILENCES,
        "run_lives": _RUN_LIVES.format(silent=_IS_SILENT.format(now=_NOW[dialect])),
        "relation_lives": _RELATION_LIVES,
        "snapshot_lineage": _SNAPSHOT_LINEAGE,
        "job_startup": _JOB_STARTUP.format(more="", when=_LIVE, allowed=data),
        "job_startup_history": _with_owner(_JOB_STARTUP).format(
            more=_HISTORY, when=_PAST, allowed=data
        ),
    }
    for direction, name in enumerate(("source", "sink")):
        live = {"direction": direction, "allowed": tables, "more": "", "when": _LIVE}
        past = live | {"more": _HISTORY, "when": _PAST}
        found[f"{name}_job_lineage"] = _JOB_LINEAGE.format(**live)
        found[f"{name}_job_lineage_history"] = _with_owner(_JOB_LINEAGE).format(**past)
        found[f"{name}_snapshot_lineage"] = _BEST_SNAPSHOTS.format(
            direction=direction, allowed=data
        )
        etl, lasting = f"__META_ETL_{name.upper()}", ", run_id, valid_from, valid_to, state"
        found[etl] = _META_ETL.format(view=f"{name}_job_lineage", more="")
        found[f"{etl}_history"] = _META_ETL.format(view=f"{name}_job_lineage_history", more=lasting)
    return found | {"__META_TABLE_VERSION": _META_TABLE_VERSION.format(allowed=data)}


def _with_owner(query: str) -> str:
    """The same with the run that the rows belong to, which history names."""
    return query.replace(" WHERE", "  JOIN runs owner ON owner.id = life.owner_id\n WHERE", 1)


def create_views(connection: Connection) -> None:
    """Create every view."""
    for name, query in views(connection.dialect.name).items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {query.strip()}")
