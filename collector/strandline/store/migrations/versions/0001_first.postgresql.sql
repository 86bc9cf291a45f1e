CREATE TABLE api_keys (
    hash BYTEA NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    id TEXT DEFAULT '' NOT NULL,
    scopes TEXT DEFAULT '' NOT NULL,
    namespaces TEXT DEFAULT '' NOT NULL,
    expires_at BIGINT,
    used_at BIGINT,
    CONSTRAINT pk_api_keys PRIMARY KEY (hash)
);

COMMENT ON TABLE api_keys IS 'keys that may use the API';
COMMENT ON COLUMN api_keys.hash IS 'SHA-256 of the key, shown only once';
COMMENT ON COLUMN api_keys.name IS 'the owner, for people and the audit log';
COMMENT ON COLUMN api_keys.created_at IS 'for people';
COMMENT ON COLUMN api_keys.revoked_at IS 'since when it counts no more';
COMMENT ON COLUMN api_keys.id IS 'the part of the key that may be shown';
COMMENT ON COLUMN api_keys.scopes IS 'what the key may do, with commas';
COMMENT ON COLUMN api_keys.namespaces IS 'patterns of the namespaces that it may see, one a line';
COMMENT ON COLUMN api_keys.expires_at IS 'until when it counts; NULL: for ever';
COMMENT ON COLUMN api_keys.used_at IS 'its last use, to the minute';

CREATE TABLE audit_log (
    id BIGSERIAL NOT NULL,
    at BIGINT NOT NULL,
    who TEXT DEFAULT '' NOT NULL,
    what TEXT DEFAULT '' NOT NULL,
    address TEXT DEFAULT '' NOT NULL,
    status SMALLINT NOT NULL,
    details TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_audit_log PRIMARY KEY (id)
);

CREATE INDEX ix_audit_log_at ON audit_log (at);
COMMENT ON TABLE audit_log IS 'who changed what, and who was refused';
COMMENT ON COLUMN audit_log.id IS 'the order of the rows';
COMMENT ON COLUMN audit_log.at IS 'when';
COMMENT ON COLUMN audit_log.who IS 'the name of the key or user';
COMMENT ON COLUMN audit_log.what IS 'the request or command';
COMMENT ON COLUMN audit_log.address IS 'the sender''s address';
COMMENT ON COLUMN audit_log.status IS 'the HTTP status: whether it was done or refused';
COMMENT ON COLUMN audit_log.details IS 'what was changed';

