"""Years of events: an archive outside the store.

Spark jobs rebuild the lineage tables from it.
"""
