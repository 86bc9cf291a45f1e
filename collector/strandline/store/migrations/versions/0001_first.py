"""The first schema: events as received, jobs, runs, datasets, facets, relations, barriers and snapshots."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}
VIEWS = {
    "run_owners": """
SELECT run.id AS run_id,
       CASE WHEN parent.run_id IS NOT NULL AND run.announced = 0
             AND (query.run_id IS NOT NULL OR (run.streaming = 1 AND run.spark = 1))
            THEN parent.parent_run_id ELSE run.id END AS owner_id,
       CASE WHEN query.run_id IS NOT NULL AND run.announced = 0 THEN query.job_id
            WHEN parent.run_id IS NOT NULL AND run.announced = 0 AND run.streaming = 1 AND run.spark = 1
            THEN parent.parent_job_id ELSE run.job_id END AS job_id,
       CASE WHEN run.announced = 0 THEN query.query_id END AS query_id,
       CASE WHEN run.announced = 0 THEN query.batch_id + 1 END AS barrier
  FROM runs run
  LEFT JOIN run_parents parent ON parent.run_id = run.id
  LEFT JOIN run_queries query ON query.run_id = run.id
""",
    "run_silences": """
SELECT run.id AS run_id,
       CASE WHEN lease.run_id IS NOT NULL THEN run.received_at + lease.seconds * 1000000
            WHEN run.child_received_at > run.received_at THEN run.child_received_at + silence.micros
            ELSE run.received_at + silence.micros END AS silent_at
  FROM runs run
  LEFT JOIN run_leases lease ON lease.run_id = run.id
  CROSS JOIN (SELECT CAST(coalesce((SELECT value FROM store_settings WHERE key = 'silent_seconds'), '86400') AS BIGINT)
                     * 1000000 AS micros) silence
""",
    "run_lives": """
SELECT owned.run_id, owned.owner_id, owned.job_id, owned.query_id,
       CASE WHEN run.state >= 3 THEN run.state WHEN owner.ended_at IS NOT NULL THEN owner.state
            WHEN silence.silent_at < {now} THEN -1 ELSE run.state END AS state,
       coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at) AS valid_from,
       CASE WHEN owner.ended_at IS NOT NULL THEN owner.ended_at
            WHEN silence.silent_at < {now} THEN silence.silent_at END AS valid_to,
       CASE WHEN coalesce(owner.started_at, run.started_at) IS NOT NULL AND owner.ended_at IS NULL
             AND silence.silent_at >= {now} THEN 1 ELSE 0 END AS live,
       run.design AS design
  FROM run_owners owned
  JOIN runs run ON run.id = owned.run_id
  JOIN runs owner ON owner.id = owned.owner_id
  JOIN run_silences silence ON silence.run_id = owned.owner_id
""",
    "relation_lives": """
SELECT life.run_id, life.owner_id, life.job_id, relation.direction, named.canonical_id AS dataset_id,
       relation.dataset_id AS named_id, relation.creates, life.state, life.valid_from, life.valid_to, life.live,
       life.design
  FROM relations relation
  JOIN run_lives life ON life.run_id = relation.run_id
  JOIN runs run ON run.id = relation.run_id
  JOIN datasets named ON named.id = relation.dataset_id
 WHERE NOT (relation.creates = 1 AND run.state IN (3, 5) AND run.streaming = 0)
""",
    "snapshot_lineage": """
