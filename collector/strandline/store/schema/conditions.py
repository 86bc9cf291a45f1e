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

# A batch run that failed, {run}: it wrote nothing but what it states itself.
FAILED_BATCH = "({run}.state = 5 AND {run}.streaming = 0)"

# A run that has been silent for longer than its heartbeat timeout, by its row of run_silences.
IS_SILENT = "silence.silent_at < {now}"
