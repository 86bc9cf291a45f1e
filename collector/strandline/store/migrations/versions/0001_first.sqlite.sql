CREATE TABLE api_keys (
    hash BLOB NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    id TEXT DEFAULT '' NOT NULL,
    scopes TEXT DEFAULT '' NOT NULL,
    namespaces TEXT DEFAULT '' NOT NULL,
    expires_at BIGINT,
    used_at BIGINT,
    CONSTRAINT pk_api_keys PRIMARY KEY (hash)
)
 WITHOUT ROWID;

CREATE TABLE audit_log (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at BIGINT NOT NULL,
    who TEXT DEFAULT '' NOT NULL,
    what TEXT DEFAULT '' NOT NULL,
    address TEXT DEFAULT '' NOT NULL,
    status SMALLINT NOT NULL,
    details TEXT DEFAULT '' NOT NULL
);

CREATE INDEX ix_audit_log_at ON audit_log (at);

CREATE TABLE annotations (
    id INTEGER NOT NULL,
    entity_id BIGINT NOT NULL,
    kind SMALLINT NOT NULL,
    field TEXT DEFAULT '' NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    value TEXT DEFAULT '' NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_annotations PRIMARY KEY (id)
);

CREATE INDEX ix_annotations_kind ON annotations (kind);
CREATE INDEX ix_annotations_entity_id ON annotations (entity_id);

CREATE TABLE annotation_log (
    id INTEGER NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT DEFAULT '' NOT NULL,
    action TEXT DEFAULT '' NOT NULL,
    entity TEXT DEFAULT '' NOT NULL,
    field TEXT DEFAULT '' NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    value TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_annotation_log PRIMARY KEY (id)
);

CREATE INDEX ix_annotation_log_at ON annotation_log (at);

CREATE TABLE archive_batches (
    id TEXT NOT NULL,
    target TEXT NOT NULL,
    day INTEGER NOT NULL,
    newest_at BIGINT NOT NULL,
    count INTEGER NOT NULL,
    done SMALLINT NOT NULL,
    events BLOB NOT NULL,
    CONSTRAINT pk_archive_batches PRIMARY KEY (id)
)
 WITHOUT ROWID;

CREATE INDEX ix_archive_batches_newest_at ON archive_batches (newest_at);

CREATE TABLE datasets (
    id INTEGER NOT NULL,
    namespace_id BIGINT NOT NULL,
    namespace TEXT DEFAULT '' NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    canonical_id BIGINT NOT NULL,
    place_id BIGINT NOT NULL,
    catalog TEXT DEFAULT '' NOT NULL,
    database_name TEXT DEFAULT '' NOT NULL,
    table_name TEXT DEFAULT '' NOT NULL,
    first_at BIGINT,
    newest_at BIGINT,
    named SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_datasets PRIMARY KEY (id)
);

CREATE INDEX ix_datasets_namespace_id ON datasets (namespace_id);
CREATE INDEX ix_datasets_canonical_id ON datasets (canonical_id);
CREATE INDEX ix_datasets_place_id ON datasets (place_id);

CREATE TABLE dataset_aliases (
    dataset_id BIGINT NOT NULL,
    alias_id BIGINT NOT NULL,
    type TEXT DEFAULT '' NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_dataset_aliases PRIMARY KEY (dataset_id, alias_id, type)
)
 WITHOUT ROWID;

CREATE INDEX ix_dataset_aliases_alias_id ON dataset_aliases (alias_id);

CREATE TABLE facet_bodies (
    hash BLOB NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_facet_bodies PRIMARY KEY (hash)
)
 WITHOUT ROWID;

CREATE TABLE facet_sets (
    set_id BIGINT NOT NULL,
    "key" TEXT DEFAULT '' NOT NULL,
    kind SMALLINT NOT NULL,
    hash BLOB NOT NULL,
    body BLOB,
    deleted SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_facet_sets PRIMARY KEY (set_id, "key")
)
 WITHOUT ROWID;

CREATE TABLE facet_uses (
    entity_id BIGINT NOT NULL,
    set_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_facet_uses PRIMARY KEY (entity_id, set_id)
)
 WITHOUT ROWID;

CREATE TABLE facets (
    entity_id BIGINT NOT NULL,
    "key" TEXT DEFAULT '' NOT NULL,
    kind SMALLINT NOT NULL,
    at BIGINT NOT NULL,
    hash BLOB NOT NULL,
    body BLOB,
    deleted SMALLINT DEFAULT '0' NOT NULL,
    problem TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_facets PRIMARY KEY (entity_id, "key", kind)
)
 WITHOUT ROWID;

CREATE TABLE export_news (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BLOB,
    body BLOB
);

CREATE TABLE export_changes (
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BLOB,
    body BLOB,
    CONSTRAINT pk_export_changes PRIMARY KEY (kind, entity_id)
)
 WITHOUT ROWID;

CREATE UNIQUE INDEX ix_export_changes_seq ON export_changes (seq);

