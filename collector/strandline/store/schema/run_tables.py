"""Jobs and their runs, with the namespaces that name them."""

from sqlalchemy import BigInteger, Column, Index, SmallInteger, Table

from strandline.store.schema.columns import (
    Id,
    flag_column,
    id_column,
    metadata,
    own_id,
    text_column,
    time_column,
)

# Every namespace that a job or dataset was named in. Text that can be long is never in an index:
# its hash is.
namespaces = Table("namespaces", metadata, own_id(), text_column("name"))

# One row a job as named. noise: some event of it had nothing but Delta's own log, or was an RDD's
# job without datasets, or it is what a streaming query may be called; data: some had real datasets.
jobs = Table(
    "jobs",
    metadata,
    own_id(),
    id_column("namespace_id"),
    text_column("namespace"),
    text_column("name"),
    time_column("first_at", nullable=True),  # NULL: only mentioned, by an event of another job
    time_column("newest_at", nullable=True),
    flag_column("noise"),  # a job is hidden if noise = 1 and data = 0
    flag_column("data"),
    Index(None, "namespace_id"),
)

# The group that a job's newest barrier facet names.
job_domains = Table(
    "job_domains",
    metadata,
    Column("job_id", Id, primary_key=True, autoincrement=False),
    text_column("domain"),
    time_column("at"),
    id_column("hash"),
)

# One row a run. state: 0 none, 1 START, 2 RUNNING, 3 ABORT, 4 COMPLETE, 5 FAIL: the greatest that
# was seen. design = 1: no run but a JobEvent's own statement of inputs and outputs, which is known
# and never live.
runs = Table(
    "runs",
    metadata,
    own_id(),
    text_column("run_id"),  # as sent
    id_column(
        "job_id"
    ),  # of the newest event (job_at, job_hash): stock Spark renames jobs on the way
    time_column("job_at"),
    id_column("job_hash"),
    Column("state", SmallInteger, nullable=False, server_default="0"),
    time_column(
        "first_at", nullable=True
    ),  # earliest and newest event of any type; NULL: only mentioned, as a parent
    time_column("newest_at", nullable=True),
    time_column(
        "started_at", nullable=True
    ),  # earliest START or RUNNING; without one a run never was live
    time_column("ended_at", nullable=True),  # earliest COMPLETE, FAIL or ABORT
    time_column("received_at"),  # newest receipt of an event of the run
    time_column("child_received_at"),  # newest receipt of an event that names it as parent
    flag_column("design"),
    flag_column("streaming"),  # jobType says STREAMING
    flag_column("spark"),  # jobType says SPARK
    flag_column("announced"),  # sent a heartbeat timeout or a barrier: owns its relations itself
    flag_column(
        "query"
    ),  # no run of events: a streaming query within an application, of which its micro-batches tell
    id_column(
        "least_job", nullable=True
    ),  # of the jobs that its events name, the least and the greatest id: two are a rename
    id_column("most_job", nullable=True),
    Index(
        None, "run_id", postgresql_ops={"run_id": "text_pattern_ops"}
    ),  # a part of an id finds its run
    Index(None, "job_id", "newest_at"),
    Index(None, "newest_at"),
)

# The parent and root run that a run's newest parent facet names.
run_parents = Table(
    "run_parents",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False),
    id_column("parent_run_id"),
    id_column("parent_job_id"),
    id_column("root_run_id"),
    id_column("root_job_id"),
    time_column("at"),
    id_column("hash"),
    Index(None, "parent_run_id", "at"),
    Index(None, "parent_job_id"),
    Index(None, "root_run_id"),
)

# The heartbeat timeout in seconds that a run announced; a run without a row has
# store_settings.silent_seconds.
run_leases = Table(
    "run_leases",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False),
    Column("seconds", BigInteger, nullable=False),
    time_column("at"),
    id_column("hash"),
)

# Which streaming query and batch a micro-batch's own run (stock Spark listener) belongs to;
# owner_id is the query's run, whose job is the query's; job_id is what job_relations call the
# query, by whatever name (of rows without owner: its job).
run_queries = Table(
    "run_queries",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False),
    text_column("query_id"),
    Column("batch_id", BigInteger, nullable=True),
    id_column("job_id"),
    id_column("owner_id", nullable=True),
    Column(
        "rank", SmallInteger, nullable=False
    ),  # 2 job description, 1 captured properties (may be one behind)
    time_column("at"),
    id_column("hash"),
    Index(None, "query_id"),
    Index(None, "job_id"),
    Index(None, "owner_id", "at"),
)
