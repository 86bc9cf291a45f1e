"""Rules in SQL that views, retention and writers share, each stated once."""

# The present in microseconds.
NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}

# The silence in microseconds after which a run without a heartbeat timeout is LOST.
DEFAULT_SILENCE = """
coalesce((SELECT CAST(value AS BIGINT) FROM store_settings WHERE key = 'silent_seconds'), 86400)
 * 1000000"""

# A failed CREATE TABLE AS made nothing: the table and the edge are gone with it. The table of a
# streaming job stays. {sink} is a row of run_relations, {run} its run.
CREATED_NOTHING = "({sink}.creates = 1 AND {run}.streaming = 0 AND {run}.state IN (3, 5))"

# A batch run only altered, renamed, dropped or emptied a table: no event of its says that it did
# more, it states no snapshot that has rows, and neither an input nor an edge brings anything from
# another dataset. {sink} is a row of run_relations, {run} its run, {table} the row of datasets with
# the table's name; {stated} is the rank of a snapshot that a facet of ours states. The others come
# from canonical_ids, which every key sees whole: whether a run wrote depends on no key.
# CASE keeps SQLite from looking at what follows for other rows.
ONLY_DEFINED = """
(CASE WHEN {sink}.direction = 1 AND {sink}.creates = -1 AND {run}.streaming = 0
       AND {run}.ended_at IS NOT NULL
 THEN NOT ({run}.announced = 0
          AND EXISTS (SELECT 1 FROM run_queries batch WHERE batch.run_id = {run}.id))
 AND NOT EXISTS (
     SELECT 1
       FROM run_relations taken
       JOIN canonical_ids source ON source.dataset_id = taken.dataset_id
      WHERE taken.run_id = {sink}.run_id
        AND taken.direction = 0
        AND source.canonical_id <> {table}.canonical_id)
 AND NOT EXISTS (
     SELECT 1
       FROM run_edges edge
       JOIN edge_columns origin ON origin.set_hash = edge.set_hash
       JOIN canonical_ids source ON source.dataset_id = origin.source_id
      WHERE edge.run_id = {sink}.run_id
        AND edge.sink_id = {sink}.dataset_id
        AND source.canonical_id <> {table}.canonical_id)
 AND NOT EXISTS (
     SELECT 1
       FROM snapshot_uses made
       JOIN canonical_ids stated_as ON stated_as.dataset_id = made.dataset_id
       JOIN snapshots snapshot ON snapshot.dataset_id = made.dataset_id
                              AND snapshot.snapshot_id = made.snapshot_id
      WHERE made.run_id = {sink}.run_id
        AND made.direction = 1
        AND made.rank = {stated}
        AND stated_as.canonical_id = {table}.canonical_id
        AND (snapshot.row_count IS NULL OR snapshot.row_count > 0))
 ELSE FALSE END)"""

# A batch run that failed, {run}: it wrote nothing but what it states itself.
FAILED_BATCH = "({run}.state = 5 AND {run}.streaming = 0)"

# A run that has been silent for longer than its heartbeat timeout, by its row of run_silences.
IS_SILENT = "silence.silent_at < {now}"