CREATE TABLE export_targets (
    name TEXT NOT NULL,
    kinds TEXT DEFAULT '' NOT NULL,
    cursor BIGINT DEFAULT '0' NOT NULL,
    holder TEXT DEFAULT '' NOT NULL,
    held_until BIGINT DEFAULT '0' NOT NULL,
    heard_at BIGINT DEFAULT '0' NOT NULL,
    failures INTEGER DEFAULT '0' NOT NULL,
    next_at BIGINT DEFAULT '0' NOT NULL,
    problem TEXT DEFAULT '' NOT NULL,
    sent BIGINT DEFAULT '0' NOT NULL,
    sent_at BIGINT DEFAULT '0' NOT NULL,
    dropped BIGINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_export_targets PRIMARY KEY (name)
)
 WITHOUT ROWID;

CREATE TABLE export_sent (
    target TEXT NOT NULL,
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    shape BLOB NOT NULL,
    detail BLOB NOT NULL,
    at BIGINT NOT NULL,
    run_id BIGINT DEFAULT '0' NOT NULL,
    live SMALLINT DEFAULT '0' NOT NULL,
    stale SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_export_sent PRIMARY KEY (target, kind, entity_id)
)
 WITHOUT ROWID;

CREATE TABLE export_parked (
    target TEXT NOT NULL,
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    attempts INTEGER NOT NULL,
    about TEXT NOT NULL,
    reason TEXT NOT NULL,
    change_kind SMALLINT NOT NULL,
    change_id BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    change_at BIGINT NOT NULL,
    hash BLOB,
    body BLOB,
    CONSTRAINT pk_export_parked PRIMARY KEY (target, kind, entity_id)
)
 WITHOUT ROWID;

