"""Reading the lineage graph: relations, tables, columns, snapshots."""
