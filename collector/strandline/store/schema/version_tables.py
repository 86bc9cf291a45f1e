"""The tables of consistent versions.

A log of facts in one order for all servers, what waits to become facts, leases, alerts.

The log is the state: every server folds the same facts in the same order. Its order is given out
under the lock of version_head's one row, so a reader who knows fact n misses nothing before it.
"""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, SmallInteger, Table, Text

from strandline.store.schema.columns import CLUSTERED, Id, metadata

# One row: the number of the last fact. Whoever adds facts holds its lock.
version_head = Table(
    "version_head",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
)

# Facts of core/barriers.py, each as JSON, in their order.
version_facts = Table(
    "version_facts",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# What an ingest transaction touched that may be a fact: a run with one of its barriers (0: the run
# itself), or a base table.
version_news = Table(
    "version_news",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("kind", SmallInteger, nullable=False),  # 0 run, 1 root
    Column("entity_id", BigInteger, nullable=False),
    Column("barrier", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

# Base tables of declared groups that are known as datasets: snapshots of these become barriers.
domain_roots = Table(
    "domain_roots",
    metadata,
    Column("dataset_id", Id, primary_key=True, autoincrement=False),
    Column("domain", Text, nullable=False),
)

# Jobs that are registered or have a place: every event of theirs that starts or ends a run is
# looked at.
managed_jobs = Table(
    "managed_jobs", metadata, Column("job_id", Id, primary_key=True, autoincrement=False)
)

# Claims of readers on what they were answered; one that is over stays over.
reader_leases = Table(
    "reader_leases",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("holder", Text, nullable=False, server_default=""),
    Column("body", LargeBinary, nullable=False),  # the answer: table and snapshot, each
    Index(None, "expires_at"),
    **CLUSTERED,
)

# A rollback that is being carried out: one a group, with the plan that it began with.
open_rollbacks = Table(
    "open_rollbacks",
    metadata,
    Column("domain", Text, primary_key=True),
    Column("begun_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    **CLUSTERED,
)

# Alerts that are on. key: rule and what it is about; gone when it has recovered.
alerts = Table(
    "alerts",
    metadata,
    Column("key", Text, primary_key=True),
    Column("since", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    **CLUSTERED,
)