CREATE TABLE graph_news (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    transaction_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX ix_graph_news_transaction_id ON graph_news (transaction_id);

CREATE TABLE event_keys (
    hash BLOB NOT NULL,
    received_at BIGINT NOT NULL,
    CONSTRAINT pk_event_keys PRIMARY KEY (hash)
)
 WITHOUT ROWID;

CREATE TABLE raw_events (
    received_at BIGINT NOT NULL,
    hash BLOB NOT NULL,
    event_time BIGINT NOT NULL,
    reference_id BIGINT DEFAULT '0' NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_raw_events PRIMARY KEY (received_at, hash)
)
 WITHOUT ROWID;

CREATE TABLE body_references (
    id INTEGER NOT NULL,
    body BLOB NOT NULL,
    "key" BIGINT NOT NULL,
    until BIGINT NOT NULL,
    source BLOB NOT NULL,
    CONSTRAINT pk_body_references PRIMARY KEY (id)
);

CREATE INDEX ix_body_references_key ON body_references ("key");
CREATE INDEX ix_body_references_source ON body_references (source);

CREATE TABLE set_aside (
    kind TEXT DEFAULT '' NOT NULL,
    id BLOB NOT NULL,
    received_at BIGINT NOT NULL,
    topic TEXT DEFAULT '' NOT NULL,
    partition_id INTEGER DEFAULT '-1' NOT NULL,
    record_offset BIGINT DEFAULT '-1' NOT NULL,
    reason TEXT DEFAULT '' NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_set_aside PRIMARY KEY (kind, id)
);

CREATE INDEX ix_set_aside_kind_received_at ON set_aside (kind, received_at);

CREATE TABLE refused_events (
    id BLOB NOT NULL,
    producer TEXT DEFAULT '' NOT NULL,
    reason TEXT DEFAULT '' NOT NULL,
    count BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    newest_at BIGINT NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_refused_events PRIMARY KEY (id)
);

CREATE INDEX ix_refused_events_newest_at ON refused_events (newest_at);

CREATE TABLE offsets (
    topic TEXT DEFAULT '' NOT NULL,
    partition_id INTEGER NOT NULL,
    group_name TEXT DEFAULT '' NOT NULL,
    next_offset BIGINT NOT NULL,
    token TEXT DEFAULT '' NOT NULL,
    suspected_offset BIGINT,
    crashes INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT pk_offsets PRIMARY KEY (topic, partition_id, group_name)
)
 WITHOUT ROWID;

CREATE TABLE store_settings (
    "key" TEXT NOT NULL,
    value TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_store_settings PRIMARY KEY ("key")
)
 WITHOUT ROWID;

CREATE TABLE numbers (
    name TEXT NOT NULL,
    seq BIGINT NOT NULL,
    CONSTRAINT pk_numbers PRIMARY KEY (name)
)
 WITHOUT ROWID;

CREATE TABLE template_relations (
    template_id BIGINT NOT NULL,
    direction SMALLINT NOT NULL,
    dataset_id BIGINT NOT NULL,
    creates SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_template_relations PRIMARY KEY (template_id, direction, dataset_id)
)
 WITHOUT ROWID;

CREATE INDEX ix_template_relations_dataset_id ON template_relations (dataset_id);

CREATE TABLE template_edges (
    template_id BIGINT NOT NULL,
    sink_id BIGINT NOT NULL,
    rule BIGINT NOT NULL,
    set_hash BLOB NOT NULL,
    CONSTRAINT pk_template_edges PRIMARY KEY (template_id, sink_id, rule)
)
 WITHOUT ROWID;

CREATE INDEX ix_template_edges_sink_id ON template_edges (sink_id);
CREATE INDEX ix_template_edges_set_hash ON template_edges (set_hash);

CREATE TABLE run_templates (
    run_id BIGINT NOT NULL,
    template_id BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    newest_at BIGINT NOT NULL,
    CONSTRAINT pk_run_templates PRIMARY KEY (run_id, template_id)
)
 WITHOUT ROWID;

CREATE INDEX ix_run_templates_template_id ON run_templates (template_id);

CREATE TABLE job_relations (
    job_id BIGINT NOT NULL,
    direction SMALLINT NOT NULL,
    dataset_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    ran SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_job_relations PRIMARY KEY (job_id, direction, dataset_id)
)
 WITHOUT ROWID;

CREATE INDEX ix_job_relations_dataset_id_direction ON job_relations (dataset_id, direction);

CREATE TABLE edge_columns (
    set_hash BLOB NOT NULL,
    source_id BIGINT NOT NULL,
    columns BLOB NOT NULL,
    CONSTRAINT pk_edge_columns PRIMARY KEY (set_hash, source_id)
)
 WITHOUT ROWID;

CREATE TABLE namespaces (
    id INTEGER NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_namespaces PRIMARY KEY (id)
);

CREATE TABLE jobs (
    id INTEGER NOT NULL,
    namespace_id BIGINT NOT NULL,
    namespace TEXT DEFAULT '' NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    first_at BIGINT,
    newest_at BIGINT,
    noise SMALLINT DEFAULT '0' NOT NULL,
    data SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_jobs PRIMARY KEY (id)
);

CREATE INDEX ix_jobs_namespace_id ON jobs (namespace_id);

CREATE TABLE job_groups (
    job_id INTEGER NOT NULL,
    group_name TEXT DEFAULT '' NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    CONSTRAINT pk_job_groups PRIMARY KEY (job_id)
);

CREATE TABLE runs (
    id INTEGER NOT NULL,
    run_id TEXT DEFAULT '' NOT NULL,
    job_id BIGINT NOT NULL,
    job_at BIGINT NOT NULL,
    job_hash BIGINT NOT NULL,
    state SMALLINT DEFAULT '0' NOT NULL,
    first_at BIGINT,
    newest_at BIGINT,
    started_at BIGINT,
    ended_at BIGINT,
    received_at BIGINT NOT NULL,
    child_received_at BIGINT NOT NULL,
    design SMALLINT DEFAULT '0' NOT NULL,
    streaming SMALLINT DEFAULT '0' NOT NULL,
    spark SMALLINT DEFAULT '0' NOT NULL,
    announced SMALLINT DEFAULT '0' NOT NULL,
    "query" SMALLINT DEFAULT '0' NOT NULL,
    least_start BIGINT,
    most_start BIGINT,
    least_later BIGINT,
    most_later BIGINT,
    CONSTRAINT pk_runs PRIMARY KEY (id)
);

CREATE INDEX ix_runs_run_id ON runs (run_id);
CREATE INDEX ix_runs_newest_at ON runs (newest_at);
CREATE INDEX ix_runs_job_id_newest_at ON runs (job_id, newest_at);

CREATE TABLE shared_runs (
    id INTEGER NOT NULL,
    CONSTRAINT pk_shared_runs PRIMARY KEY (id)
);

CREATE TABLE run_parents (
    run_id INTEGER NOT NULL,
    parent_run_id BIGINT NOT NULL,
    parent_job_id BIGINT NOT NULL,
    root_run_id BIGINT NOT NULL,
    root_job_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    CONSTRAINT pk_run_parents PRIMARY KEY (run_id)
);

CREATE INDEX ix_run_parents_root_run_id ON run_parents (root_run_id);
CREATE INDEX ix_run_parents_parent_job_id ON run_parents (parent_job_id);
CREATE INDEX ix_run_parents_parent_run_id_at ON run_parents (parent_run_id, at);

CREATE TABLE run_leases (
    run_id INTEGER NOT NULL,
    seconds BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    CONSTRAINT pk_run_leases PRIMARY KEY (run_id)
);

CREATE TABLE run_queries (
    run_id INTEGER NOT NULL,
    query_id TEXT DEFAULT '' NOT NULL,
    batch_id BIGINT,
    job_id BIGINT NOT NULL,
    owner_id BIGINT NOT NULL,
    rank SMALLINT NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    CONSTRAINT pk_run_queries PRIMARY KEY (run_id)
);

CREATE INDEX ix_run_queries_job_id ON run_queries (job_id);
CREATE INDEX ix_run_queries_query_id ON run_queries (query_id);
CREATE INDEX ix_run_queries_owner_id_at ON run_queries (owner_id, at);

CREATE TABLE search_names (
    kind SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    namespace_id BIGINT NOT NULL,
    size INTEGER NOT NULL,
    start TEXT NOT NULL,
    texts TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_search_names PRIMARY KEY (kind, id)
)
 WITHOUT ROWID;

CREATE INDEX ix_search_names_kind_size_start_id ON search_names (kind, size, start, id);

CREATE TABLE search_texts (
    kind SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    namespace_id BIGINT NOT NULL,
    texts TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_search_texts PRIMARY KEY (kind, id)
)
 WITHOUT ROWID;

CREATE TABLE job_barriers (
    job_id BIGINT NOT NULL,
    query_id TEXT DEFAULT '' NOT NULL,
    barrier BIGINT NOT NULL,
    group_name TEXT DEFAULT '' NOT NULL,
    engine TEXT DEFAULT '' NOT NULL,
    batch_id BIGINT,
    phase SMALLINT NOT NULL,
    started_at BIGINT,
    committed_at BIGINT,
    checkpoint TEXT DEFAULT '' NOT NULL,
    run_id BIGINT NOT NULL,
    facet BLOB NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    CONSTRAINT pk_job_barriers PRIMARY KEY (job_id, barrier, query_id)
)
 WITHOUT ROWID;

CREATE INDEX ix_job_barriers_group_name_barrier ON job_barriers (group_name, barrier);
CREATE INDEX ix_job_barriers_run_id_barrier ON job_barriers (run_id, barrier);

CREATE TABLE snapshots (
    dataset_id BIGINT NOT NULL,
    snapshot_id TEXT DEFAULT '' NOT NULL,
    parent_id TEXT,
    barrier BIGINT,
    run_id BIGINT NOT NULL,
    committed_at BIGINT,
    operation TEXT DEFAULT '' NOT NULL,
    format TEXT DEFAULT '' NOT NULL,
    row_count BIGINT,
    approximate DOUBLE,
    rank SMALLINT NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    aside SMALLINT,
    CONSTRAINT pk_snapshots PRIMARY KEY (dataset_id, snapshot_id)
)
 WITHOUT ROWID;

CREATE INDEX ix_snapshots_dataset_id_committed_at_first_at ON snapshots (dataset_id, committed_at, first_at);

CREATE TABLE snapshot_uses (
    run_id BIGINT NOT NULL,
    barrier BIGINT NOT NULL,
    direction SMALLINT NOT NULL,
    dataset_id BIGINT NOT NULL,
    snapshot_id TEXT DEFAULT '' NOT NULL,
    from_snapshot_id TEXT,
    query_id TEXT DEFAULT '' NOT NULL,
    lossy SMALLINT DEFAULT '0' NOT NULL,
    rank SMALLINT NOT NULL,
    order_at BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    flags SMALLINT NOT NULL,
    CONSTRAINT pk_snapshot_uses PRIMARY KEY (run_id, barrier, dataset_id, direction, snapshot_id)
)
 WITHOUT ROWID;

CREATE INDEX ix_snapshot_uses_dataset_id_snapshot_id ON snapshot_uses (dataset_id, snapshot_id);

CREATE TABLE startup_snapshots (
    run_id BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    dataset_id BIGINT NOT NULL,
    snapshot_id TEXT DEFAULT '' NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_startup_snapshots PRIMARY KEY (run_id, dataset_id)
)
 WITHOUT ROWID;

CREATE TABLE catalog_options (
    "key" TEXT DEFAULT '' NOT NULL,
    value TEXT DEFAULT '' NOT NULL,
    namespace TEXT DEFAULT '' NOT NULL,
    catalog TEXT DEFAULT '' NOT NULL,
    consistency_group TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_catalog_options PRIMARY KEY (namespace, catalog, "key")
)
 WITHOUT ROWID;

CREATE TABLE version_facts (
    seq INTEGER NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_version_facts PRIMARY KEY (seq)
);

CREATE TABLE version_news (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    barrier BIGINT NOT NULL
);

CREATE TABLE group_roots (
    dataset_id INTEGER NOT NULL,
    group_name TEXT NOT NULL,
    CONSTRAINT pk_group_roots PRIMARY KEY (dataset_id)
);

CREATE TABLE group_jobs (
    job_id INTEGER NOT NULL,
    CONSTRAINT pk_group_jobs PRIMARY KEY (job_id)
);

CREATE TABLE reader_leases (
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    holder TEXT DEFAULT '' NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_reader_leases PRIMARY KEY (id)
)
 WITHOUT ROWID;

CREATE INDEX ix_reader_leases_expires_at ON reader_leases (expires_at);

CREATE TABLE open_rollbacks (
    group_name TEXT NOT NULL,
    begun_at BIGINT NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_open_rollbacks PRIMARY KEY (group_name)
)
 WITHOUT ROWID;

CREATE TABLE alerts (
    "key" TEXT NOT NULL,
    since BIGINT NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_alerts PRIMARY KEY ("key")
)
 WITHOUT ROWID;

CREATE VIEW canonical_ids AS SELECT id AS dataset_id, canonical_id FROM datasets;

CREATE VIEW run_relations AS SELECT used.run_id, relation.direction, relation.dataset_id, relation.creates, used.first_at,
       used.newest_at
  FROM run_templates used
  JOIN template_relations relation ON relation.template_id = used.template_id;

CREATE VIEW run_edges AS SELECT used.run_id, edge.sink_id, edge.rule, edge.set_hash, used.newest_at AS at
  FROM run_templates used
  JOIN template_edges edge ON edge.template_id = used.template_id;

CREATE VIEW run_owners AS SELECT run.id AS run_id,
       CASE WHEN query.run_id IS NOT NULL AND run.announced = 0
            THEN query.owner_id
            WHEN parent.run_id IS NOT NULL AND run.announced = 0
             AND run.streaming = 1 AND run.spark = 1
            THEN parent.parent_run_id
            ELSE run.id END AS owner_id,
       CASE WHEN query.run_id IS NOT NULL AND run.announced = 0
            THEN coalesce(named.job_id, query.job_id)
            WHEN parent.run_id IS NOT NULL AND run.announced = 0
             AND run.streaming = 1 AND run.spark = 1
            THEN parent.parent_job_id
            ELSE run.job_id END AS job_id,
       CASE WHEN run.announced = 0 THEN query.query_id END AS query_id,
       CASE WHEN run.announced = 0 THEN query.batch_id + 1 END AS barrier
  FROM runs run
  LEFT JOIN run_parents parent ON parent.run_id = run.id
  LEFT JOIN run_queries query ON query.run_id = run.id
  LEFT JOIN runs named ON named.id = query.owner_id;

CREATE VIEW run_ends AS SELECT run.id AS run_id,
       CASE WHEN run.ended_at IS NOT NULL THEN run.ended_at
            WHEN parent.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN parent.ended_at
            WHEN root.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN root.ended_at
            WHEN parent.ended_at IS NULL AND higher.ended_at >= coalesce(parent.newest_at, 0) AND higher.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN higher.ended_at
            WHEN parent.ended_at IS NULL AND highest.ended_at >= coalesce(parent.newest_at, 0) AND highest.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN highest.ended_at END AS ended_at,
       CASE WHEN run.ended_at IS NOT NULL THEN run.state
            WHEN parent.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN parent.state
            WHEN root.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN root.state
            WHEN parent.ended_at IS NULL AND higher.ended_at >= coalesce(parent.newest_at, 0) AND higher.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN higher.state
            WHEN parent.ended_at IS NULL AND highest.ended_at >= coalesce(parent.newest_at, 0) AND highest.ended_at >= CASE WHEN run.query = 1 THEN 0 ELSE coalesce(run.newest_at, 0) END THEN highest.state ELSE run.state END AS state
  FROM runs run
  LEFT JOIN run_parents link ON link.run_id = run.id
  LEFT JOIN runs parent ON parent.id = link.parent_run_id
  LEFT JOIN runs root ON root.id = link.root_run_id
  LEFT JOIN run_parents above ON above.run_id = link.parent_run_id
  LEFT JOIN runs higher ON higher.id = above.parent_run_id
  LEFT JOIN runs highest ON highest.id = above.root_run_id;

CREATE VIEW run_silences AS SELECT run.id AS run_id,
       CASE WHEN lease.run_id IS NOT NULL
            THEN run.received_at + lease.seconds * 1000000
            WHEN run.child_received_at > run.received_at
            THEN run.child_received_at + silence.micros
            ELSE run.received_at + silence.micros END AS silent_at
  FROM runs run
  LEFT JOIN run_leases lease ON lease.run_id = run.id
 CROSS JOIN (SELECT
coalesce((SELECT CAST(value AS BIGINT) FROM store_settings WHERE key = 'silent_seconds'), 86400)
 * 1000000 AS micros) silence;

CREATE VIEW run_lives AS SELECT owned.run_id, owned.owner_id, owned.job_id, owned.query_id,
       CASE WHEN run.state >= 3 THEN run.state
            WHEN finish.ended_at IS NOT NULL THEN finish.state
            WHEN silence.silent_at < CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN -1
            ELSE run.state END AS state,
       CASE WHEN coalesce(finish.ended_at, silence.silent_at)
                 < coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at)
            THEN coalesce(finish.ended_at, silence.silent_at)
            ELSE coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at)
             END AS valid_from,
       CASE WHEN finish.ended_at IS NOT NULL THEN finish.ended_at
            WHEN silence.silent_at < CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN silence.silent_at END AS valid_to,
       CASE WHEN coalesce(owner.started_at, run.started_at) IS NOT NULL
             AND finish.ended_at IS NULL
             AND NOT silence.silent_at < CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN 1 ELSE 0 END AS live,
       run.design AS design
  FROM run_owners owned
  JOIN runs run ON run.id = owned.run_id
  JOIN runs owner ON owner.id = owned.owner_id
  JOIN run_ends finish ON finish.run_id = owned.owner_id
  JOIN run_silences silence ON silence.run_id = owned.owner_id;