SELECT used.run_id, owned.owner_id, owned.job_id, used.direction, used.dataset_id, used.named_id, used.from_snapshot_id,
       CASE WHEN used.barrier > 0 THEN used.barrier WHEN run.state = 4 THEN owned.barrier END AS barrier,
       coalesce(owned.query_id, used.generation) AS generation,
       coalesce(used.exact_id, used.snapshot_id) AS snapshot_id,
       CASE WHEN used.rank = 1 OR (used.lossy = 1 AND used.exact_id IS NULL) THEN 1 ELSE 0 END AS observed,
       used.rank, used.order_at, used.at
  FROM (SELECT taken.run_id, taken.barrier, taken.direction, named.canonical_id AS dataset_id, taken.lossy,
               taken.dataset_id AS named_id, taken.snapshot_id, taken.from_snapshot_id, taken.generation,
               taken.rank, taken.order_at, taken.at,
               CASE WHEN taken.lossy = 1 THEN (
                    SELECT min(known.snapshot_id) FROM snapshots known JOIN datasets other ON other.id = known.dataset_id
                     WHERE other.canonical_id = named.canonical_id
                       AND known.approximate = CASE WHEN taken.lossy = 1
                                                    THEN CAST(taken.snapshot_id AS DOUBLE PRECISION) END) END AS exact_id,
               rank() OVER (PARTITION BY taken.run_id, taken.barrier, taken.direction, named.canonical_id
                            ORDER BY CASE WHEN taken.rank > 1 THEN 2 ELSE 1 END DESC,
                                     CASE WHEN taken.rank > 1 THEN 0 ELSE taken.order_at END DESC) AS standing
          FROM snapshot_uses taken
          JOIN datasets named ON named.id = taken.dataset_id) used
  JOIN run_owners owned ON owned.run_id = used.run_id
  JOIN runs run ON run.id = used.run_id
 WHERE used.standing = 1
""",
    "job_startup": """
SELECT job.name AS job, place.database_name AS "database", place.table_name AS "table", started.snapshot_id AS snapshot_id,
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM startup_snapshots started
  JOIN run_lives life ON life.run_id = started.run_id
  JOIN jobs job ON job.id = started.job_id
  JOIN datasets named ON named.id = started.dataset_id
  JOIN datasets place ON place.id = named.canonical_id
  LEFT JOIN job_domains member ON member.job_id = started.job_id
 WHERE life.live = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'data-lineage' AND lower(said.value) = 'false')
""",
    "source_job_lineage": """
SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_domains member ON member.job_id = life.job_id
 WHERE life.direction = 0 AND life.live = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'table-lineage' AND lower(said.value) = 'false')
""",
    "source_job_lineage_history": """
SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS domain,
       owner.run_id AS run_id, life.valid_from AS valid_from, life.valid_to AS valid_to,
       CASE life.state WHEN -1 THEN 'LOST' WHEN 5 THEN 'FAIL' WHEN 4 THEN 'COMPLETE' WHEN 3 THEN 'ABORT'
                       ELSE 'RUNNING' END AS state
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_domains member ON member.job_id = life.job_id
  JOIN runs owner ON owner.id = life.owner_id
 WHERE life.direction = 0 AND life.valid_to IS NOT NULL AND life.design = 0 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'table-lineage' AND lower(said.value) = 'false')
""",
    "source_snapshot_lineage": """
SELECT job.name AS job, CAST(best.barrier AS BIGINT) AS barrier_id, place.database_name AS "database",
       place.table_name AS "table", best.snapshot_id AS snapshot_id, job.namespace AS namespace,
       place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM (SELECT told.*, row_number() OVER (
                 PARTITION BY told.job_id, told.barrier, told.dataset_id
                 ORDER BY told.generation_at DESC, told.generation DESC, told.rank DESC, told.order_at DESC, told.at DESC,
                          told.snapshot_id DESC) AS standing
          FROM (SELECT lineage.*, max(lineage.at) OVER (
                         PARTITION BY lineage.job_id, lineage.barrier, lineage.dataset_id, lineage.generation)
                         AS generation_at
                  FROM snapshot_lineage lineage
                 WHERE lineage.direction = 0 AND lineage.barrier IS NOT NULL) told) best
  JOIN jobs job ON job.id = best.job_id
  JOIN datasets place ON place.id = best.dataset_id
  LEFT JOIN job_domains member ON member.job_id = best.job_id
 WHERE best.standing = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'data-lineage' AND lower(said.value) = 'false')
""",
    "__META_ETL_SOURCE": """
