"""The first schema: events as received, jobs, runs, datasets, facets, relations, barriers and snapshots."""

import sqlalchemy as sa
from alembic import op

from strandline.store.views import create_views

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table of tables.py and every view of views.py as they were in the first release."""
    op.create_table(
        "catalog_options",
        sa.Column("key", sa.Text(), server_default="", nullable=False),
        sa.Column("value", sa.Text(), server_default="", nullable=False),
        sa.Column("namespace", sa.Text(), server_default="", nullable=False),
        sa.Column("catalog", sa.Text(), server_default="", nullable=False),
        sa.Column("domain", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("namespace", "catalog", "key", name=("pk_catalog_options")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "dataset_aliases",
        sa.Column("dataset_id", sa.BigInteger(), nullable=False),
        sa.Column("alias_id", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "alias_id", "type", name=("pk_dataset_aliases")),
        sqlite_with_rowid=False,
    )
    op.create_index(("ix_dataset_aliases_alias_id"), "dataset_aliases", ["alias_id"], unique=False)
    op.create_table(
        "datasets",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("namespace_id", sa.BigInteger(), nullable=False),
        sa.Column("namespace", sa.Text(), server_default="", nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("canonical_id", sa.BigInteger(), nullable=False),
        sa.Column("place_id", sa.BigInteger(), nullable=False),
        sa.Column("catalog", sa.Text(), server_default="", nullable=False),
        sa.Column("database_name", sa.Text(), server_default="", nullable=False),
        sa.Column("table_name", sa.Text(), server_default="", nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("newest_at", sa.BigInteger(), nullable=False),
        sa.Column("named", sa.SmallInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=("pk_datasets")),
    )
    op.create_index(("ix_datasets_canonical_id"), "datasets", ["canonical_id"], unique=False)
    op.create_index(("ix_datasets_namespace_id"), "datasets", ["namespace_id"], unique=False)
    op.create_index(("ix_datasets_place_id"), "datasets", ["place_id"], unique=False)
    op.create_table(
        "dead_letters",
        sa.Column("id", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("topic", sa.Text(), server_default="", nullable=False),
        sa.Column("partition_id", sa.Integer(), server_default="-1", nullable=False),
        sa.Column("record_offset", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=("pk_dead_letters")),
    )
    op.create_index(("ix_dead_letters_received_at"), "dead_letters", ["received_at"], unique=False)
    op.create_table(
        "dictionaries",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=("pk_dictionaries")),
    )
    op.create_table(
        "edge_uses",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("sink_id", sa.BigInteger(), nullable=False),
        sa.Column("rule", sa.SmallInteger(), nullable=False),
        sa.Column("set_hash", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "sink_id", "rule", name=("pk_edge_uses")),
        sqlite_with_rowid=False,
    )
    op.create_index(("ix_edge_uses_set_hash"), "edge_uses", ["set_hash"], unique=False)
    op.create_index(("ix_edge_uses_sink_id"), "edge_uses", ["sink_id"], unique=False)
    op.create_table(
        "edges",
        sa.Column("set_hash", sa.LargeBinary(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("sink_column", sa.Text(), server_default="", nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("source_column", sa.Text(), server_default="", nullable=False),
        sa.Column("type", sa.Text(), server_default="", nullable=False),
        sa.Column("subtype", sa.Text(), server_default="", nullable=False),
        sa.Column("transform", sa.Text(), server_default="", nullable=False),
        sa.Column("masking", sa.SmallInteger(), nullable=True),
        sa.PrimaryKeyConstraint("set_hash", "position", name=("pk_edges")),
        sqlite_with_rowid=False,
    )
    op.create_index(("ix_edges_source_id"), "edges", ["source_id"], unique=False)
    op.create_table(
        "event_keys",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=("pk_event_keys")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "facet_bodies",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=("pk_facet_bodies")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "facets",
        sa.Column("entity_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), server_default="", nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("deleted", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "key", "kind", name=("pk_facets")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "job_barriers",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Text(), server_default="", nullable=False),
        sa.Column("barrier", sa.BigInteger(), nullable=False),
        sa.Column("domain", sa.Text(), server_default="", nullable=False),
        sa.Column("engine", sa.Text(), server_default="", nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("phase", sa.SmallInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("committed_at", sa.BigInteger(), nullable=True),
        sa.Column("checkpoint", sa.Text(), server_default="", nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("facet", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "barrier", "generation", name=("pk_job_barriers")),
        sqlite_with_rowid=False,
    )
    op.create_index(("ix_job_barriers_domain_barrier"), "job_barriers", ["domain", "barrier"], unique=False)
    op.create_index(("ix_job_barriers_run_id"), "job_barriers", ["run_id"], unique=False)
    op.create_table(
        "job_domains",
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("domain", sa.Text(), server_default="", nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=("pk_job_domains")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("namespace_id", sa.BigInteger(), nullable=False),
        sa.Column("namespace", sa.Text(), server_default="", nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("newest_at", sa.BigInteger(), nullable=False),
        sa.Column("noise", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("data", sa.SmallInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=("pk_jobs")),
    )
    op.create_index(("ix_jobs_namespace_id"), "jobs", ["namespace_id"], unique=False)
    op.create_table(
        "namespaces",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name=("pk_namespaces")),
    )
    op.create_table(
        "offsets",
        sa.Column("topic", sa.Text(), server_default="", nullable=False),
        sa.Column("partition_id", sa.Integer(), nullable=False),
        sa.Column("group_name", sa.Text(), server_default="", nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("topic", "partition_id", "group_name", name=("pk_offsets")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "raw_events",
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("event_time", sa.BigInteger(), nullable=False),
        sa.Column("dictionary_id", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("received_at", "hash", name=("pk_raw_events")),
        postgresql_partition_by="RANGE (received_at)",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "relations",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("direction", sa.SmallInteger(), nullable=False),
        sa.Column("dataset_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("creates", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("newest_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "direction", "dataset_id", name=("pk_relations")),
        sqlite_with_rowid=False,
    )
    op.create_index(("ix_relations_dataset_id_run_id"), "relations", ["dataset_id", "run_id"], unique=False)
    op.create_table(
        "run_leases",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("seconds", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=("pk_run_leases")),
    )
    op.create_table(
        "run_parents",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("parent_run_id", sa.BigInteger(), nullable=False),
        sa.Column("parent_job_id", sa.BigInteger(), nullable=False),
        sa.Column("root_run_id", sa.BigInteger(), nullable=False),
        sa.Column("root_job_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=("pk_run_parents")),
    )
    op.create_index(("ix_run_parents_parent_run_id"), "run_parents", ["parent_run_id"], unique=False)
    op.create_index(("ix_run_parents_root_run_id"), "run_parents", ["root_run_id"], unique=False)
    op.create_table(
        "run_queries",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("query_id", sa.Text(), server_default="", nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=("pk_run_queries")),
    )
    op.create_index(("ix_run_queries_query_id"), "run_queries", ["query_id"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), server_default="", nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("job_at", sa.BigInteger(), nullable=False),
        sa.Column("job_hash", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("newest_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("child_received_at", sa.BigInteger(), nullable=False),
        sa.Column("design", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("streaming", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("spark", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("announced", sa.SmallInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=("pk_runs")),
    )
    op.create_index(("ix_runs_job_id_newest_at"), "runs", ["job_id", "newest_at"], unique=False)
    op.create_index(("ix_runs_newest_at"), "runs", ["newest_at"], unique=False)
    op.create_index(("ix_runs_run_id"), "runs", ["run_id"], unique=False)
    op.create_table(
        "snapshot_uses",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("barrier", sa.BigInteger(), nullable=False),
        sa.Column("direction", sa.SmallInteger(), nullable=False),
        sa.Column("dataset_id", sa.BigInteger(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), server_default="", nullable=False),
        sa.Column("from_snapshot_id", sa.Text(), nullable=True),
        sa.Column("generation", sa.Text(), server_default="", nullable=False),
        sa.Column("lossy", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("order_at", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "run_id", "barrier", "direction", "dataset_id", "snapshot_id", name=("pk_snapshot_uses")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        ("ix_snapshot_uses_dataset_id_snapshot_id"), "snapshot_uses", ["dataset_id", "snapshot_id"], unique=False
    )
    op.create_table(
        "snapshots",
        sa.Column("dataset_id", sa.BigInteger(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), server_default="", nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("barrier", sa.BigInteger(), nullable=True),
        sa.Column("generation", sa.Text(), server_default="", nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("committed_at", sa.BigInteger(), nullable=True),
        sa.Column("operation", sa.Text(), server_default="", nullable=False),
        sa.Column("format", sa.Text(), server_default="", nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=True),
        sa.Column("approximate", sa.Double(), nullable=True),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "snapshot_id", name=("pk_snapshots")),
        sqlite_with_rowid=False,
    )
    op.create_index(("ix_snapshots_approximate"), "snapshots", ["approximate"], unique=False)
    op.create_table(
        "startup_snapshots",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("dataset_id", sa.BigInteger(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), server_default="", nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "dataset_id", name=("pk_startup_snapshots")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "store_settings",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("key", name=("pk_store_settings")),
        sqlite_with_rowid=False,
    )
    # ### end Alembic commands ###
    create_views(op.get_bind())