CREATE VIEW relation_lives AS SELECT life.run_id, life.owner_id, life.job_id, relation.direction,
       named.canonical_id AS dataset_id, relation.dataset_id AS named_id, relation.creates,
       life.state, life.valid_from, life.valid_to, life.live, life.design
  FROM run_relations relation
  JOIN run_lives life ON life.run_id = relation.run_id
  JOIN runs run ON run.id = relation.run_id
  JOIN datasets named ON named.id = relation.dataset_id
 WHERE NOT (relation.creates = 1 AND run.streaming = 0 AND run.state IN (3, 5))
   AND NOT
(CASE WHEN relation.direction = 1 AND relation.creates = -1 AND run.streaming = 0
       AND run.ended_at IS NOT NULL
 THEN NOT (run.announced = 0
          AND EXISTS (SELECT 1 FROM run_queries batch WHERE batch.run_id = run.id))
 AND NOT EXISTS (
     SELECT 1
       FROM run_relations taken
       JOIN canonical_ids source ON source.dataset_id = taken.dataset_id
      WHERE taken.run_id = relation.run_id
        AND taken.direction = 0
        AND source.canonical_id <> named.canonical_id)
 AND NOT EXISTS (
     SELECT 1
       FROM run_edges edge
       JOIN edge_columns origin ON origin.set_hash = edge.set_hash
       JOIN canonical_ids source ON source.dataset_id = origin.source_id
      WHERE edge.run_id = relation.run_id
        AND edge.sink_id = relation.dataset_id
        AND source.canonical_id <> named.canonical_id)
 AND NOT EXISTS (
     SELECT 1
       FROM snapshot_uses made
       JOIN canonical_ids stated_as ON stated_as.dataset_id = made.dataset_id
       JOIN snapshots snapshot ON snapshot.dataset_id = made.dataset_id
                              AND snapshot.snapshot_id = made.snapshot_id
      WHERE made.run_id = relation.run_id
        AND made.direction = 1
        AND made.rank = 3
        AND stated_as.canonical_id = named.canonical_id
        AND (snapshot.row_count IS NULL OR snapshot.row_count > 0))
 ELSE FALSE END);