SELECT DISTINCT job AS job_id, "table" AS table_name, namespace, catalog, domain FROM source_job_lineage
""",
    "sink_job_lineage": """
SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_domains member ON member.job_id = life.job_id
 WHERE life.direction = 1 AND life.live = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'table-lineage' AND lower(said.value) = 'false')
""",
    "sink_job_lineage_history": """
SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS domain,
       owner.run_id AS run_id, life.valid_from AS valid_from, life.valid_to AS valid_to,
       CASE life.state WHEN -1 THEN 'LOST' WHEN 5 THEN 'FAIL' WHEN 4 THEN 'COMPLETE' WHEN 3 THEN 'ABORT'
                       ELSE 'RUNNING' END AS state
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_domains member ON member.job_id = life.job_id
  JOIN runs owner ON owner.id = life.owner_id
 WHERE life.direction = 1 AND life.valid_to IS NOT NULL AND life.design = 0 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'table-lineage' AND lower(said.value) = 'false')
""",
    "sink_snapshot_lineage": """
SELECT job.name AS job, CAST(best.barrier AS BIGINT) AS barrier_id, place.database_name AS "database",
       place.table_name AS "table", best.snapshot_id AS snapshot_id, job.namespace AS namespace,
       place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM (SELECT told.*, row_number() OVER (
                 PARTITION BY told.job_id, told.barrier, told.dataset_id
                 ORDER BY told.generation_at DESC, told.generation DESC, told.rank DESC, told.order_at DESC, told.at DESC,
                          told.snapshot_id DESC) AS standing
          FROM (SELECT lineage.*, max(lineage.at) OVER (
                         PARTITION BY lineage.job_id, lineage.barrier, lineage.dataset_id, lineage.generation)
                         AS generation_at
                  FROM snapshot_lineage lineage
                 WHERE lineage.direction = 1 AND lineage.barrier IS NOT NULL) told) best
  JOIN jobs job ON job.id = best.job_id
  JOIN datasets place ON place.id = best.dataset_id
  LEFT JOIN job_domains member ON member.job_id = best.job_id
 WHERE best.standing = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog AND said.key = 'data-lineage' AND lower(said.value) = 'false')
""",
    "__META_ETL_SINK": """
SELECT DISTINCT job AS job_id, "table" AS table_name, namespace, catalog, domain FROM sink_job_lineage
""",
    "__META_TABLE_VERSION": """
SELECT DISTINCT place.table_name AS table_name, CAST(made.barrier AS BIGINT) AS version,
       CASE WHEN EXISTS (SELECT 1 FROM snapshot_lineage taken WHERE taken.job_id = made.job_id AND taken.direction = 0)
            THEN 'Intermediate' ELSE 'Root' END AS table_type,
       job.namespace AS namespace, place.catalog AS catalog, coalesce(member.domain, '') AS domain
  FROM snapshot_lineage made
  JOIN jobs job ON job.id = made.job_id
  JOIN datasets place ON place.id = made.dataset_id
  LEFT JOIN job_domains member ON member.job_id = made.job_id
 WHERE made.direction = 1 AND made.barrier IS NOT NULL
""",
}


def upgrade() -> None:
    """Create every table and every view as they were at first."""
    # ### commands auto generated by Alembic - please adjust! ###
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
        sa.Column("first_at", sa.BigInteger(), nullable=True),
        sa.Column("newest_at", sa.BigInteger(), nullable=True),
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
        sa.Column("first_at", sa.BigInteger(), nullable=True),
        sa.Column("newest_at", sa.BigInteger(), nullable=True),
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
        sa.Column("first_at", sa.BigInteger(), nullable=True),
        sa.Column("newest_at", sa.BigInteger(), nullable=True),
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
        sa.Column("hash", sa.BigInteger(), nullable=False),
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


def create_views(connection: sa.Connection) -> None:
    """Create every view, each after those that it asks."""
    for name, query in VIEWS.items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {query.strip().format(now=NOW[connection.dialect.name])}")
