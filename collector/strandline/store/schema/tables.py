"""The schema of the store.

What is kept of the events, one table a kind of fact, the same on SQLite and PostgreSQL.

Each area's tables stand in a module of their own beside this one; whoever needs a table imports it
from here. The tables of jobs, runs, datasets, relations and snapshots are folds over the set of
events (core/changes/rows.py names the winner of each column), so they can be rebuilt from
`raw_events`. Times are microseconds since 1970 UTC, ids of entities 63-bit hashes of what they
name, snapshot ids text. What is *live* stands nowhere: views.py asks it of runs.
"""

from strandline.store.schema.access_tables import api_keys, audit_log
from strandline.store.schema.annotation_tables import (
    DELETED,
    TAG_GIVEN,
    annotation_log,
    annotations,
)
from strandline.store.schema.columns import metadata
from strandline.store.schema.dataset_tables import (
    dataset_aliases,
    datasets,
    facet_bodies,
    facet_sets,
    facet_uses,
    facets,
)
from strandline.store.schema.graph_tables import graph_news
from strandline.store.schema.received_tables import (
    crash_marks,
    dead_letters,
    dictionaries,
    event_keys,
    offsets,
    raw_events,
    refused_events,
    store_settings,
    unread_events,
)
from strandline.store.schema.relation_tables import (
    RUN_VIEWS,
    TEMPLATES,
    edge_columns,
    edge_uses,
    job_relations,
    relations,
    run_templates,
    table_or_view,
    template_edges,
    template_relations,
)
from strandline.store.schema.run_tables import (
    job_domains,
    jobs,
    namespaces,
    run_leases,
    run_parents,
    run_queries,
    runs,
)
from strandline.store.schema.search_tables import search_pages
from strandline.store.schema.snapshot_tables import (
    catalog_options,
    job_barriers,
    snapshot_uses,
    snapshots,
    startup_snapshots,
)

__all__ = (
    "DELETED",
    "RUN_VIEWS",
    "TAG_GIVEN",
    "TEMPLATES",
    "annotation_log",
    "annotations",
    "api_keys",
    "audit_log",
    "catalog_options",
    "crash_marks",
    "dataset_aliases",
    "datasets",
    "dead_letters",
    "dictionaries",
    "edge_columns",
    "edge_uses",
    "event_keys",
    "facet_bodies",
    "facet_sets",
    "facet_uses",
    "facets",
    "graph_news",
    "job_barriers",
    "job_domains",
    "job_relations",
    "jobs",
    "metadata",
    "namespaces",
    "offsets",
    "raw_events",
    "refused_events",
    "relations",
    "run_leases",
    "run_parents",
    "run_queries",
    "run_templates",
    "runs",
    "search_pages",
    "snapshot_uses",
    "snapshots",
    "startup_snapshots",
    "store_settings",
    "table_or_view",
    "template_edges",
    "template_relations",
    "unread_events",
)
