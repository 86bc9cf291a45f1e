"""All tables of the store, the same on SQLite and PostgreSQL; import one from its own module.

The tables of jobs, runs, datasets, relations and snapshots are folds over the set of events
(core/changes/rows.py names the winner of each column), so they can be rebuilt from `raw_events`.
Times are microseconds since 1970 UTC, ids of entities 63-bit hashes of what they name, snapshot ids
text. No table states which run is live: the views ask runs.
"""

from strandline.store.schema import (  # noqa: F401 - each adds its tables to the metadata
    access_tables,
    annotation_tables,
    archive_tables,
    dataset_tables,
    export_tables,
    graph_tables,
    received_tables,
    relation_tables,
    run_tables,
    search_tables,
    snapshot_tables,
    version_tables,
)
from strandline.store.schema.columns import metadata

__all__ = ["metadata"]
