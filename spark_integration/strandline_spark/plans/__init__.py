"""A Spark plan as a tree: its nodes, roots, schemas, physical scans and the offset log."""