CREATE VIEW snapshot_lineage AS SELECT used.run_id, owned.owner_id, owned.job_id, used.direction, used.dataset_id, used.named_id,
       used.from_snapshot_id,
       CASE WHEN used.barrier > 0 THEN used.barrier
            WHEN run.state = 4 THEN owned.barrier END AS barrier,
       coalesce(owned.query_id, used.query_id) AS query_id,
       CASE WHEN used.lossy = 1 THEN used.exact_id ELSE used.snapshot_id END AS snapshot_id,
       CASE WHEN used.lossy = 1 AND used.exact_id IS NULL
            THEN used.snapshot_id END AS approximate_id,
       CASE WHEN used.rank = 1 OR used.earlier OR (used.lossy = 1 AND used.exact_id IS NULL)
            THEN 1 ELSE 0 END AS observed,
       used.rank, used.order_at, used.at, used.flags, used.barrier AS told_barrier
  FROM (SELECT taken.run_id, taken.barrier, taken.direction, named.canonical_id AS dataset_id,
               taken.lossy, taken.dataset_id AS named_id, taken.snapshot_id,
               taken.from_snapshot_id, taken.query_id, taken.rank, taken.order_at, taken.at,
               taken.flags,
CASE WHEN taken.lossy = 1 THEN (
     SELECT CASE WHEN min(known.snapshot_id) = max(known.snapshot_id)
                 THEN min(known.snapshot_id) END
       FROM (SELECT rounded.id > 0
                    AND length(CAST(rounded.id - 512 AS TEXT))
                        = length(CAST(rounded.id + 512 AS TEXT)) AS in_order,
                    rounded.id
               FROM (SELECT CASE WHEN taken.lossy = 1
                                 THEN CAST(taken.snapshot_id AS NUMERIC) END AS id) rounded) near
       JOIN datasets other ON other.canonical_id = named.canonical_id
       JOIN snapshots known ON known.dataset_id = other.id
        AND known.snapshot_id
            >= CASE WHEN near.in_order THEN CAST(near.id - 512 AS TEXT) ELSE '' END
        AND known.snapshot_id
            <= CASE WHEN near.in_order THEN CAST(near.id + 512 AS TEXT) ELSE 'z' END
      WHERE known.approximate = CASE WHEN taken.lossy = 1
                                     THEN CAST(taken.snapshot_id AS DOUBLE PRECISION) END) END AS exact_id,

EXISTS (
      SELECT 1
        FROM snapshots again
       WHERE again.dataset_id = taken.dataset_id
         AND again.snapshot_id = taken.snapshot_id
         AND again.format = 'paimon'
         AND again.committed_at > taken.at) AS earlier,

rank() OVER (PARTITION BY taken.run_id, taken.barrier, taken.direction, named.canonical_id
             ORDER BY CASE WHEN taken.rank > 1 THEN 2 ELSE 1 END DESC,
                      CASE WHEN taken.rank > 1 THEN 0 ELSE taken.order_at END DESC) AS standing
          FROM snapshot_uses taken
          JOIN datasets named ON named.id = taken.dataset_id
         WHERE NOT (
taken.direction = 1 AND taken.rank < 3 AND EXISTS (
      SELECT 1
        FROM snapshot_uses maker
        JOIN datasets other ON other.id = maker.dataset_id
        JOIN runs made_by ON made_by.id = maker.run_id
       WHERE other.canonical_id = named.canonical_id
         AND maker.snapshot_id = taken.snapshot_id
         AND maker.direction = 1
         AND maker.run_id <> taken.run_id
         AND NOT (maker.rank < 3 AND (made_by.state = 5 AND made_by.streaming = 0))
         AND NOT
EXISTS (
      SELECT 1
        FROM snapshots again
       WHERE again.dataset_id = maker.dataset_id
         AND again.snapshot_id = maker.snapshot_id
         AND again.format = 'paimon'
         AND again.committed_at > maker.at)
         AND (maker.rank > taken.rank
              OR (maker.rank = taken.rank
                  AND (maker.at < taken.at
                       OR (maker.at = taken.at AND maker.run_id < taken.run_id))))))
           AND NOT (
taken.direction = 1 AND EXISTS (
      SELECT 1
        FROM snapshot_uses born
        JOIN datasets other ON other.id = born.dataset_id
        JOIN run_relations creating ON creating.run_id = born.run_id
         AND creating.direction = 1
         AND creating.dataset_id = born.dataset_id
        JOIN runs born_by ON born_by.id = born.run_id
       WHERE other.canonical_id = named.canonical_id
         AND born.snapshot_id = '0'
         AND born.direction = 1
         AND born.run_id <> taken.run_id
         AND creating.creates = 1
         AND born_by.state = 4
         AND born_by.streaming = 0
         AND (born.at > taken.at OR (taken.rank < 3 AND taken.snapshot_id = '0'))))) used
  JOIN run_owners owned ON owned.run_id = used.run_id
  JOIN runs run ON run.id = used.run_id
 WHERE used.standing = 1
   AND NOT (used.direction = 1 AND used.earlier)
   AND NOT (used.direction = 1 AND used.rank < 3 AND (run.state = 5 AND run.streaming = 0));

