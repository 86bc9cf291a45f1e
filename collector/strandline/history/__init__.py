"""Years of events: an archive outside the store, and Spark jobs that rebuild the lineage tables from it."""
