"""Jobs and their runs, with the namespaces that name them."""

from sqlalchemy import Column, Index, Table, and_, not_, or_

from strandline.store.schema.columns import (
    Id,
    code_column,
    flag_column,
    id_column,
    metadata,
    number_column,
    own_id,
    text_column,
    time_column,
)

# Text that can be long is never in an index: its hash is.
namespaces = Table(
    "namespaces",
    metadata,
    own_id(),
    text_column("name", "as named"),
    comment="every namespace that a job or dataset was named in; what a key may see",
)

jobs = Table(
    "jobs",
    metadata,
    own_id(),
    id_column("namespace_id", "finds the jobs of a namespace"),
    text_column("namespace", "as named"),
    text_column("name", "as named"),
    time_column(
        "first_at", "its first event; NULL: another job's event mentions it", nullable=True
    ),
    time_column("newest_at", "its newest event, for lists and deletions", nullable=True),
    flag_column("noise", "1: an event had only Delta's own log, or was an RDD's without datasets"),
    flag_column("data", "1: an event had real datasets; the job is hidden if noise and not data"),
    Index(None, "namespace_id"),
    comment="one row a job as named",
)

job_groups = Table(
    "job_groups",
    metadata,
    Column("job_id", Id, primary_key=True, autoincrement=False, comment="the job"),
    text_column("group_name", "the group that its newest barrier facet names"),
    time_column("at", "that event's time: the newest counts"),
    id_column("hash", "that event: decides between events of one moment"),
    comment="the consistency group of each job that has one",
)

runs = Table(
    "runs",
    metadata,
    own_id(),
    text_column("run_id", "as sent"),
    id_column("job_id", "of the newest event after START: a job may be renamed on the way"),
    time_column("job_at", "that event's time, a START's long before all others"),
    id_column("job_hash", "that event: decides between events of one moment"),
    flag_column(
        "state", "0 none, 1 START, 2 RUNNING, 3 ABORT, 4 COMPLETE, 5 FAIL: greatest counts"
    ),
    time_column("first_at", "earliest event; NULL: only mentioned, as a parent", nullable=True),
    time_column("newest_at", "newest event", nullable=True),
    time_column("started_at", "earliest START or RUNNING; NULL: it never was live", nullable=True),
    time_column("ended_at", "earliest COMPLETE, FAIL or ABORT", nullable=True),
    time_column("received_at", "newest receipt of an event of the run: silence counts from it"),
    time_column("child_received_at", "newest receipt of an event that names it as parent"),
    flag_column("design", "1: no run but a JobEvent, which is known and never live"),
    flag_column("streaming", "1: jobType says STREAMING"),
    flag_column("spark", "1: jobType says SPARK"),
    flag_column("announced", "1: sent a heartbeat timeout or a barrier: owns its relations itself"),
    flag_column("query", "1: a streaming query within an application, reported by micro-batches"),
    id_column("least_start", "the least of the jobs that its STARTs name", nullable=True),
    id_column("most_start", "the greatest: another one if several jobs share it", nullable=True),
    id_column("least_later", "the least of the jobs of its later events", nullable=True),
    id_column("most_later", "the greatest: another one if several jobs share it", nullable=True),
    Index(None, "run_id", postgresql_ops={"run_id": "text_pattern_ops"}),  # for parts of ids
    Index(None, "job_id", "newest_at"),
    Index(None, "newest_at"),
    comment="one row a run",
)

shared_runs = Table(
    "shared_runs",
    metadata,
    own_id("the id that a run has if one job reported it"),
    comment="run ids that several jobs reported; each of these jobs has a run of its own",
)

REPORTED_BY_SEVERAL = or_(
    runs.c.least_start != runs.c.most_start, runs.c.least_later != runs.c.most_later
)
"""The condition that a run has STARTs, or later events, of several jobs."""

run_parents = Table(
    "run_parents",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False, comment="the run"),
    id_column("parent_run_id", "the run above it"),
    id_column("parent_job_id", "the job of the run above it"),
    id_column("root_run_id", "the run above all"),
    id_column("root_job_id", "the job of the run above all"),
    time_column("at", "the event's time: the newest counts"),
    id_column("hash", "the event: decides between events of one moment"),
    Index(None, "parent_run_id", "at"),
    Index(None, "parent_job_id"),
    Index(None, "root_run_id"),
    comment="the parent and root that a run's newest parent facet names",
)

run_leases = Table(
    "run_leases",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False, comment="the run"),
    number_column("seconds", "the heartbeat timeout: silence after which the run is LOST"),
    time_column("at", "the event's time: the newest counts"),
    id_column("hash", "the event: decides between events of one moment"),
    comment="the heartbeat timeouts that runs announced; others have silent_seconds",
)

run_queries = Table(
    "run_queries",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False, comment="the micro-batch's run"),
    text_column("query_id", "the id of the streaming query"),
    number_column("batch_id", "the number of the micro-batch", nullable=True),
    id_column("job_id", "what job_relations call the query's job"),
    id_column("owner_id", "the query's run, which owns the relations"),
    code_column("rank", "2 job description, 1 captured properties, which may be one behind"),
    time_column("at", "the event's time"),
    id_column("hash", "the event: decides between events of one moment"),
    Index(None, "query_id"),
    Index(None, "job_id"),
    Index(None, "owner_id", "at"),
    comment="the streaming query of each micro-batch that comes as a run of its own",
)

IS_RENAMED = and_(runs.c.least_start != runs.c.least_later, not_(REPORTED_BY_SEVERAL))
"""The condition that a run's START has one name and all later events another."""
