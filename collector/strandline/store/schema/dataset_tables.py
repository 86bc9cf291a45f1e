"""Datasets as named, their other names, and the facets of runs, jobs, datasets and relations.

A facet is stored in one of two ways, and whoever reads facets asks both (sql/facet_rows.py): as a
row of its own, or as one of a set that many entities have. For each entity and key the newest
counts, whichever way it is stored.
"""

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, SmallInteger, Table

from strandline.store.schema.columns import (
    CLUSTERED,
    flag_column,
    id_column,
    metadata,
    own_id,
    text_column,
    time_column,
)

# One row a dataset as named. canonical_id, catalog, database_name, table_name are derived
# (core/identity.py).
datasets = Table(
    "datasets",
    metadata,
    own_id(),
    id_column("namespace_id"),
    text_column("namespace"),
    text_column("name"),
    id_column("canonical_id"),  # the one row of its group of symlinks; its own id without any
    id_column("place_id"),  # hash of the three that follow
    text_column("catalog"),
    text_column("database_name"),
    text_column("table_name"),
    time_column("first_at", nullable=True),
    time_column("newest_at", nullable=True),
    flag_column("named"),  # 1: an event had it as dataset; 0: only symlinks or edges mention it
    Index(None, "canonical_id"),
    Index(None, "namespace_id"),
    Index(None, "place_id"),
)

# "dataset_id is also called alias_id": symlinks facets (type TABLE, LOCATION, ...) and path
# patterns (type PATTERN).
dataset_aliases = Table(
    "dataset_aliases",
    metadata,
    id_column("dataset_id"),
    id_column("alias_id"),
    text_column("type"),
    PrimaryKeyConstraint("dataset_id", "alias_id", "type"),
    Index(None, "alias_id"),
    **CLUSTERED,
)

# Bodies of more than a kilobyte, once each, by the first 16 bytes of the SHA-256 of their JSON; as
# a zstd frame.
facet_bodies = Table(
    "facet_bodies",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    **CLUSTERED,
)

# Facets that came together, once however many entities have them. set_id: a hash of kind, keys and
# contents.
facet_sets = Table(
    "facet_sets",
    metadata,
    id_column("set_id"),
    text_column("key"),
    Column("kind", SmallInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=True),  # as in facets
    flag_column("deleted"),
    PrimaryKeyConstraint("set_id", "key"),
    **CLUSTERED,
)

# Which entity had a set of facets, and when last.
facet_uses = Table(
    "facet_uses",
    metadata,
    id_column("entity_id"),
    id_column("set_id"),
    time_column("at"),
    PrimaryKeyConstraint("entity_id", "set_id"),
    **CLUSTERED,
)

# The current facet of each (entity, key), and beside it the current one that is not used.
# entity_id: of a run, job, dataset, or relation (input and output facets).
facets = Table(
    "facets",
    metadata,
    id_column("entity_id"),
    text_column("key"),
    Column(
        "kind", SmallInteger, nullable=False
    ),  # 1 run, 2 job, 3 dataset, 4 input, 5 output; plus 10: quarantined
    time_column("at"),
    Column("hash", LargeBinary, nullable=False),
    Column(
        "body", LargeBinary, nullable=True
    ),  # NULL: in facet_bodies; packed (sql/small_bodies) or as it came
    flag_column("deleted"),  # the newest body states _deleted
    text_column("problem"),  # why the body is quarantined: stored, served as it came, not used
    PrimaryKeyConstraint("entity_id", "key", "kind"),
    **CLUSTERED,
)
