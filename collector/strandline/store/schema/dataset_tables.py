"""Datasets with their other names, and the facets of runs, jobs, datasets and relations.

A facet is stored in one of two ways, and readers ask for both (sql/facet_rows.py): as a row of its
own, or in a set that many entities have. For each entity and key the newest counts.
"""

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, Table

from strandline.store.schema.columns import (
    CLUSTERED,
    bytes_column,
    code_column,
    flag_column,
    id_column,
    metadata,
    own_id,
    text_column,
    time_column,
)

datasets = Table(
    "datasets",
    metadata,
    own_id(),
    id_column("namespace_id", "finds the datasets of a namespace"),
    text_column("namespace", "as named"),
    text_column("name", "as named"),
    id_column("canonical_id", "the one dataset among those that symlinks join; else its own id"),
    id_column("place_id", "a hash of the next three columns, to find the table by its place"),
    text_column("catalog", "the catalog of the name, for the proposals' views"),
    text_column("database_name", "the database of the name, for the proposals' views"),
    text_column("table_name", "the table of the name, for the proposals' views"),
    time_column("first_at", "its first event; NULL: only mentioned", nullable=True),
    time_column("newest_at", "its newest event, for lists and deletions", nullable=True),
    flag_column("named", "1: an event had it as a dataset; 0: symlinks or edges mention it"),
    Index(None, "canonical_id"),
    Index(None, "namespace_id"),
    Index(None, "place_id"),
    comment="one row a dataset as named",
)

dataset_aliases = Table(
    "dataset_aliases",
    metadata,
    id_column("dataset_id", "the dataset"),
    id_column("alias_id", "the dataset that its other name names"),
    text_column("type", "of the symlink (TABLE, LOCATION, ...), or PATTERN, SPELLING, RENAMED"),
    time_column("at", "of a name before a rename: when it was moved away; 0 for the others"),
    PrimaryKeyConstraint("dataset_id", "alias_id", "type"),
    Index(None, "alias_id"),
    comment="other names of datasets, from which canonical_id is computed",
    **CLUSTERED,
)

facet_bodies = Table(
    "facet_bodies",
    metadata,
    Column("hash", LargeBinary, primary_key=True, comment="16 bytes of SHA-256 of its JSON"),
    bytes_column("body", "the facet as a zstd frame"),
    comment="facets of more than a kilobyte, once each",
    **CLUSTERED,
)

facet_sets = Table(
    "facet_sets",
    metadata,
    id_column("set_id", "a hash of kind, keys and contents"),
    text_column("key", "the facet's name"),
    code_column("kind", "as in facets"),
    bytes_column("hash", "of its JSON"),
    bytes_column("body", "as in facets", nullable=True),
    flag_column("deleted", "as in facets"),
    PrimaryKeyConstraint("set_id", "key"),
    comment="facets that came together, once however many entities have them",
    **CLUSTERED,
)

facet_uses = Table(
    "facet_uses",
    metadata,
    id_column("entity_id", "the run, job, dataset or relation"),
    id_column("set_id", "the set of facets that it had"),
    time_column("at", "when last: the newest set of an entity counts for each key"),
    PrimaryKeyConstraint("entity_id", "set_id"),
    comment="the sets of facets of each entity",
    **CLUSTERED,
)

facets = Table(
    "facets",
    metadata,
    id_column("entity_id", "the run, job, dataset or relation"),
    text_column("key", "the facet's name"),
    code_column("kind", "1 run, 2 job, 3 dataset, 4 input, 5 output; plus 10: quarantined"),
    time_column("at", "the event's time: the newest facet counts"),
    bytes_column("hash", "of its JSON: decides between facets of one moment"),
    bytes_column("body", "packed, or as it came; NULL: in facet_bodies", nullable=True),
    flag_column("deleted", "1: the newest body states _deleted"),
    text_column("problem", "of a quarantined facet: why it is stored but not used"),
    PrimaryKeyConstraint("entity_id", "key", "kind"),
    comment="the current facet of each entity and key, and beside it one in quarantine",
    **CLUSTERED,
)
