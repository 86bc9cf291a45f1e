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

# A failed CREATE TABLE AS made nothing; the table of a streaming job stays. {relation} is a row of
# run_relations, {run} its run.
UNDONE = "({relation}.creates = 1 AND {run}.state IN (3, 5) AND {run}.streaming = 0)"