CREATE VIEW job_startup AS SELECT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       started.snapshot_id AS snapshot_id, job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group
  FROM startup_snapshots started
  JOIN run_lives life ON life.run_id = started.run_id
  JOIN jobs job ON job.id = started.job_id
  JOIN datasets named ON named.id = started.dataset_id
  JOIN datasets place ON place.id = named.canonical_id
  LEFT JOIN job_groups member ON member.job_id = started.job_id
 WHERE life.live = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'data-lineage'
          AND lower(said.value) = 'false');

CREATE VIEW job_startup_history AS SELECT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       started.snapshot_id AS snapshot_id, job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group,
       owner.run_id AS run_id, life.valid_from AS valid_from, life.valid_to AS valid_to,
       CASE life.state WHEN -1 THEN 'LOST' WHEN 5 THEN 'FAIL' WHEN 4 THEN 'COMPLETE'
                       WHEN 3 THEN 'ABORT' ELSE 'RUNNING' END AS state
  FROM startup_snapshots started
  JOIN run_lives life ON life.run_id = started.run_id
  JOIN jobs job ON job.id = started.job_id
  JOIN datasets named ON named.id = started.dataset_id
  JOIN datasets place ON place.id = named.canonical_id
  LEFT JOIN job_groups member ON member.job_id = started.job_id
  JOIN runs owner ON owner.id = life.owner_id
 WHERE life.valid_to IS NOT NULL AND life.design = 0 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'data-lineage'
          AND lower(said.value) = 'false');

