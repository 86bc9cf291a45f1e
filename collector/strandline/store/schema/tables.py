"""The schema of the store: what is kept of the events, one table a kind of fact, the same on SQLite and PostgreSQL.

Every table but the first five is a fold over the set of events (core/changes.py names the winner of each column), so it
can be rebuilt from `raw_events`. Times are microseconds since 1970 UTC, ids of entities 63-bit hashes of what they name,
snapshot ids text. What is *live* stands nowhere: views.py asks it of runs.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
)

metadata = MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"})

Id = BigInteger().with_variant(Integer(), "sqlite")  # a lone INTEGER key is SQLite's rowid: one B-tree instead of two
CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}  # a compound key is the table itself


def _time(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable, server_default=None if nullable else "")


def _id(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _flag(name: str) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default="0")


def _own_id() -> Column[int]:
    return Column("id", Id, primary_key=True, autoincrement=False)


# ---- as received -----------------------------------------------------------------------------------------------------

# Which events are known: the first 16 bytes of SHA-256 over the bytes as received. Two byte-equal events are one event.
event_keys = Table(
    "event_keys",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    _time("received_at"),
    **CLUSTERED,
)

# The events themselves, redacted, zstd-compressed; on PostgreSQL partitioned by received_at, so that expiring is a DROP. (The
# first migration says so; said here too, it would load PostgreSQL's dialect into every command on SQLite.)
raw_events = Table(
    "raw_events",
    metadata,
    _time("received_at"),
    Column("hash", LargeBinary, nullable=False),
    _time("event_time"),
    Column("dictionary_id", BigInteger, nullable=False, server_default="0"),  # trained, or a reference; 0: none
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("received_at", "hash"),
    **CLUSTERED,
)

# zstd dictionaries; id is a hash of the row. Trained on the events of this store, or a reference: one earlier body, itself packed
# alone, for events of its key (a job with an event type) received before `until`; `source` is the hash of the event it came with.
dictionaries = Table(
    "dictionaries",
    metadata,
    _own_id(),
    Column("body", LargeBinary, nullable=False),
    _id("key", nullable=True),
    _time("until", nullable=True),
    Column("source", LargeBinary, nullable=True),
    Index(None, "key"),
    Index(None, "source"),
)

# Records that are no events, with the reason; id is a hash of body and offset, so a replay adds nothing.
dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    _time("received_at"),
    _text("topic"),
    Column("partition_id", Integer, nullable=False, server_default="-1"),
    Column("record_offset", BigInteger, nullable=False, server_default="-1"),
    _text("reason"),
    Column("body", LargeBinary, nullable=False),
    Index(None, "received_at"),
)

# Events that a fault of this program kept from being read or stored, by the hash of what was received (`body` is without its
# secrets). They are taken again when it starts the next time.
unread_events = Table(
    "unread_events",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    _time("received_at"),
    _text("topic"),
    Column("partition_id", Integer, nullable=False, server_default="-1"),
    Column("record_offset", BigInteger, nullable=False, server_default="-1"),
    _text("reason"),
    Column("body", LargeBinary, nullable=False),
    Index(None, "received_at"),
)

# How far each partition was taken, moved by compare-and-set in the transaction of the batch; `token` names the owner.
offsets = Table(
    "offsets",
    metadata,
    _text("topic"),
    Column("partition_id", Integer, nullable=False),
    _text("group_name"),
    Column("next_offset", BigInteger, nullable=False),
    _text("token"),
    PrimaryKeyConstraint("topic", "partition_id", "group_name"),
    **CLUSTERED,
)

# What views and answers need to know of the settings: silent_seconds, known_runs.
store_settings = Table("store_settings", metadata, Column("key", Text, primary_key=True), _text("value"), **CLUSTERED)

# ---- jobs and runs ---------------------------------------------------------------------------------------------------

# Every namespace that a job or dataset was named in. Text that can be long is never in an index: its hash is.
namespaces = Table("namespaces", metadata, _own_id(), _text("name"))

# One row a job as named. noise: some event of it had nothing but Delta's own log, or was an RDD's job without datasets, or it
# is what a streaming query may be called; data: some had real datasets.
jobs = Table(
    "jobs",
    metadata,
    _own_id(),
    _id("namespace_id"),
    _text("namespace"),
    _text("name"),
    _time("first_at", nullable=True),  # NULL: only mentioned, by an event of another job
    _time("newest_at", nullable=True),
    _flag("noise"),  # a job is hidden if noise = 1 and data = 0
    _flag("data"),
    Index(None, "namespace_id"),
)

# The domain that a job's newest barrier facet names.
job_domains = Table(
    "job_domains",
    metadata,
    Column("job_id", Id, primary_key=True, autoincrement=False),
    _text("domain"),
    _time("at"),
    _id("hash"),
)

# One row a run. state: 0 none, 1 START, 2 RUNNING, 3 ABORT, 4 COMPLETE, 5 FAIL: the greatest that was seen.
# design = 1: no run but a JobEvent's own statement of inputs and outputs, which is known and never live.
runs = Table(
    "runs",
    metadata,
    _own_id(),
    _text("run_id"),  # as sent
    _id("job_id"),  # of the newest event (job_at, job_hash): stock Spark renames jobs on the way
    _time("job_at"),
    _id("job_hash"),
    Column("state", SmallInteger, nullable=False, server_default="0"),
    _time("first_at", nullable=True),  # earliest and newest event of any type; NULL: only mentioned, as a parent
    _time("newest_at", nullable=True),
    _time("started_at", nullable=True),  # earliest START or RUNNING; without one a run never was live
    _time("ended_at", nullable=True),  # earliest COMPLETE, FAIL or ABORT
    _time("received_at"),  # newest receipt of an event of the run
    _time("child_received_at"),  # newest receipt of an event that names it as parent
    _flag("design"),
    _flag("streaming"),  # jobType says STREAMING
    _flag("spark"),  # jobType says SPARK
    _flag("announced"),  # sent a lease or a barrier: owns its relations itself
    _flag("query"),  # no run of events: a streaming query within an application, of which its micro-batches tell
    _id(
        "least_job", nullable=True
    ),  # of the jobs that its events name, the least and the greatest id: two are a rename
    _id("most_job", nullable=True),
    Index(None, "run_id", postgresql_ops={"run_id": "text_pattern_ops"}),  # a part of an id finds its run
    Index(None, "job_id", "newest_at"),
    Index(None, "newest_at"),
)

# The parent and root run that a run's newest parent facet names.
run_parents = Table(
    "run_parents",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False),
    _id("parent_run_id"),
    _id("parent_job_id"),
    _id("root_run_id"),
    _id("root_job_id"),
    _time("at"),
    _id("hash"),
    Index(None, "parent_run_id", "at"),
    Index(None, "parent_job_id"),
    Index(None, "root_run_id"),
)

# The lease in seconds that a run announced; a run without a row has store_settings.silent_seconds.
run_leases = Table(
    "run_leases",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False),
    Column("seconds", BigInteger, nullable=False),
    _time("at"),
    _id("hash"),
)

# Which streaming query and batch a micro-batch's own run (stock Spark listener) belongs to; owner_id is the query's run,
# whose job is the query's; job_id is what job_relations call the query, by whatever name (of rows without owner: its job).
run_queries = Table(
    "run_queries",
    metadata,
    Column("run_id", Id, primary_key=True, autoincrement=False),
    _text("query_id"),
    Column("batch_id", BigInteger, nullable=True),
    _id("job_id"),
    _id("owner_id", nullable=True),
    Column("rank", SmallInteger, nullable=False),  # 2 job description, 1 captured properties (may be one behind)
    _time("at"),
    _id("hash"),
    Index(None, "query_id"),
    Index(None, "job_id"),
    Index(None, "owner_id", "at"),
)

# ---- datasets --------------------------------------------------------------------------------------------------------

# One row a dataset as named. canonical_id, catalog, database_name, table_name are derived (store/identity.py).
datasets = Table(
    "datasets",
    metadata,
    _own_id(),
    _id("namespace_id"),
    _text("namespace"),
    _text("name"),
    _id("canonical_id"),  # the one row of its group of symlinks; its own id without any
    _id("place_id"),  # hash of the three that follow
    _text("catalog"),
    _text("database_name"),
    _text("table_name"),
    _time("first_at", nullable=True),
    _time("newest_at", nullable=True),
    _flag("named"),  # 1: an event had it as dataset; 0: only symlinks or edges mention it
    Index(None, "canonical_id"),
    Index(None, "namespace_id"),
    Index(None, "place_id"),
)

# "dataset_id is also called alias_id": symlinks facets (type TABLE, LOCATION, ...) and path patterns (type PATTERN).
dataset_aliases = Table(
    "dataset_aliases",
    metadata,
    _id("dataset_id"),
    _id("alias_id"),
    _text("type"),
    PrimaryKeyConstraint("dataset_id", "alias_id", "type"),
    Index(None, "alias_id"),
    **CLUSTERED,
)

# ---- facets ----------------------------------------------------------------------------------------------------------

# Bodies of more than a kilobyte, once each, by the first 16 bytes of the SHA-256 of their JSON; zstd since schema 0007.
facet_bodies = Table(
    "facet_bodies",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    **CLUSTERED,
)

# The current facet of each (entity, key), and beside it the current one that is not used. entity_id: of a run, job, dataset, or relation (input and output facets).
facets = Table(
    "facets",
    metadata,
    _id("entity_id"),
    _text("key"),
    Column("kind", SmallInteger, nullable=False),  # 1 run, 2 job, 3 dataset, 4 input, 5 output; plus 10: quarantined
    _time("at"),
    Column("hash", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=True),  # NULL: in facet_bodies
    _flag("deleted"),  # the newest body states _deleted
    _text("problem"),  # why the body is quarantined: stored, served as it came, not used
    PrimaryKeyConstraint("entity_id", "key", "kind"),
    **CLUSTERED,
)

# ---- relations and edges ---------------------------------------------------------------------------------------------

# One row per run, direction (0 source, 1 sink) and dataset as named. Live, history, known: views.py.
relations = Table(
    "relations",
    metadata,
    _id("run_id"),
    Column("direction", SmallInteger, nullable=False),
    _id("dataset_id"),
    _id("id"),  # entity_id of its input or output facets
    _flag("creates"),  # 1 lifecycleStateChange CREATE: goes with its run if that fails; 2 read, and not the sender's
    _time("first_at"),
    _time("newest_at"),
    PrimaryKeyConstraint("run_id", "direction", "dataset_id"),
    Index(None, "dataset_id", "run_id"),
    **CLUSTERED,
)

# Which datasets a job was ever named with, in either direction, and the run that did so last: a walk's way to the newest
# relations of each job, as large as the graph, however many runs there were. Sources that only edges name are here too.
job_relations = Table(
    "job_relations",
    metadata,
    _id("job_id"),  # as the event named it
    Column("direction", SmallInteger, nullable=False),
    _id("dataset_id"),
    _id("run_id"),
    _time("at"),
    PrimaryKeyConstraint("job_id", "direction", "dataset_id"),
    Index(None, "dataset_id", "direction"),
    **CLUSTERED,
)

# Edges into one sink, once per content, a row for each source. A set without rows asserts that the sink has no source.
edge_columns = Table(
    "edge_columns",
    metadata,
    Column("set_hash", LargeBinary, nullable=False),
    _id("source_id"),  # dataset as named
    Column("columns", LargeBinary, nullable=False),  # zstd: a JSON array of core.edges.Edge
    PrimaryKeyConstraint("set_hash", "source_id"),
    **CLUSTERED,
)

# Which edges a run made into a sink, and by which rule: 3 lineage facet, 2 columnLineage facet, 1 inputs x outputs of an
# event that stands for itself. Sinks without a row: all sources of the run. The greatest rule counts.
edge_uses = Table(
    "edge_uses",
    metadata,
    _id("run_id"),
    _id("sink_id"),
    Column("rule", SmallInteger, nullable=False),
    Column("set_hash", LargeBinary, nullable=False),
    _time("at"),
    PrimaryKeyConstraint("run_id", "sink_id", "rule"),
    Index(None, "sink_id"),
    Index(None, "set_hash"),
    **CLUSTERED,
)

# ---- barriers and snapshots ------------------------------------------------------------------------------------------

# One row a barrier of a streaming job. generation: the query id, new with every checkpoint directory.
job_barriers = Table(
    "job_barriers",
    metadata,
    _id("job_id"),
    _text("generation"),
    Column("barrier", BigInteger, nullable=False),
    _text("domain"),
    _text("engine"),
    Column("batch_id", BigInteger, nullable=True),
    Column("phase", SmallInteger, nullable=False),  # 2 committed, 1 aborted
    _time("started_at", nullable=True),
    _time("committed_at", nullable=True),
    _text("checkpoint"),
    _id("run_id"),
    Column("facet", LargeBinary, nullable=False),  # the strandline_barrier facet as it came: offsets of the sources
    _time("at"),
    _id("hash"),
    PrimaryKeyConstraint("job_id", "barrier", "generation"),
    Index(None, "domain", "barrier"),
    Index(None, "run_id", "barrier"),
    **CLUSTERED,
)

# One row a known snapshot of a table. rank: 3 stated by its writer, 2 by a reader's exact report, 1 observed.
snapshots = Table(
    "snapshots",
    metadata,
    _id("dataset_id"),  # as named
    _text("snapshot_id"),
    _text("parent_id", nullable=True),
    Column("barrier", BigInteger, nullable=True),
    _text("generation"),
    _id("run_id"),
    _time("committed_at", nullable=True),
    _text("operation"),
    _text("format"),
    Column("row_count", BigInteger, nullable=True),
    Column("approximate", Double, nullable=True),  # float(snapshot_id): how stock Iceberg reports name it
    Column("rank", SmallInteger, nullable=False),
    _time("at"),
    _id("hash"),
    _time("first_at"),  # when it was first seen: its place among the others where no event states when it was committed
    PrimaryKeyConstraint("dataset_id", "snapshot_id"),
    Index(None, "approximate"),
    **CLUSTERED,
)

# Data lineage: which snapshot a run read (direction 0) or made (1), under which barrier (0: none).
snapshot_uses = Table(
    "snapshot_uses",
    metadata,
    _id("run_id"),
    Column("barrier", BigInteger, nullable=False),
    Column("direction", SmallInteger, nullable=False),
    _id("dataset_id"),
    _text("snapshot_id"),
    _text("from_snapshot_id", nullable=True),  # exclusive start of an incremental read
    _text("generation"),
    _flag("lossy"),  # snapshot_id came as a double: match snapshots.approximate
    Column("rank", SmallInteger, nullable=False),  # as in snapshots
    _time("order_at"),  # among observed ones the greatest counts: newest written, earliest read
    _time("at"),
    _id("hash"),
    PrimaryKeyConstraint("run_id", "barrier", "direction", "dataset_id", "snapshot_id"),
    Index(None, "dataset_id", "snapshot_id"),
    **CLUSTERED,
)

# Snapshots that a new run starts from; live until the run ends.
startup_snapshots = Table(
    "startup_snapshots",
    metadata,
    _id("run_id"),
    _id("job_id"),
    _id("dataset_id"),
    _text("snapshot_id"),
    _time("at"),
    PrimaryKeyConstraint("run_id", "dataset_id"),
    **CLUSTERED,
)

# Options of catalogs, written by whoever configures one; table-lineage and data-lineage = false hide its rows from views.
catalog_options = Table(
    "catalog_options",
    metadata,
    _text("key"),
    _text("value"),
    _text("namespace"),
    _text("catalog"),
    _text("domain"),
    PrimaryKeyConstraint("namespace", "catalog", "key"),
    **CLUSTERED,
)

# ---- search ----------------------------------------------------------------------------------------------------------

# Pages of the search's index (store/search/pages.py), each of one kind of text and one namespace: zstd of words with NUL between
# them, and of arrays that say whose they are. size: how many datasets or jobs.
search_pages = Table(
    "search_pages",
    metadata,
    _own_id(),
    _id("namespace_id"),
    Column("kind", SmallInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("words", LargeBinary, nullable=False),
    Column("owners", LargeBinary, nullable=False),
    Index(None, "kind", "namespace_id", "size"),
)

# ---- operations ------------------------------------------------------------------------------------------------------

# Keys that may use the API: SHA-256 of the key, which itself is shown once and kept nowhere; `id` is the part of it that may
# be shown. scopes: with commas; namespaces: patterns, one a line. used_at: its last use, to the minute.
api_keys = Table(
    "api_keys",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    _text("name"),
    _time("created_at"),
    _time("revoked_at", nullable=True),
    _text("id"),
    _text("scopes"),
    _text("namespaces"),
    _time("expires_at", nullable=True),
    _time("used_at", nullable=True),
    **CLUSTERED,
)

# Who changed what, when and from where, and who was refused; `at` in microseconds.
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    _time("at"),
    _text("who"),
    _text("what"),
    _text("address"),
    Column("status", SmallInteger, nullable=False),
    _text("details"),
    Index(None, "at"),
    sqlite_autoincrement=True,
)

# Records that were being taken, alone, when the process died: how often each. Only kept while it may happen again.
crash_marks = Table(
    "crash_marks",
    metadata,
    _text("topic"),
    Column("partition_id", Integer, nullable=False),
    _text("group_name"),
    Column("record_offset", BigInteger, nullable=False),
    Column("crashes", Integer, nullable=False),
    PrimaryKeyConstraint("topic", "partition_id", "group_name"),
    **CLUSTERED,
)

# Events that were refused over HTTP, once for each producer and reason; id is a hash of both. body: the newest one's first bytes.
refused_events = Table(
    "refused_events",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    _text("producer"),
    _text("reason"),
    Column("count", BigInteger, nullable=False),
    _time("first_at"),
    _time("newest_at"),
    Column("body", LargeBinary, nullable=False),
    Index(None, "newest_at"),
)

# ---- annotations -----------------------------------------------------------------------------------------------------

# What people note of a job, dataset, column (`field`), namespace, source or tag, which no event overwrites and no replay
# brings back. kind: 1 tag (`name`), 2 description, 3 deleted, 4 owner, 5 source (value: JSON), 6 the tag itself.
# id is a hash of entity, kind, field and name.
TAG_GIVEN = 1
annotations = Table(
    "annotations",
    metadata,
    _own_id(),
    _id("entity_id"),
    Column("kind", SmallInteger, nullable=False),
    _text("field"),
    _text("name"),
    _text("value"),
    _time("at"),
    Index(None, "entity_id"),
    Index(None, "kind"),
)

# Every change of an annotation: who did what to which entity, when. Only ever added to.
annotation_log = Table(
    "annotation_log",
    metadata,
    _own_id(),
    _time("at"),
    _text("actor"),
    _text("action"),
    _text("entity"),
    _text("field"),
    _text("name"),
    _text("value"),
    Index(None, "at"),
)
