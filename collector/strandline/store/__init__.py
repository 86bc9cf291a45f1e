"""The store: tables, the write path and queries."""