CREATE VIEW source_job_lineage AS SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_groups member ON member.job_id = life.job_id
 WHERE life.direction = 0 AND life.live = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'table-lineage'
          AND lower(said.value) = 'false');

CREATE VIEW source_job_lineage_history AS SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group,
       owner.run_id AS run_id, life.valid_from AS valid_from, life.valid_to AS valid_to,
       CASE life.state WHEN -1 THEN 'LOST' WHEN 5 THEN 'FAIL' WHEN 4 THEN 'COMPLETE'
                       WHEN 3 THEN 'ABORT' ELSE 'RUNNING' END AS state
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_groups member ON member.job_id = life.job_id
  JOIN runs owner ON owner.id = life.owner_id
 WHERE life.direction = 0 AND life.valid_to IS NOT NULL AND life.design = 0 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'table-lineage'
          AND lower(said.value) = 'false');

CREATE VIEW source_snapshot_lineage AS SELECT job.name AS job, CAST(best.barrier AS BIGINT) AS barrier_id,
       place.database_name AS "database", place.table_name AS "table",
       best.snapshot_id AS snapshot_id, job.namespace AS namespace,
       place.catalog AS catalog, coalesce(member.group_name, '') AS consistency_group
  FROM (SELECT told.*, row_number() OVER (
                 PARTITION BY told.job_id, told.barrier, told.dataset_id
                 ORDER BY told.query_at DESC, told.query_id DESC, told.rank DESC,
                          told.flags & 8,
                          told.order_at DESC, told.at DESC, told.snapshot_id DESC) AS standing
          FROM (SELECT lineage.*, max(lineage.at) OVER (
                         PARTITION BY lineage.job_id, lineage.barrier, lineage.dataset_id,
                                      lineage.query_id) AS query_at
                  FROM snapshot_lineage lineage
                 WHERE lineage.direction = 0 AND lineage.barrier IS NOT NULL
                   AND lineage.snapshot_id IS NOT NULL) told) best
  JOIN jobs job ON job.id = best.job_id
  JOIN datasets place ON place.id = best.dataset_id
  LEFT JOIN job_groups member ON member.job_id = best.job_id
 WHERE best.standing = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'data-lineage'
          AND lower(said.value) = 'false');