CREATE TABLE annotations (
    id BIGINT NOT NULL,
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
COMMENT ON TABLE annotations IS 'what people noted; no event overwrites it and no replay brings it back';
COMMENT ON COLUMN annotations.id IS 'a hash of entity, kind, field and name';
COMMENT ON COLUMN annotations.entity_id IS 'the job, dataset or tag';
COMMENT ON COLUMN annotations.kind IS '1 tag, 2 deleted, 3 the tag itself';
COMMENT ON COLUMN annotations.field IS 'the column, if the note is about one';
COMMENT ON COLUMN annotations.name IS 'the tag';
COMMENT ON COLUMN annotations.value IS 'of a tag itself: its description';
COMMENT ON COLUMN annotations.at IS 'when it was noted; a later event brings a deleted job back';

CREATE TABLE annotation_log (
    id BIGINT NOT NULL,
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
COMMENT ON TABLE annotation_log IS 'every change of an annotation; rows are only added';
COMMENT ON COLUMN annotation_log.id IS 'a hash of the row';
COMMENT ON COLUMN annotation_log.at IS 'when';
COMMENT ON COLUMN annotation_log.actor IS 'who';
COMMENT ON COLUMN annotation_log.action IS 'what was done';
COMMENT ON COLUMN annotation_log.entity IS 'kind, namespace and name';
COMMENT ON COLUMN annotation_log.field IS 'the column';
COMMENT ON COLUMN annotation_log.name IS 'the tag';
COMMENT ON COLUMN annotation_log.value IS 'the new value';

CREATE TABLE archive_batches (
    id TEXT NOT NULL,
    target TEXT NOT NULL,
    day INTEGER NOT NULL,
    newest_at BIGINT NOT NULL,
    count INTEGER NOT NULL,
    done SMALLINT NOT NULL,
    events BYTEA NOT NULL,
    CONSTRAINT pk_archive_batches PRIMARY KEY (id)
);

CREATE INDEX ix_archive_batches_newest_at ON archive_batches (newest_at);
COMMENT ON TABLE archive_batches IS 'batches of events of one day that leave together';
COMMENT ON COLUMN archive_batches.id IS 'the batch''s name in the archive';
COMMENT ON COLUMN archive_batches.target IS 'the archive';
COMMENT ON COLUMN archive_batches.day IS 'days since 1970, which the archive is split by';
COMMENT ON COLUMN archive_batches.newest_at IS 'the newest receipt in it, for retention of the keys';
COMMENT ON COLUMN archive_batches.count IS 'the number of events, for answers';
COMMENT ON COLUMN archive_batches.done IS '1: the archive has it, and the events were deleted here';
COMMENT ON COLUMN archive_batches.events IS 'pairs of time and hash, by which the batch is written again';

CREATE TABLE datasets (
    id BIGINT NOT NULL,
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
COMMENT ON TABLE datasets IS 'one row a dataset as named';
COMMENT ON COLUMN datasets.id IS 'a hash of what the row is about, so no sequence is needed';
COMMENT ON COLUMN datasets.namespace_id IS 'finds the datasets of a namespace';
COMMENT ON COLUMN datasets.namespace IS 'as named';
COMMENT ON COLUMN datasets.name IS 'as named';
COMMENT ON COLUMN datasets.canonical_id IS 'the one dataset among those that symlinks join; else its own id';
COMMENT ON COLUMN datasets.place_id IS 'a hash of the next three columns, to find the table by its place';
COMMENT ON COLUMN datasets.catalog IS 'the catalog of the name, for the proposals'' views';
COMMENT ON COLUMN datasets.database_name IS 'the database of the name, for the proposals'' views';
COMMENT ON COLUMN datasets.table_name IS 'the table of the name, for the proposals'' views';
COMMENT ON COLUMN datasets.first_at IS 'its first event; NULL: only mentioned';
COMMENT ON COLUMN datasets.newest_at IS 'its newest event, for lists and deletions';
COMMENT ON COLUMN datasets.named IS '1: an event had it as a dataset; 0: symlinks or edges mention it';

CREATE TABLE dataset_aliases (
    dataset_id BIGINT NOT NULL,
    alias_id BIGINT NOT NULL,
    type TEXT DEFAULT '' NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_dataset_aliases PRIMARY KEY (dataset_id, alias_id, type)
);

CREATE INDEX ix_dataset_aliases_alias_id ON dataset_aliases (alias_id);
COMMENT ON TABLE dataset_aliases IS 'other names of datasets, from which canonical_id is computed';
COMMENT ON COLUMN dataset_aliases.dataset_id IS 'the dataset';
COMMENT ON COLUMN dataset_aliases.alias_id IS 'the dataset that its other name names';
COMMENT ON COLUMN dataset_aliases.type IS 'of the symlink (TABLE, LOCATION, ...), or PATTERN, SPELLING, RENAMED';
COMMENT ON COLUMN dataset_aliases.at IS 'of a name before a rename: when it was moved away; 0 for the others';

CREATE TABLE facet_bodies (
    hash BYTEA NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_facet_bodies PRIMARY KEY (hash)
);

COMMENT ON TABLE facet_bodies IS 'facets of more than a kilobyte, once each';
COMMENT ON COLUMN facet_bodies.hash IS '16 bytes of SHA-256 of its JSON';
COMMENT ON COLUMN facet_bodies.body IS 'the facet as a zstd frame';

CREATE TABLE facet_sets (
    set_id BIGINT NOT NULL,
    key TEXT DEFAULT '' NOT NULL,
    kind SMALLINT NOT NULL,
    hash BYTEA NOT NULL,
    body BYTEA,
    deleted SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_facet_sets PRIMARY KEY (set_id, key)
);

COMMENT ON TABLE facet_sets IS 'facets that came together, once however many entities have them';
COMMENT ON COLUMN facet_sets.set_id IS 'a hash of kind, keys and contents';
COMMENT ON COLUMN facet_sets.key IS 'the facet''s name';
COMMENT ON COLUMN facet_sets.kind IS 'as in facets';
COMMENT ON COLUMN facet_sets.hash IS 'of its JSON';
COMMENT ON COLUMN facet_sets.body IS 'as in facets';
COMMENT ON COLUMN facet_sets.deleted IS 'as in facets';

CREATE TABLE facet_uses (
    entity_id BIGINT NOT NULL,
    set_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_facet_uses PRIMARY KEY (entity_id, set_id)
);

COMMENT ON TABLE facet_uses IS 'the sets of facets of each entity';
COMMENT ON COLUMN facet_uses.entity_id IS 'the run, job, dataset or relation';
COMMENT ON COLUMN facet_uses.set_id IS 'the set of facets that it had';
COMMENT ON COLUMN facet_uses.at IS 'when last: the newest set of an entity counts for each key';

CREATE TABLE facets (
    entity_id BIGINT NOT NULL,
    key TEXT DEFAULT '' NOT NULL,
    kind SMALLINT NOT NULL,
    at BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    body BYTEA,
    deleted SMALLINT DEFAULT '0' NOT NULL,
    problem TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_facets PRIMARY KEY (entity_id, key, kind)
);

COMMENT ON TABLE facets IS 'the current facet of each entity and key, and beside it one in quarantine';
COMMENT ON COLUMN facets.entity_id IS 'the run, job, dataset or relation';
COMMENT ON COLUMN facets.key IS 'the facet''s name';
COMMENT ON COLUMN facets.kind IS '1 run, 2 job, 3 dataset, 4 input, 5 output; plus 10: quarantined';
COMMENT ON COLUMN facets.at IS 'the event''s time: the newest facet counts';
COMMENT ON COLUMN facets.hash IS 'of its JSON: decides between facets of one moment';
COMMENT ON COLUMN facets.body IS 'packed, or as it came; NULL: in facet_bodies';
COMMENT ON COLUMN facets.deleted IS '1: the newest body states _deleted';
COMMENT ON COLUMN facets.problem IS 'of a quarantined facet: why it is stored but not used';

CREATE TABLE export_news (
    id BIGSERIAL NOT NULL,
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BYTEA,
    body BYTEA,
    CONSTRAINT pk_export_news PRIMARY KEY (id)
);

COMMENT ON TABLE export_news IS 'what transactions changed, without an order yet';
COMMENT ON COLUMN export_news.id IS 'the order of the rows';
COMMENT ON COLUMN export_news.kind IS '0 a run, 1 a dataset, 2 an event as received, 3 an alert';
COMMENT ON COLUMN export_news.entity_id IS 'the run, dataset or event';
COMMENT ON COLUMN export_news.group_id IS 'what it is folded within: of a run its job, of an event its run';
COMMENT ON COLUMN export_news.at IS 'of an event its receipt: with the hash the key of raw_events';
COMMENT ON COLUMN export_news.hash IS 'of an event';
COMMENT ON COLUMN export_news.body IS 'of an alert';

CREATE TABLE export_changes (
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BYTEA,
    body BYTEA,
    CONSTRAINT pk_export_changes PRIMARY KEY (kind, entity_id)
);

CREATE UNIQUE INDEX ix_export_changes_seq ON export_changes (seq);
COMMENT ON TABLE export_changes IS 'the changes in order, one row an entity: only its newest state has to arrive';
COMMENT ON COLUMN export_changes.kind IS 'as in export_news';
COMMENT ON COLUMN export_changes.entity_id IS 'as in export_news';
COMMENT ON COLUMN export_changes.seq IS 'the order; an entity that changes again moves to the end';
COMMENT ON COLUMN export_changes.group_id IS 'as in export_news';
COMMENT ON COLUMN export_changes.at IS 'as in export_news';
COMMENT ON COLUMN export_changes.hash IS 'as in export_news';
COMMENT ON COLUMN export_changes.body IS 'as in export_news';

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
);

COMMENT ON TABLE export_targets IS 'how far each target is';
COMMENT ON COLUMN export_targets.name IS 'as the settings name it';
COMMENT ON COLUMN export_targets.kinds IS 'what it wants: runs, events, alerts';
COMMENT ON COLUMN export_targets.cursor IS 'all changes up to this number have arrived, or are parked';
COMMENT ON COLUMN export_targets.holder IS 'the process that sends at the moment';
COMMENT ON COLUMN export_targets.held_until IS 'when another process may send';
COMMENT ON COLUMN export_targets.heard_at IS 'when a process last had it in its settings';
COMMENT ON COLUMN export_targets.failures IS 'in a row';
COMMENT ON COLUMN export_targets.next_at IS 'when to try again';
COMMENT ON COLUMN export_targets.problem IS 'the last failure, for people';
COMMENT ON COLUMN export_targets.sent IS 'how many were sent';
COMMENT ON COLUMN export_targets.sent_at IS 'when it was last reached';
COMMENT ON COLUMN export_targets.dropped IS 'events that were folded away unsent';

CREATE TABLE export_sent (
    target TEXT NOT NULL,
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    shape BYTEA NOT NULL,
    detail BYTEA NOT NULL,
    at BIGINT NOT NULL,
    run_id BIGINT DEFAULT '0' NOT NULL,
    live SMALLINT DEFAULT '0' NOT NULL,
    stale SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_export_sent PRIMARY KEY (target, kind, entity_id)
);

COMMENT ON TABLE export_sent IS 'what a target has of each entity, so that only changes are sent';
COMMENT ON COLUMN export_sent.target IS 'the target';
COMMENT ON COLUMN export_sent.kind IS 'as the target calls it';
COMMENT ON COLUMN export_sent.entity_id IS 'the entity';
COMMENT ON COLUMN export_sent.shape IS 'a hash of what makes it another entity to people';
COMMENT ON COLUMN export_sent.detail IS 'a hash of all of it';
COMMENT ON COLUMN export_sent.at IS 'when it was sent';
COMMENT ON COLUMN export_sent.run_id IS 'the run by whose changes it is sent again';
COMMENT ON COLUMN export_sent.live IS '1: it may end by silence, which no event reports';
COMMENT ON COLUMN export_sent.stale IS '1: a detail has changed that may wait';

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
    hash BYTEA,
    body BYTEA,
    CONSTRAINT pk_export_parked PRIMARY KEY (target, kind, entity_id)
);

COMMENT ON TABLE export_parked IS 'what a target refused for good, until it takes a newer state of the entity';
COMMENT ON COLUMN export_parked.target IS 'the target';
COMMENT ON COLUMN export_parked.kind IS 'as the target calls it';
COMMENT ON COLUMN export_parked.entity_id IS 'the entity';
COMMENT ON COLUMN export_parked.at IS 'when it was refused';
COMMENT ON COLUMN export_parked.attempts IS 'how often it was refused';
COMMENT ON COLUMN export_parked.about IS 'the entity, for people';
COMMENT ON COLUMN export_parked.reason IS 'what the target said';
COMMENT ON COLUMN export_parked.change_kind IS 'kind of the change that it came of, for a replay';
COMMENT ON COLUMN export_parked.change_id IS 'entity of that change';
COMMENT ON COLUMN export_parked.group_id IS 'group of that change';
COMMENT ON COLUMN export_parked.change_at IS 'moment of that change';
COMMENT ON COLUMN export_parked.hash IS 'hash of that change';
COMMENT ON COLUMN export_parked.body IS 'body of that change';

CREATE TABLE graph_news (
    id BIGSERIAL NOT NULL,
    transaction_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_graph_news PRIMARY KEY (id)
);

CREATE INDEX ix_graph_news_transaction_id ON graph_news (transaction_id);
COMMENT ON TABLE graph_news IS 'what each transaction changed of the lineage graph';
COMMENT ON COLUMN graph_news.id IS 'the order of the rows';
COMMENT ON COLUMN graph_news.transaction_id IS 'PostgreSQL''s transaction; 0 on SQLite, which has one writer';
COMMENT ON COLUMN graph_news.at IS 'when; old rows are deleted';
COMMENT ON COLUMN graph_news.body IS 'the changes';

CREATE TABLE event_keys (
    hash BYTEA NOT NULL,
    received_at BIGINT NOT NULL,
    CONSTRAINT pk_event_keys PRIMARY KEY (hash)
);

COMMENT ON TABLE event_keys IS 'tells which events are known, so that each is stored once';
COMMENT ON COLUMN event_keys.hash IS '16 bytes of SHA-256 of the event''s bytes';
COMMENT ON COLUMN event_keys.received_at IS 'finds the event in raw_events';

CREATE TABLE raw_events (
    received_at BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    event_time BIGINT NOT NULL,
    reference_id BIGINT DEFAULT '0' NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_raw_events PRIMARY KEY (received_at, hash)
)
 PARTITION BY RANGE (received_at);

COMMENT ON TABLE raw_events IS 'the events; everything else that is known of jobs and tables is a fold of them';
COMMENT ON COLUMN raw_events.received_at IS 'orders events for replay; retention counts their age from it';
COMMENT ON COLUMN raw_events.hash IS 'the key in event_keys';
COMMENT ON COLUMN raw_events.event_time IS 'the moment that the sender states';
COMMENT ON COLUMN raw_events.reference_id IS 'the row of body_references that the body is packed against, or 0';
COMMENT ON COLUMN raw_events.body IS 'the event as received, without secrets, as a zstd frame';

CREATE TABLE body_references (
    id BIGINT NOT NULL,
    body BYTEA NOT NULL,
    key BIGINT NOT NULL,
    until BIGINT NOT NULL,
    source BYTEA NOT NULL,
    CONSTRAINT pk_body_references PRIMARY KEY (id)
);

CREATE INDEX ix_body_references_key ON body_references (key);
CREATE INDEX ix_body_references_source ON body_references (source);
COMMENT ON TABLE body_references IS 'what similar events have in common, which saves nine tenths of their size';
COMMENT ON COLUMN body_references.id IS 'a hash of the row, by which damage is noticed';
COMMENT ON COLUMN body_references.body IS 'an earlier event''s body, packed without a reference';
COMMENT ON COLUMN body_references.key IS 'the job or dataset and the event type whose events it serves';
COMMENT ON COLUMN body_references.until IS 'only events received before are packed against it';
COMMENT ON COLUMN body_references.source IS 'the hash of the event that it came with, to forget both together';

CREATE TABLE set_aside (
    kind TEXT DEFAULT '' NOT NULL,
    id BYTEA NOT NULL,
    received_at BIGINT NOT NULL,
    topic TEXT DEFAULT '' NOT NULL,
    partition_id INTEGER DEFAULT '-1' NOT NULL,
    record_offset BIGINT DEFAULT '-1' NOT NULL,
    reason TEXT DEFAULT '' NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_set_aside PRIMARY KEY (kind, id)
);

CREATE INDEX ix_set_aside_kind_received_at ON set_aside (kind, received_at);
COMMENT ON TABLE set_aside IS 'records that could not be taken; `strandline replay` and each start try them again';
COMMENT ON COLUMN set_aside.kind IS 'dead: it is no event; unread: a fault of ours kept it from being read';
COMMENT ON COLUMN set_aside.id IS 'dead: a hash of place and body; unread: the event''s hash';
COMMENT ON COLUMN set_aside.received_at IS 'orders the lists; retention counts the age from it';
COMMENT ON COLUMN set_aside.topic IS 'the Kafka topic; empty if it came in another way';
COMMENT ON COLUMN set_aside.partition_id IS '-1: no topic';
COMMENT ON COLUMN set_aside.record_offset IS '-1: no topic';
COMMENT ON COLUMN set_aside.reason IS 'the fault, for people';
COMMENT ON COLUMN set_aside.body IS 'the record without secrets, so that it can be taken again';

CREATE TABLE refused_events (
    id BYTEA NOT NULL,
    producer TEXT DEFAULT '' NOT NULL,
    reason TEXT DEFAULT '' NOT NULL,
    count BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    newest_at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_refused_events PRIMARY KEY (id)
);

CREATE INDEX ix_refused_events_newest_at ON refused_events (newest_at);
COMMENT ON TABLE refused_events IS 'events that were refused over HTTP, counted by producer and reason';
COMMENT ON COLUMN refused_events.id IS 'a hash of producer and reason';
COMMENT ON COLUMN refused_events.producer IS 'the program that sent it';
COMMENT ON COLUMN refused_events.reason IS 'the fault that its sender was told';
COMMENT ON COLUMN refused_events.count IS 'how often it was refused';
COMMENT ON COLUMN refused_events.first_at IS 'shows since when';
COMMENT ON COLUMN refused_events.newest_at IS 'shows whether it goes on; retention counts the age from it';
COMMENT ON COLUMN refused_events.body IS 'the beginning of the newest one, as an example';

CREATE TABLE offsets (
    topic TEXT DEFAULT '' NOT NULL,
    partition_id INTEGER NOT NULL,
    group_name TEXT DEFAULT '' NOT NULL,
    next_offset BIGINT NOT NULL,
    token TEXT DEFAULT '' NOT NULL,
    suspected_offset BIGINT,
    crashes INTEGER DEFAULT '0' NOT NULL,
    CONSTRAINT pk_offsets PRIMARY KEY (topic, partition_id, group_name)
);

COMMENT ON TABLE offsets IS 'how far each partition was taken, so that no record is taken twice or missed';
COMMENT ON COLUMN offsets.topic IS 'the Kafka topic';
COMMENT ON COLUMN offsets.partition_id IS 'the partition''s number';
COMMENT ON COLUMN offsets.group_name IS 'the consumer group';
COMMENT ON COLUMN offsets.next_offset IS 'moved by compare-and-set in the transaction of the batch';
COMMENT ON COLUMN offsets.token IS 'the owner; empty if it left in good order';
COMMENT ON COLUMN offsets.suspected_offset IS 'the record that was being taken alone';
COMMENT ON COLUMN offsets.crashes IS 'how often it died there';

CREATE TABLE store_settings (
    key TEXT NOT NULL,
    value TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_store_settings PRIMARY KEY (key)
);

COMMENT ON TABLE store_settings IS 'what all writers and views of the store have to agree on';
COMMENT ON COLUMN store_settings.key IS 'the name (sql/shared_settings.py)';
COMMENT ON COLUMN store_settings.value IS 'the value as text';

CREATE TABLE numbers (
    name TEXT NOT NULL,
    seq BIGINT NOT NULL,
    CONSTRAINT pk_numbers PRIMARY KEY (name)
);

COMMENT ON TABLE numbers IS 'the last number of each log that has one order for all servers';
COMMENT ON COLUMN numbers.name IS 'version_facts or export_changes';
COMMENT ON COLUMN numbers.seq IS 'the last number that was given out';

CREATE TABLE template_relations (
    template_id BIGINT NOT NULL,
    direction SMALLINT NOT NULL,
    dataset_id BIGINT NOT NULL,
    creates SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_template_relations PRIMARY KEY (template_id, direction, dataset_id)
);

CREATE INDEX ix_template_relations_dataset_id ON template_relations (dataset_id);
COMMENT ON TABLE template_relations IS 'the relations of a template';
COMMENT ON COLUMN template_relations.template_id IS 'a hash of all that is in the template';
COMMENT ON COLUMN template_relations.direction IS '0 read, 1 written';
COMMENT ON COLUMN template_relations.dataset_id IS 'the dataset as named';
COMMENT ON COLUMN template_relations.creates IS '1: CREATE, -1: ALTER, DROP, ..: no rows; 2: read, not the sender''s';

CREATE TABLE template_edges (
    template_id BIGINT NOT NULL,
    sink_id BIGINT NOT NULL,
    rule BIGINT NOT NULL,
    set_hash BYTEA NOT NULL,
    CONSTRAINT pk_template_edges PRIMARY KEY (template_id, sink_id, rule)
);

CREATE INDEX ix_template_edges_sink_id ON template_edges (sink_id);
CREATE INDEX ix_template_edges_set_hash ON template_edges (set_hash);
COMMENT ON TABLE template_edges IS 'the edges of a template';
COMMENT ON COLUMN template_edges.template_id IS 'a hash of all that is in the template';
COMMENT ON COLUMN template_edges.sink_id IS 'the dataset that the edges lead into';
COMMENT ON COLUMN template_edges.rule IS '3 lineage facet, 2 columnLineage, 1 inputs x outputs, 0 renamed, <0 view';
COMMENT ON COLUMN template_edges.set_hash IS 'the edges, in edge_columns';

CREATE TABLE run_templates (
    run_id BIGINT NOT NULL,
    template_id BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    newest_at BIGINT NOT NULL,
    CONSTRAINT pk_run_templates PRIMARY KEY (run_id, template_id)
);

CREATE INDEX ix_run_templates_template_id ON run_templates (template_id);
COMMENT ON TABLE run_templates IS 'the templates of each run';
COMMENT ON COLUMN run_templates.run_id IS 'the run';
COMMENT ON COLUMN run_templates.template_id IS 'the template; nothing is in two templates of one run';
COMMENT ON COLUMN run_templates.first_at IS 'when all that is in the template was first seen';
COMMENT ON COLUMN run_templates.newest_at IS 'when all that is in the template was last seen';

CREATE TABLE job_relations (
    job_id BIGINT NOT NULL,
    direction SMALLINT NOT NULL,
    dataset_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    ran SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_job_relations PRIMARY KEY (job_id, direction, dataset_id)
);

CREATE INDEX ix_job_relations_dataset_id_direction ON job_relations (dataset_id, direction);
COMMENT ON TABLE job_relations IS 'the datasets that each job was ever named with';
COMMENT ON COLUMN job_relations.job_id IS 'the job as the event named it';
COMMENT ON COLUMN job_relations.direction IS '0 read, 1 written';
COMMENT ON COLUMN job_relations.dataset_id IS 'the dataset as named; also sources that only edges name';
COMMENT ON COLUMN job_relations.run_id IS 'the run that did so last';
COMMENT ON COLUMN job_relations.at IS 'when it did';
COMMENT ON COLUMN job_relations.ran IS 'whether a run named it; false: only designs did';

CREATE TABLE edge_columns (
    set_hash BYTEA NOT NULL,
    source_id BIGINT NOT NULL,
    columns BYTEA NOT NULL,
    CONSTRAINT pk_edge_columns PRIMARY KEY (set_hash, source_id)
);

COMMENT ON TABLE edge_columns IS 'the edges into one sink, once for each content';
COMMENT ON COLUMN edge_columns.set_hash IS 'a hash of all edges into one sink; without rows: it has no source';
COMMENT ON COLUMN edge_columns.source_id IS 'the dataset that the edges come from, as named';
COMMENT ON COLUMN edge_columns.columns IS 'a zstd frame of a JSON array of edges';

CREATE TABLE namespaces (
    id BIGINT NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_namespaces PRIMARY KEY (id)
);

COMMENT ON TABLE namespaces IS 'every namespace that a job or dataset was named in; what a key may see';
COMMENT ON COLUMN namespaces.id IS 'a hash of what the row is about, so no sequence is needed';
COMMENT ON COLUMN namespaces.name IS 'as named';

CREATE TABLE jobs (
    id BIGINT NOT NULL,
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
COMMENT ON TABLE jobs IS 'one row a job as named';
COMMENT ON COLUMN jobs.id IS 'a hash of what the row is about, so no sequence is needed';
COMMENT ON COLUMN jobs.namespace_id IS 'finds the jobs of a namespace';
COMMENT ON COLUMN jobs.namespace IS 'as named';
COMMENT ON COLUMN jobs.name IS 'as named';
COMMENT ON COLUMN jobs.first_at IS 'its first event; NULL: another job''s event mentions it';
COMMENT ON COLUMN jobs.newest_at IS 'its newest event, for lists and deletions';
COMMENT ON COLUMN jobs.noise IS '1: an event had only Delta''s own log, or was an RDD''s without datasets';
COMMENT ON COLUMN jobs.data IS '1: an event had real datasets; the job is hidden if noise and not data';

CREATE TABLE job_groups (
    job_id BIGINT NOT NULL,
    group_name TEXT DEFAULT '' NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    CONSTRAINT pk_job_groups PRIMARY KEY (job_id)
);

COMMENT ON TABLE job_groups IS 'the consistency group of each job that has one';
COMMENT ON COLUMN job_groups.job_id IS 'the job';
COMMENT ON COLUMN job_groups.group_name IS 'the group that its newest barrier facet names';
COMMENT ON COLUMN job_groups.at IS 'that event''s time: the newest counts';
COMMENT ON COLUMN job_groups.hash IS 'that event: decides between events of one moment';

CREATE TABLE runs (
    id BIGINT NOT NULL,
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
    query SMALLINT DEFAULT '0' NOT NULL,
    least_start BIGINT,
    most_start BIGINT,
    least_later BIGINT,
    most_later BIGINT,
    CONSTRAINT pk_runs PRIMARY KEY (id)
);

CREATE INDEX ix_runs_run_id ON runs (run_id text_pattern_ops);
CREATE INDEX ix_runs_newest_at ON runs (newest_at);
CREATE INDEX ix_runs_job_id_newest_at ON runs (job_id, newest_at);
COMMENT ON TABLE runs IS 'one row a run';
COMMENT ON COLUMN runs.id IS 'a hash of what the row is about, so no sequence is needed';
COMMENT ON COLUMN runs.run_id IS 'as sent';
COMMENT ON COLUMN runs.job_id IS 'of the newest event after START: a job may be renamed on the way';
COMMENT ON COLUMN runs.job_at IS 'that event''s time, a START''s long before all others';
COMMENT ON COLUMN runs.job_hash IS 'that event: decides between events of one moment';
COMMENT ON COLUMN runs.state IS '0 none, 1 START, 2 RUNNING, 3 ABORT, 4 COMPLETE, 5 FAIL: greatest counts';
COMMENT ON COLUMN runs.first_at IS 'earliest event; NULL: only mentioned, as a parent';
COMMENT ON COLUMN runs.newest_at IS 'newest event';
COMMENT ON COLUMN runs.started_at IS 'earliest START or RUNNING; NULL: it never was live';
COMMENT ON COLUMN runs.ended_at IS 'earliest COMPLETE, FAIL or ABORT';
COMMENT ON COLUMN runs.received_at IS 'newest receipt of an event of the run: silence counts from it';
COMMENT ON COLUMN runs.child_received_at IS 'newest receipt of an event that names it as parent';
COMMENT ON COLUMN runs.design IS '1: no run but a JobEvent, which is known and never live';
COMMENT ON COLUMN runs.streaming IS '1: jobType says STREAMING';
COMMENT ON COLUMN runs.spark IS '1: jobType says SPARK';
COMMENT ON COLUMN runs.announced IS '1: sent a heartbeat timeout or a barrier: owns its relations itself';
COMMENT ON COLUMN runs.query IS '1: a streaming query within an application, reported by micro-batches';
COMMENT ON COLUMN runs.least_start IS 'the least of the jobs that its STARTs name';
COMMENT ON COLUMN runs.most_start IS 'the greatest: another one if several jobs share it';
COMMENT ON COLUMN runs.least_later IS 'the least of the jobs of its later events';
COMMENT ON COLUMN runs.most_later IS 'the greatest: another one if several jobs share it';

CREATE TABLE shared_runs (
    id BIGINT NOT NULL,
    CONSTRAINT pk_shared_runs PRIMARY KEY (id)
);

COMMENT ON TABLE shared_runs IS 'run ids that several jobs reported; each of these jobs has a run of its own';
COMMENT ON COLUMN shared_runs.id IS 'the id that a run has if one job reported it';

CREATE TABLE run_parents (
    run_id BIGINT NOT NULL,
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
COMMENT ON TABLE run_parents IS 'the parent and root that a run''s newest parent facet names';
COMMENT ON COLUMN run_parents.run_id IS 'the run';
COMMENT ON COLUMN run_parents.parent_run_id IS 'the run above it';
COMMENT ON COLUMN run_parents.parent_job_id IS 'the job of the run above it';
COMMENT ON COLUMN run_parents.root_run_id IS 'the run above all';
COMMENT ON COLUMN run_parents.root_job_id IS 'the job of the run above all';
COMMENT ON COLUMN run_parents.at IS 'the event''s time: the newest counts';
COMMENT ON COLUMN run_parents.hash IS 'the event: decides between events of one moment';

CREATE TABLE run_leases (
    run_id BIGINT NOT NULL,
    seconds BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    CONSTRAINT pk_run_leases PRIMARY KEY (run_id)
);

COMMENT ON TABLE run_leases IS 'the heartbeat timeouts that runs announced; others have silent_seconds';
COMMENT ON COLUMN run_leases.run_id IS 'the run';
COMMENT ON COLUMN run_leases.seconds IS 'the heartbeat timeout: silence after which the run is LOST';
COMMENT ON COLUMN run_leases.at IS 'the event''s time: the newest counts';
COMMENT ON COLUMN run_leases.hash IS 'the event: decides between events of one moment';

CREATE TABLE run_queries (
    run_id BIGINT NOT NULL,
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
COMMENT ON TABLE run_queries IS 'the streaming query of each micro-batch that comes as a run of its own';
COMMENT ON COLUMN run_queries.run_id IS 'the micro-batch''s run';
COMMENT ON COLUMN run_queries.query_id IS 'the id of the streaming query';
COMMENT ON COLUMN run_queries.batch_id IS 'the number of the micro-batch';
COMMENT ON COLUMN run_queries.job_id IS 'what job_relations call the query''s job';
COMMENT ON COLUMN run_queries.owner_id IS 'the query''s run, which owns the relations';
COMMENT ON COLUMN run_queries.rank IS '2 job description, 1 captured properties, which may be one behind';
COMMENT ON COLUMN run_queries.at IS 'the event''s time';
COMMENT ON COLUMN run_queries.hash IS 'the event: decides between events of one moment';

CREATE TABLE search_names (
    kind SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    namespace_id BIGINT NOT NULL,
    size INTEGER NOT NULL,
    start TEXT COLLATE "C" NOT NULL,
    texts TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_search_names PRIMARY KEY (kind, id)
);

CREATE INDEX ix_search_names_kind_size_start_id ON search_names (kind, size, start, id);
COMMENT ON TABLE search_names IS 'the names of datasets and jobs, as the search compares them';
COMMENT ON COLUMN search_names.kind IS '1 dataset, 2 job';
COMMENT ON COLUMN search_names.id IS 'the canonical dataset, or the job';
COMMENT ON COLUMN search_names.namespace_id IS 'its namespace, as keys see some of them';
COMMENT ON COLUMN search_names.size IS 'the length of its name: the shortest first';
COMMENT ON COLUMN search_names.start IS 'its first 100 characters, folded';
COMMENT ON COLUMN search_names.texts IS 'its names, folded, a line each, without those that another contains';

CREATE TABLE search_texts (
    kind SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    namespace_id BIGINT NOT NULL,
    texts TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_search_texts PRIMARY KEY (kind, id)
);

COMMENT ON TABLE search_texts IS 'tags, columns, SQL and application ids, as the search compares them';
COMMENT ON COLUMN search_texts.kind IS '3 tags of a dataset, 4 of a job, 5 columns, 6 SQL, 7 application';
COMMENT ON COLUMN search_texts.id IS 'the canonical dataset, the job or the run';
COMMENT ON COLUMN search_texts.namespace_id IS 'its namespace, as keys see some of them';
COMMENT ON COLUMN search_texts.texts IS 'its texts of this kind, folded, a line each';

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
    facet BYTEA NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    CONSTRAINT pk_job_barriers PRIMARY KEY (job_id, barrier, query_id)
);

CREATE INDEX ix_job_barriers_group_name_barrier ON job_barriers (group_name, barrier);
CREATE INDEX ix_job_barriers_run_id_barrier ON job_barriers (run_id, barrier);
COMMENT ON TABLE job_barriers IS 'the barriers that streaming jobs reported';
COMMENT ON COLUMN job_barriers.job_id IS 'the streaming job';
COMMENT ON COLUMN job_barriers.query_id IS 'the streaming query, new with every checkpoint directory';
COMMENT ON COLUMN job_barriers.barrier IS 'the barrier';
COMMENT ON COLUMN job_barriers.group_name IS 'the consistency group';
COMMENT ON COLUMN job_barriers.engine IS 'the program that reported it';
COMMENT ON COLUMN job_barriers.batch_id IS 'the micro-batch';
COMMENT ON COLUMN job_barriers.phase IS '2 committed, 1 skipped: the greatest counts';
COMMENT ON COLUMN job_barriers.started_at IS 'when the micro-batch began';
COMMENT ON COLUMN job_barriers.committed_at IS 'when it committed';
COMMENT ON COLUMN job_barriers.checkpoint IS 'the checkpoint''s location';
COMMENT ON COLUMN job_barriers.run_id IS 'the run that reported it';
COMMENT ON COLUMN job_barriers.facet IS 'what no column holds of the strandline_barrier facet';
COMMENT ON COLUMN job_barriers.at IS 'the event''s time';
COMMENT ON COLUMN job_barriers.hash IS 'the event: decides between events of one moment';

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
    approximate DOUBLE PRECISION,
    rank SMALLINT NOT NULL,
    at BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    aside SMALLINT,
    CONSTRAINT pk_snapshots PRIMARY KEY (dataset_id, snapshot_id)
);

CREATE INDEX ix_snapshots_dataset_id_committed_at_first_at ON snapshots (dataset_id, committed_at, first_at);
COMMENT ON TABLE snapshots IS 'one row a known snapshot of a table';
COMMENT ON COLUMN snapshots.dataset_id IS 'the table as named';
COMMENT ON COLUMN snapshots.snapshot_id IS 'the id as text: ids exceed 2^53';
COMMENT ON COLUMN snapshots.parent_id IS 'the snapshot that it was made on';
COMMENT ON COLUMN snapshots.barrier IS 'the barrier that it was made under';
COMMENT ON COLUMN snapshots.run_id IS 'the run that stated it';
COMMENT ON COLUMN snapshots.committed_at IS 'when it was committed';
COMMENT ON COLUMN snapshots.operation IS 'append, overwrite, delete, ...';
COMMENT ON COLUMN snapshots.format IS 'iceberg, delta, ...';
COMMENT ON COLUMN snapshots.row_count IS 'the rows of the table after it';
COMMENT ON COLUMN snapshots.approximate IS 'the id as a double, as stock Iceberg reports name it';
COMMENT ON COLUMN snapshots.rank IS '3 stated by its writer, 2 by a reader''s exact report, 1 observed';
COMMENT ON COLUMN snapshots.at IS 'the event''s time';
COMMENT ON COLUMN snapshots.hash IS 'the event: decides between events of one moment';
COMMENT ON COLUMN snapshots.first_at IS 'when it was first seen: its place if no commit time is stated';
COMMENT ON COLUMN snapshots.aside IS '0 main has it, 1 another branch, 2 none; NULL: main';

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
);

CREATE INDEX ix_snapshot_uses_dataset_id_snapshot_id ON snapshot_uses (dataset_id, snapshot_id);
COMMENT ON TABLE snapshot_uses IS 'data lineage: the snapshots that runs read and made';
COMMENT ON COLUMN snapshot_uses.run_id IS 'the run';
COMMENT ON COLUMN snapshot_uses.barrier IS 'the barrier, or 0';
COMMENT ON COLUMN snapshot_uses.direction IS '0 read, 1 made';
COMMENT ON COLUMN snapshot_uses.dataset_id IS 'the table as named';
COMMENT ON COLUMN snapshot_uses.snapshot_id IS 'the snapshot';
COMMENT ON COLUMN snapshot_uses.from_snapshot_id IS 'the exclusive start of an incremental read';
COMMENT ON COLUMN snapshot_uses.query_id IS 'the streaming query';
COMMENT ON COLUMN snapshot_uses.lossy IS '1: the id came as a double, to be matched with snapshots.approximate';
COMMENT ON COLUMN snapshot_uses.rank IS 'as in snapshots';
COMMENT ON COLUMN snapshot_uses.order_at IS 'of observed ones the greatest counts: newest made, earliest read';
COMMENT ON COLUMN snapshot_uses.at IS 'the event''s time';
COMMENT ON COLUMN snapshot_uses.hash IS 'the event: decides between events of one moment';
COMMENT ON COLUMN snapshot_uses.flags IS '1 replaced all, 2 complete, 4 skipped changes, 8 not its batch''s last';

CREATE TABLE startup_snapshots (
    run_id BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    dataset_id BIGINT NOT NULL,
    snapshot_id TEXT DEFAULT '' NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_startup_snapshots PRIMARY KEY (run_id, dataset_id)
);

COMMENT ON TABLE startup_snapshots IS 'the snapshots that a new run starts from';
COMMENT ON COLUMN startup_snapshots.run_id IS 'the run; the row is live until it ends';
COMMENT ON COLUMN startup_snapshots.job_id IS 'the job, for the proposals'' views';
COMMENT ON COLUMN startup_snapshots.dataset_id IS 'the table as named';
COMMENT ON COLUMN startup_snapshots.snapshot_id IS 'the snapshot';
COMMENT ON COLUMN startup_snapshots.at IS 'when it was told';

CREATE TABLE catalog_options (
    key TEXT DEFAULT '' NOT NULL,
    value TEXT DEFAULT '' NOT NULL,
    namespace TEXT DEFAULT '' NOT NULL,
    catalog TEXT DEFAULT '' NOT NULL,
    consistency_group TEXT DEFAULT '' NOT NULL,
    CONSTRAINT pk_catalog_options PRIMARY KEY (namespace, catalog, key)
);

COMMENT ON TABLE catalog_options IS 'options of catalogs, which people configure';
COMMENT ON COLUMN catalog_options.key IS 'table-lineage or data-lineage: false hides its rows from views';
COMMENT ON COLUMN catalog_options.value IS 'the value';
COMMENT ON COLUMN catalog_options.namespace IS 'the namespace of the catalog';
COMMENT ON COLUMN catalog_options.catalog IS 'the catalog';
COMMENT ON COLUMN catalog_options.consistency_group IS 'the group that configured it';

CREATE TABLE version_facts (
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_version_facts PRIMARY KEY (seq)
);

COMMENT ON TABLE version_facts IS 'the facts that versions are computed from';
COMMENT ON COLUMN version_facts.seq IS 'the order, without gaps';
COMMENT ON COLUMN version_facts.at IS 'when it was written';
COMMENT ON COLUMN version_facts.kind IS 'the type of the fact in core/versions';
COMMENT ON COLUMN version_facts.body IS 'the fact as JSON';

CREATE TABLE version_news (
    id BIGSERIAL NOT NULL,
    kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    barrier BIGINT NOT NULL,
    CONSTRAINT pk_version_news PRIMARY KEY (id)
);

COMMENT ON TABLE version_news IS 'what transactions changed that may become a fact';
COMMENT ON COLUMN version_news.id IS 'the order of the rows';
COMMENT ON COLUMN version_news.kind IS '0 a run, 1 a base table, 2 a dataset that was renamed';
COMMENT ON COLUMN version_news.entity_id IS 'the run, base table or dataset';
COMMENT ON COLUMN version_news.barrier IS 'the barrier of the run; 0: the run itself';

CREATE TABLE group_roots (
    dataset_id BIGINT NOT NULL,
    group_name TEXT NOT NULL,
    CONSTRAINT pk_group_roots PRIMARY KEY (dataset_id)
);

COMMENT ON TABLE group_roots IS 'base tables of declared groups: their snapshots become barriers';
COMMENT ON COLUMN group_roots.dataset_id IS 'the base table';
COMMENT ON COLUMN group_roots.group_name IS 'the group that declares it';

CREATE TABLE group_jobs (
    job_id BIGINT NOT NULL,
    CONSTRAINT pk_group_jobs PRIMARY KEY (job_id)
);

COMMENT ON TABLE group_jobs IS 'jobs that are registered or members: starts and ends of their runs are facts';
COMMENT ON COLUMN group_jobs.job_id IS 'the job';

CREATE TABLE reader_leases (
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    holder TEXT DEFAULT '' NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_reader_leases PRIMARY KEY (id)
);

CREATE INDEX ix_reader_leases_expires_at ON reader_leases (expires_at);
COMMENT ON TABLE reader_leases IS 'claims of readers on the snapshots that they were answered';
COMMENT ON COLUMN reader_leases.id IS 'known to its reader alone';
COMMENT ON COLUMN reader_leases.created_at IS 'for people';
COMMENT ON COLUMN reader_leases.expires_at IS 'when it ends; one that has ended stays so';
COMMENT ON COLUMN reader_leases.holder IS 'the reader, for people';
COMMENT ON COLUMN reader_leases.body IS 'the answer: tables and snapshots';

CREATE TABLE open_rollbacks (
    group_name TEXT NOT NULL,
    begun_at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_open_rollbacks PRIMARY KEY (group_name)
);

COMMENT ON TABLE open_rollbacks IS 'rollbacks that are being carried out';
COMMENT ON COLUMN open_rollbacks.group_name IS 'it has one rollback at a time';
COMMENT ON COLUMN open_rollbacks.begun_at IS 'for people';
COMMENT ON COLUMN open_rollbacks.body IS 'the plan that it began with, so that another process can finish it';

CREATE TABLE alerts (
    key TEXT NOT NULL,
    since BIGINT NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT pk_alerts PRIMARY KEY (key)
);

COMMENT ON TABLE alerts IS 'alerts that are on; a row goes when its trouble does';
COMMENT ON COLUMN alerts.key IS 'the rule and what it is about';
COMMENT ON COLUMN alerts.since IS 'since when';
COMMENT ON COLUMN alerts.body IS 'what was reported, to report the recovery alike';
-- PostgreSQL keeps a changed row in its page, and no index changes, where the page has room. Most
-- updates here raise a time.
ALTER TABLE datasets SET (fillfactor = 60);
ALTER TABLE jobs SET (fillfactor = 60);
ALTER TABLE job_relations SET (fillfactor = 60);
ALTER TABLE run_leases SET (fillfactor = 60);
ALTER TABLE facets SET (fillfactor = 80);
ALTER TABLE facet_uses SET (fillfactor = 80);
ALTER TABLE run_templates SET (fillfactor = 80);
ALTER TABLE runs SET (fillfactor = 80);
-- zstd frames, which PostgreSQL cannot compress further.
ALTER TABLE edge_columns ALTER COLUMN columns SET STORAGE EXTERNAL;
ALTER TABLE facet_bodies ALTER COLUMN body SET STORAGE EXTERNAL;
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
            WHEN silence.silent_at < CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) THEN -1
            ELSE run.state END AS state,
       CASE WHEN coalesce(finish.ended_at, silence.silent_at)
                 < coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at)
            THEN coalesce(finish.ended_at, silence.silent_at)
            ELSE coalesce(owner.started_at, run.started_at, owner.first_at, run.first_at)
             END AS valid_from,
       CASE WHEN finish.ended_at IS NOT NULL THEN finish.ended_at
            WHEN silence.silent_at < CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) THEN silence.silent_at END AS valid_to,
       CASE WHEN coalesce(owner.started_at, run.started_at) IS NOT NULL
             AND finish.ended_at IS NULL
             AND NOT silence.silent_at < CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) THEN 1 ELSE 0 END AS live,
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
