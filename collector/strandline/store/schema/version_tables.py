"""The tables of consistent versions: a log of facts, what waits to become facts, and leases.

The log is the state: every server folds the same facts in the same order. Facts are numbered under
the lock of the row `version_facts` of `numbers`.
"""

from sqlalchemy import Column, Index, Table, Text

from strandline.store.schema.columns import (
    CLUSTERED,
    Id,
    bytes_column,
    code_column,
    id_column,
    metadata,
    number_column,
    row_number,
    text_column,
    time_column,
)

version_facts = Table(
    "version_facts",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=False, comment="the order, without gaps"),
    time_column("at", "when it was written"),
    Column("kind", Text, nullable=False, comment="the type of the fact in core/versions"),
    bytes_column("body", "the fact as JSON"),
    comment="the facts that versions are computed from",
)

version_news = Table(
    "version_news",
    metadata,
    row_number(),
    code_column("kind", "0 a run, 1 a base table, 2 a dataset that was renamed"),
    id_column("entity_id", "the run, base table or dataset"),
    number_column("barrier", "the barrier of the run; 0: the run itself"),
    comment="what transactions changed that may become a fact",
    sqlite_autoincrement=True,
)

group_roots = Table(
    "group_roots",
    metadata,
    Column("dataset_id", Id, primary_key=True, autoincrement=False, comment="the base table"),
    Column("group_name", Text, nullable=False, comment="the group that declares it"),
    comment="base tables of declared groups: their snapshots become barriers",
)

group_jobs = Table(
    "group_jobs",
    metadata,
    Column("job_id", Id, primary_key=True, autoincrement=False, comment="the job"),
    comment="jobs that are registered or members: starts and ends of their runs are facts",
)

reader_leases = Table(
    "reader_leases",
    metadata,
    Column("id", Text, primary_key=True, comment="known to its reader alone"),
    time_column("created_at", "for people"),
    time_column("expires_at", "when it ends; one that has ended stays so"),
    text_column("holder", "the reader, for people"),
    bytes_column("body", "the answer: tables and snapshots"),
    Index(None, "expires_at"),
    comment="claims of readers on the snapshots that they were answered",
    **CLUSTERED,
)

open_rollbacks = Table(
    "open_rollbacks",
    metadata,
    Column("group_name", Text, primary_key=True, comment="it has one rollback at a time"),
    time_column("begun_at", "for people"),
    bytes_column("body", "the plan that it began with, so that another process can finish it"),
    comment="rollbacks that are being carried out",
    **CLUSTERED,
)

alerts = Table(
    "alerts",
    metadata,
    Column("key", Text, primary_key=True, comment="the rule and what it is about"),
    time_column("since", "since when"),
    bytes_column("body", "what was reported, to report the recovery alike"),
    comment="alerts that are on; a row goes when its trouble does",
    **CLUSTERED,
)