CREATE VIEW __META_ETL_SOURCE AS SELECT DISTINCT job AS job_id, "table" AS table_name, namespace, catalog, consistency_group
  FROM source_job_lineage;

CREATE VIEW __META_ETL_SOURCE_history AS SELECT DISTINCT job AS job_id, "table" AS table_name, namespace, catalog, consistency_group, run_id, valid_from, valid_to, state
  FROM source_job_lineage_history;

CREATE VIEW sink_job_lineage AS SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_groups member ON member.job_id = life.job_id
 WHERE life.direction = 1 AND life.live = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'table-lineage'
          AND lower(said.value) = 'false');

CREATE VIEW sink_job_lineage_history AS SELECT DISTINCT job.name AS job, place.database_name AS "database", place.table_name AS "table",
       job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group,
       owner.run_id AS run_id, life.valid_from AS valid_from, life.valid_to AS valid_to,
       CASE life.state WHEN -1 THEN 'LOST' WHEN 5 THEN 'FAIL' WHEN 4 THEN 'COMPLETE'
                       WHEN 3 THEN 'ABORT' ELSE 'RUNNING' END AS state
  FROM relation_lives life
  JOIN jobs job ON job.id = life.job_id
  JOIN datasets place ON place.id = life.dataset_id
  LEFT JOIN job_groups member ON member.job_id = life.job_id
  JOIN runs owner ON owner.id = life.owner_id
 WHERE life.direction = 1 AND life.valid_to IS NOT NULL AND life.design = 0 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'table-lineage'
          AND lower(said.value) = 'false');

CREATE VIEW sink_snapshot_lineage AS SELECT job.name AS job, CAST(best.barrier AS BIGINT) AS barrier_id,
       place.database_name AS "database", place.table_name AS "table",
       best.snapshot_id AS snapshot_id, job.namespace AS namespace,
       place.catalog AS catalog, coalesce(member.group_name, '') AS consistency_group
  FROM (SELECT told.*, row_number() OVER (
                 PARTITION BY told.job_id, told.barrier, told.dataset_id
                 ORDER BY told.query_at DESC, told.query_id DESC, told.rank DESC,
                          told.flags & 8,
                          told.order_at DESC, told.at DESC, told.snapshot_id DESC) AS standing
          FROM (SELECT lineage.*, max(lineage.at) OVER (
                         PARTITION BY lineage.job_id, lineage.barrier, lineage.dataset_id,
                                      lineage.query_id) AS query_at
                  FROM snapshot_lineage lineage
                 WHERE lineage.direction = 1 AND lineage.barrier IS NOT NULL
                   AND lineage.snapshot_id IS NOT NULL) told) best
  JOIN jobs job ON job.id = best.job_id
  JOIN datasets place ON place.id = best.dataset_id
  LEFT JOIN job_groups member ON member.job_id = best.job_id
 WHERE best.standing = 1 AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'data-lineage'
          AND lower(said.value) = 'false');

CREATE VIEW __META_ETL_SINK AS SELECT DISTINCT job AS job_id, "table" AS table_name, namespace, catalog, consistency_group
  FROM sink_job_lineage;

CREATE VIEW __META_ETL_SINK_history AS SELECT DISTINCT job AS job_id, "table" AS table_name, namespace, catalog, consistency_group, run_id, valid_from, valid_to, state
  FROM sink_job_lineage_history;

CREATE VIEW __META_TABLE_VERSION AS SELECT DISTINCT place.table_name AS table_name, CAST(made.barrier AS BIGINT) AS version,
       CASE WHEN made.job_id IN (
                 SELECT taken.job_id FROM snapshot_lineage taken WHERE taken.direction = 0)
            THEN 'Intermediate' ELSE 'Root' END AS table_type,
       job.namespace AS namespace, place.catalog AS catalog,
       coalesce(member.group_name, '') AS consistency_group
  FROM snapshot_lineage made
  JOIN jobs job ON job.id = made.job_id
  JOIN datasets place ON place.id = made.dataset_id
  LEFT JOIN job_groups member ON member.job_id = made.job_id
 WHERE made.direction = 1 AND made.barrier IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM catalog_options said
        WHERE said.catalog = place.catalog
          AND said.key = 'data-lineage'
          AND lower(said.value) = 'false');

INSERT INTO numbers (name, seq) VALUES ('version_facts', 0), ('export_changes', 0);
